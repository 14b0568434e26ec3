// Quantized weights as tensors without storage, with their parts attached.
#include "halftone/quant/quantized_tensor.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/TensorImpl.h>

#include <array>

#include "base/errors.h"
#include "quant/module/dispatch_keys.h"
#include "quant/module/layer_weight.h"

namespace halftone {
namespace {

constexpr size_t kMaxCachedRows = 8;

std::string no_storage_message(const LayerWeight& source) {
  return fmt::format(
      "{} is quantized ({}) and has no storage; weight.dequantize() gives a plain tensor, and "
      "halftone::save_module writes quantized modules to files",
      source.layer(), source.weight().config.describe());
}

}  // namespace

std::shared_ptr<const LayerWeight> LayerWeight::rows(int64_t start, int64_t stop) const {
  const std::lock_guard lock(mutex_);
  for (const Rows& rows : rows_) {
    if (rows.start == start && rows.stop == stop) return rows.weight;
  }
  auto weight = std::make_shared<LayerWeight>(weight_.format->rows(weight_, start, stop),
                                              fmt::format("{}[{}:{}]", layer_, start, stop));
  if (rows_.size() < kMaxCachedRows) rows_.push_back({start, stop, weight});
  return weight;
}

const QuantizedMeta* try_meta(const at::Tensor& tensor) {
  // The keys decide: a tensor that became plain again by set_data() may still carry the old slot.
  if (!tensor.defined() || !tensor.key_set().has(kWrapperKey)) return nullptr;
  return dynamic_cast<const QuantizedMeta*>(tensor.unsafeGetTensorImpl()->get_backend_meta());
}

const QuantizedMeta& meta_of(const at::Tensor& tensor) {
  const QuantizedMeta* meta = try_meta(tensor);
  if (!meta) fail(ErrorCode::kInvalidArgument, "this tensor is not quantized");
  return *meta;
}

const QuantizedMeta& meta_for_use(const at::Tensor& tensor, std::string_view op) {
  const QuantizedMeta& meta = meta_of(tensor);
  if (tensor.requires_grad() && at::GradMode::is_enabled()) {
    fail_unsupported(meta, op,
                     "its weight was asked to require a gradient, and a quantized weight never gets one");
  }
  return meta;
}

at::Tensor make_quantized_tensor(std::shared_ptr<const LayerWeight> source, bool transposed) {
  link_kernels();
  const QuantizedWeight& weight = source->weight();
  auto impl = c10::make_intrusive<c10::TensorImpl>(kQuantizedKeys, c10::scalarTypeToTypeMeta(weight.dtype),
                                                   c10::Device(c10::kCPU));
  std::array<int64_t, 2> sizes = {source->n(), source->k()};
  std::array<int64_t, 2> strides = {source->k(), 1};
  if (transposed) {
    std::swap(sizes[0], sizes[1]);
    std::swap(strides[0], strides[1]);
  }
  impl->set_sizes_and_strides(c10::IntArrayRef(sizes), c10::IntArrayRef(strides));
  impl->release_storage_and_set_meta_custom_data_ptr_error_msg_(no_storage_message(*source));
  impl->set_backend_meta(c10::make_intrusive<QuantizedMeta>(std::move(source), transposed));
  return at::Tensor(std::move(impl));
}

at::Tensor make_quantized_tensor(QuantizedWeight weight, std::string layer) {
  if (weight.sizes.size() != 2 || !weight.format) {
    fail(ErrorCode::kInvalidArgument, "{}: a quantized weight has two sizes and a format", layer);
  }
  return make_quantized_tensor(std::make_shared<LayerWeight>(std::move(weight), std::move(layer)), false);
}

bool is_quantized_tensor(const at::Tensor& tensor) {
  return try_meta(tensor) != nullptr;
}

const QuantizedWeight& quantized_weight_of(const at::Tensor& tensor) {
  return meta_of(tensor).source->weight();
}

const std::string& layer_of(const at::Tensor& tensor) {
  return meta_of(tensor).source->layer();
}

bool is_transposed(const at::Tensor& tensor) {
  return meta_of(tensor).transposed;
}

void fail_unsupported(const QuantizedMeta& meta, std::string_view op, std::string_view reason) {
  fail(ErrorCode::kUnsupported, "{} is quantized ({}): {} {}; weight.dequantize() gives a plain tensor",
       meta.source->layer(), meta.source->weight().config.describe(), op,
       reason.empty() ? "has no kernel for such a weight" : fmt::format("is refused: {}", reason));
}

}  // namespace halftone
