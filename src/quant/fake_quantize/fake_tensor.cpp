#include "quant/fake_quantize/fake_tensor.h"

#include <ATen/ATen.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "base/errors.h"

namespace halftone {
namespace {

using at::Tensor;

/// In the slot for backends, which torch copies wherever it copies a tensor's metadata.
struct FakeMeta final : c10::BackendMeta {
  FakeMeta(std::shared_ptr<FakeQuantizer> quantizer, int64_t first, bool transposed)
      : quantizer(std::move(quantizer)), first(first), transposed(transposed) {}
  std::shared_ptr<FakeQuantizer> quantizer;
  int64_t first;    ///< the weight's row that the tensor begins with
  bool transposed;  ///< the tensor is [k, rows]
};

/// While it lives, the weights are ordinary tensors.
struct AsPlain {
  c10::impl::ExcludeDispatchKeyGuard guard{kFakeQuantizedKey};
};

const FakeMeta* try_fake(const Tensor& tensor) {
  // Views that are not those below have the key and no data: ordinary tensors.
  if (!tensor.defined() || !tensor.key_set().has(kFakeQuantizedKey)) return nullptr;
  return dynamic_cast<const FakeMeta*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
}

[[noreturn]] void refuse_use(const FakeMeta& meta, std::string_view op, std::string_view reason) {
  fail(ErrorCode::kUnsupported, "{} is prepared for quantization-aware training ({}): {} is refused: {}",
       meta.quantizer->layer(), meta.quantizer->config().describe(), op, reason);
}

/// What a product gets. Called as plain.
Tensor rounded_weight(const Tensor& tensor, const FakeMeta& meta) {
  if (!meta.transposed) return meta.quantizer->weight(tensor, meta.first);
  return meta.quantizer->weight(tensor.t(), meta.first).t();
}

struct Factors {
  Tensor x, weight;
};

/// Of x · Wᵀ, whichever way it is written; as they are where W is no prepared weight.
Factors factors(std::string_view op, const Tensor& x, const Tensor& weight, bool transposed) {
  if (const FakeMeta* wrong = try_fake(x))
    refuse_use(*wrong, op, "it can only be the weight of a linear, x · Wᵀ");
  const FakeMeta* meta = try_fake(weight);
  if (meta == nullptr) return {x, weight};
  if (meta->transposed != transposed)
    refuse_use(*meta, op, "it can only be multiplied as x · Wᵀ, and here it would be x · W");
  return {meta->quantizer->activations(x), rounded_weight(weight, *meta)};
}

Tensor fake_linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  const AsPlain plain;
  const auto [x, w] = factors("aten::linear", input, weight, false);
  return at::linear(x, w, bias);
}

Tensor fake_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const c10::Scalar& beta,
                  const c10::Scalar& alpha) {
  const AsPlain plain;
  const auto [x, w] = factors("aten::addmm", mat1, mat2, true);
  return at::addmm(self, x, w, beta, alpha);
}

Tensor fake_mm(const Tensor& self, const Tensor& mat2) {
  const AsPlain plain;
  const auto [x, w] = factors("aten::mm", self, mat2, true);
  return at::mm(x, w);
}

Tensor fake_matmul(const Tensor& self, const Tensor& other) {
  const AsPlain plain;
  const auto [x, w] = factors("aten::matmul", self, other, true);
  return at::matmul(x, w);
}

Tensor fake_embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx,
                      bool scale_grad_by_freq, bool) {
  const AsPlain plain;
  const FakeMeta* meta = try_fake(weight);
  if (meta == nullptr) return at::embedding(weight, indices, padding_idx, scale_grad_by_freq);
  if (meta->transposed)
    refuse_use(*meta, "aten::embedding", "its rows are no longer rows once it is transposed");
  // A table is looked up as it is stored: activations are not its business, and sparse gradients would not
  // fit.
  return at::embedding(rounded_weight(weight, *meta), indices, padding_idx, scale_grad_by_freq);
}

/// A view of a prepared weight, as such.
Tensor marked(Tensor view, const FakeMeta& meta, int64_t first, bool transposed) {
  view.unsafeGetTensorImpl()->set_backend_meta(
      c10::make_intrusive<FakeMeta>(meta.quantizer, meta.first + first, transposed));
  return view;
}

Tensor marked_transpose(const Tensor& self, Tensor view) {
  const FakeMeta* meta = try_fake(self);
  return meta == nullptr ? view : marked(std::move(view), *meta, 0, !meta->transposed);
}

/// Cut along `dim`: of whole rows from `first` on, or of something else, which is an ordinary tensor.
Tensor marked_rows(const Tensor& self, int64_t dim, int64_t first, Tensor view) {
  const FakeMeta* meta = try_fake(self);
  if (meta == nullptr || c10::maybe_wrap_dim(dim, 2) != (meta->transposed ? 1 : 0)) return view;
  return marked(std::move(view), *meta, first, meta->transposed);
}

template <auto method>
Tensor fake_transpose_all(const Tensor& self) {
  const AsPlain plain;
  return marked_transpose(self, (self.*method)());
}

Tensor fake_transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  const AsPlain plain;
  Tensor view = at::transpose(self, dim0, dim1);
  const FakeMeta* meta = try_fake(self);
  if (meta == nullptr) return view;
  const bool same = c10::maybe_wrap_dim(dim0, 2) == c10::maybe_wrap_dim(dim1, 2);
  return marked(std::move(view), *meta, 0, same ? meta->transposed : !meta->transposed);
}

Tensor fake_permute(const Tensor& self, c10::IntArrayRef dims) {
  const AsPlain plain;
  Tensor view = at::permute(self, dims);
  const FakeMeta* meta = try_fake(self);
  if (meta == nullptr) return view;
  const bool same = c10::maybe_wrap_dim(dims[0], 2) == 0;
  return marked(std::move(view), *meta, 0, same ? meta->transposed : !meta->transposed);
}

Tensor fake_slice(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                  int64_t step) {
  const AsPlain plain;
  Tensor view = at::slice(self, dim, start, end, step);
  if (step != 1 || view.numel() == 0) return view;
  const int64_t size = self.size(dim), from = start.value_or(0);
  return marked_rows(self, dim, std::max<int64_t>(0, from < 0 ? from + size : from), std::move(view));
}

Tensor fake_narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  const AsPlain plain;
  Tensor view = at::narrow(self, dim, start, length);
  if (length == 0) return view;
  return marked_rows(self, dim, start < 0 ? start + self.size(dim) : start, std::move(view));
}

std::vector<Tensor> marked_all(const Tensor& self, int64_t dim, std::vector<Tensor> views) {
  int64_t first = 0;
  for (Tensor& view : views) {
    const int64_t count = view.size(dim);
    if (count > 0) view = marked_rows(self, dim, first, std::move(view));
    first += count;
  }
  return views;
}

std::vector<Tensor> fake_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  const AsPlain plain;
  return marked_all(self, dim, at::chunk(self, chunks, dim));
}

std::vector<Tensor> fake_split(const Tensor& self, int64_t split_size, int64_t dim) {
  const AsPlain plain;
  return marked_all(self, dim, at::split(self, split_size, dim));
}

std::vector<Tensor> fake_split_with_sizes(const Tensor& self, c10::IntArrayRef sizes, int64_t dim) {
  const AsPlain plain;
  return marked_all(self, dim, at::split_with_sizes(self, sizes, dim));
}

/// set_data() asks this right before it copies `from`'s metadata into `self`.
bool fake_has_compatible_type(const Tensor& self, const Tensor& from) {
  const AsPlain plain;
  if (const FakeMeta* meta = try_fake(self); meta != nullptr && !from.key_set().has(kFakeQuantizedKey))
    refuse_use(*meta, "set_data() (Module::to() another dtype)",
               "the new tensor would not be prepared; convert the module before prepare_qat()");
  return at::_has_compatible_shallow_copy_type(self, from);
}

/// Every other operator.
void as_plain(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const AsPlain plain;
  op.callBoxed(stack);
}

}  // namespace

void attach_fake_quantizer(Tensor& weight, std::shared_ptr<FakeQuantizer> quantizer) {
  auto impl = c10::make_intrusive<c10::TensorImpl>(c10::Storage(weight.storage()),
                                                   weight.key_set().add(kFakeQuantizedKey), weight.dtype());
  impl->set_sizes_and_strides(weight.sizes(), weight.strides(), weight.storage_offset());
  impl->set_backend_meta(c10::make_intrusive<FakeMeta>(std::move(quantizer), 0, false));
  weight.set_data(Tensor(std::move(impl)));
}

void detach_fake_quantizer(Tensor& weight) {
  if (try_fake(weight) == nullptr) return;
  auto impl = c10::make_intrusive<c10::TensorImpl>(
      c10::Storage(weight.storage()), weight.key_set().remove(kFakeQuantizedKey), weight.dtype());
  impl->set_sizes_and_strides(weight.sizes(), weight.strides(), weight.storage_offset());
  const AsPlain plain;
  weight.set_data(Tensor(std::move(impl)));
}

std::shared_ptr<FakeQuantizer> try_fake_quantizer(const Tensor& weight) {
  const FakeMeta* meta = try_fake(weight);
  return meta == nullptr ? nullptr : meta->quantizer;
}

bool is_fake_quantized(const Tensor& tensor) {
  return try_fake(tensor) != nullptr;
}

}  // namespace halftone

TORCH_LIBRARY_IMPL(_, DeferredInit, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&halftone::as_plain>());
}

TORCH_LIBRARY_IMPL(aten, DeferredInit, library) {
  using namespace halftone;
  library.impl("linear", TORCH_FN(fake_linear));
  library.impl("addmm", TORCH_FN(fake_addmm));
  library.impl("mm", TORCH_FN(fake_mm));
  library.impl("matmul", TORCH_FN(fake_matmul));
  library.impl("embedding", TORCH_FN(fake_embedding));
  library.impl("t", TORCH_FN(fake_transpose_all<&at::Tensor::t>));
  library.impl("numpy_T", TORCH_FN(fake_transpose_all<&at::Tensor::numpy_T>));
  library.impl("mT", TORCH_FN(fake_transpose_all<&at::Tensor::mT>));
  for (const char* name : {"transpose.int", "swapaxes", "swapdims"})
    library.impl(name, TORCH_FN(fake_transpose));
  library.impl("permute", TORCH_FN(fake_permute));
  library.impl("slice.Tensor", TORCH_FN(fake_slice));
  library.impl("narrow", TORCH_FN(fake_narrow));
  for (const char* name : {"chunk", "unsafe_chunk"}) library.impl(name, TORCH_FN(fake_chunk));
  for (const char* name : {"split.Tensor", "unsafe_split.Tensor"}) library.impl(name, TORCH_FN(fake_split));
  for (const char* name : {"split.sizes", "split_with_sizes", "unsafe_split_with_sizes"})
    library.impl(name, TORCH_FN(fake_split_with_sizes));
  library.impl("_has_compatible_shallow_copy_type", TORCH_FN(fake_has_compatible_type));
}
