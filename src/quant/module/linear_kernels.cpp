// Products of activations with a quantized weight. Gradients reach activations and bias through
// WeightFormat::linear.
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <fmt/ranges.h>

#include "base/errors.h"
#include "quant/module/kernels.h"
#include "quant/module/layer_weight.h"

namespace halftone::weight_kernels {
namespace {

/// Whichever of the tensors is quantized: for the message, where it stands in the wrong place.
[[noreturn]] void fail_misplaced(std::string_view op, std::initializer_list<Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    if (const QuantizedMeta* meta = try_meta(tensor)) {
      fail_unsupported(*meta, op, "it can only be the weight of a linear, x · Wᵀ");
    }
  }
  fail(ErrorCode::kInternal, "{}: called without a quantized tensor", op);
}

Tensor multiply(std::string_view op, const Tensor& x, const Tensor& weight, bool transposed,
                const std::optional<Tensor>& bias) {
  if (try_meta(x) || (bias && try_meta(*bias)) || !try_meta(weight) || weight.dim() != 2) {
    fail_misplaced(op, {x, weight, bias ? *bias : Tensor()});
  }
  const QuantizedMeta& meta = meta_for_use(weight, op);
  if (meta.transposed != transposed) {
    fail_unsupported(meta, op, "it can only be multiplied as x · Wᵀ, and here it would be x · W");
  }
  const LayerWeight& source = *meta.source;
  if (x.dim() == 0 || x.size(-1) != source.k()) {
    fail(ErrorCode::kInvalidArgument, "{}: takes [..., {}], but got [{}]", source.layer(), source.k(),
         fmt::join(x.sizes(), ", "));
  }
  return source.weight().format->linear(x, source.weight(), bias);
}

bool is_bias(const Tensor& tensor, int64_t n) {
  return tensor.dim() == 1 && tensor.size(0) == n;
}

}  // namespace

Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  if (!bias || !bias->defined()) return multiply("aten::linear", input, weight, false, std::nullopt);
  if (is_bias(*bias, weight.size(0)) || try_meta(*bias)) {
    return multiply("aten::linear", input, weight, false, bias);
  }
  return at::add(multiply("aten::linear", input, weight, false, std::nullopt), *bias);
}

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const c10::Scalar& beta,
             const c10::Scalar& alpha) {
  constexpr std::string_view op = "aten::addmm";
  if (try_meta(self)) fail_misplaced(op, {self});
  if (mat1.dim() != 2) fail(ErrorCode::kInvalidArgument, "addmm: the first factor must be a matrix");
  const bool plain = alpha.equal(1) && beta.equal(1);
  if (plain && is_bias(self, mat2.size(-1))) return multiply(op, mat1, mat2, true, self);
  Tensor y = multiply(op, mat1, mat2, true, std::nullopt);
  if (!alpha.equal(1)) y = at::mul(y, alpha);
  // As torch has it: a zero beta ignores what stands in self, even NaN.
  return beta.equal(0) ? y : at::add(y, self, beta);
}

Tensor mm(const Tensor& self, const Tensor& mat2) {
  if (self.dim() != 2) fail(ErrorCode::kInvalidArgument, "mm: the first factor must be a matrix");
  return multiply("aten::mm", self, mat2, true, std::nullopt);
}

Tensor matmul(const Tensor& self, const Tensor& other) {
  return multiply("aten::matmul", self, other, true, std::nullopt);
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  constexpr std::string_view op = "aten::embedding";
  if (!try_meta(weight)) fail_unsupported(*try_meta(indices), op, "it is no tensor of indices");
  const QuantizedMeta& meta = meta_for_use(weight, op);
  const QuantizedWeight& source = meta.source->weight();
  if (try_meta(indices)) fail_unsupported(meta, op, "it is no tensor of indices");
  if (meta.transposed) fail_unsupported(meta, op, "its rows are no longer rows once it is transposed");
  if (!source.format->has_embedding()) fail_unsupported(meta, op, "its format has no kernel for embeddings");
  return source.format->embedding(indices, source);
}

}  // namespace halftone::weight_kernels
