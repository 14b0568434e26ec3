#include "quant/weight/linear_call.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/errors.h"
#include "graph/aten/dtype_text.h"

namespace halftone {
namespace {

// A thread keeps its scratch memory up to this size, because mapping and clearing pages for every call costs
// more than a small linear. Larger ones are allocated for the call: kept, they would add up over threads.
constexpr size_t kKeptBytes = size_t{16} << 20;

void* kept_workspace(size_t bytes) {
  thread_local std::unique_ptr<char[]> memory;
  thread_local size_t size = 0;
  if (size < bytes) {
    memory.reset();  // first, so that both are never there at once
    size = 0;
    memory.reset(new char[bytes]);
    size = bytes;
  }
  return memory.get();
}

at::Tensor float_rows(const at::Tensor& x, int64_t m, int64_t k) {
  at::Tensor rows = x.to(at::kFloat).reshape({m, k});
  const bool usable = k <= 1 || rows.stride(1) == 1;
  return usable ? rows : rows.contiguous();
}

}  // namespace

LinearCall::LinearCall(const char* name, const at::Tensor& x, int64_t n, int64_t k,
                       const std::optional<at::Tensor>& bias)
    : n_(n), k_(k), type_(x.scalar_type()), sizes_(x.sizes().begin(), x.sizes().end()) {
  if (!x.is_cpu() || !at::isFloatingType(type_) || at::isFloat8Type(type_)) {
    fail(ErrorCode::kInvalidArgument, "{}: x must be a floating-point tensor on the CPU, not {} on {}", name,
         dtype_text(type_), x.device().str());
  }
  if (x.dim() < 1 || x.size(-1) != k) {
    fail(ErrorCode::kInvalidArgument, "{}: x of sizes [{}] does not fit a weight of {} inputs", name,
         fmt::join(x.sizes(), ", "), k);
  }
  for (size_t i = 0; i + 1 < sizes_.size(); ++i) m_ *= sizes_[i];
  sizes_.back() = n;
  rows_ = float_rows(x, m_, k);
  x_stride_ = m_ > 1 ? rows_.stride(0) : k;
  if (bias.has_value() && bias->defined()) {
    if (!bias->is_cpu() || !at::isFloatingType(bias->scalar_type()) || bias->sizes() != c10::IntArrayRef{n}) {
      fail(ErrorCode::kInvalidArgument,
           "{}: bias must be a floating-point tensor of {} elements on the CPU, not {} of sizes [{}]", name,
           n, dtype_text(bias->scalar_type()), fmt::join(bias->sizes(), ", "));
    }
    bias_ = bias->to(at::kFloat).contiguous();
  }
  out_ = at::empty(sizes_, x.options().dtype(output_type() == kernels::OutputType::kBFloat16 ? at::kBFloat16
                                                                                             : at::kFloat));
}

kernels::OutputType LinearCall::output_type() const {
  return type_ == at::kBFloat16 ? kernels::OutputType::kBFloat16 : kernels::OutputType::kFloat32;
}

kernels::Epilogue LinearCall::epilogue() const {
  kernels::Epilogue epilogue;
  epilogue.bias = bias_.defined() ? bias_.const_data_ptr<float>() : nullptr;
  epilogue.type = output_type();
  epilogue.out = out_.mutable_data_ptr();
  epilogue.out_stride = n_;
  return epilogue;
}

kernels::Fp32LinearArgs LinearCall::float_args(const at::Tensor& packed) const {
  kernels::Fp32LinearArgs args;
  args.x = x();
  args.x_stride = x_stride_;
  args.weights = packed.const_data_ptr();
  args.epilogue = epilogue();
  return args;
}

void* LinearCall::workspace(size_t bytes) {
  if (bytes <= kKeptBytes) return kept_workspace(bytes);
  large_workspace_ = at::detail::empty_cpu({static_cast<int64_t>(bytes)}, at::kByte);
  return large_workspace_.mutable_data_ptr();
}

at::Tensor LinearCall::result() const {
  return out_.to(type_);
}

namespace {

bool is_on_cpu(const at::Tensor& tensor) {
  return tensor.is_cpu() || tensor.is_meta();
}

}  // namespace

bool has_symbols(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

void check_matrix(const char* name, const at::Tensor& weight, c10::ScalarType type) {
  if (is_on_cpu(weight) && weight.scalar_type() == type && weight.dim() == 2) return;
  fail(ErrorCode::kInvalidArgument,
       "{}: weight must be {} of two dimensions on the CPU, not {} of sizes {} on {}", name, dtype_text(type),
       dtype_text(weight.scalar_type()), c10::str(weight.sym_sizes()), weight.device().str());
}

void check_part(const char* name, const char* part, const at::Tensor& tensor, c10::ScalarType type,
                c10::IntArrayRef sizes) {
  if (is_on_cpu(tensor) && tensor.scalar_type() == type && (has_symbols(tensor) || tensor.sizes() == sizes))
    return;
  fail(ErrorCode::kInvalidArgument, "{}: {} must be {} of sizes [{}] on the CPU, not {} of sizes {} on {}",
       name, part, dtype_text(type), fmt::join(sizes, ", "), dtype_text(tensor.scalar_type()),
       c10::str(tensor.sym_sizes()), tensor.device().str());
}

}  // namespace halftone
