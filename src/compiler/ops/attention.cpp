// halftone::attention
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <limits>

#include "base/errors.h"
#include "compiler/ops/kernels.h"

namespace halftone::ops {
namespace {

void check(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4)
    fail(ErrorCode::kInvalidArgument,
         "halftone::attention: q, k and v must have four dimensions, not {}, {} and {}", q.dim(), k.dim(),
         v.dim());
  if (q.sym_size(3) != k.sym_size(3) || k.sym_size(2) != v.sym_size(2) || k.sym_size(1) != v.sym_size(1))
    fail(ErrorCode::kInvalidArgument,
         "halftone::attention: q and k must have rows of one width, k and v as many rows and heads");
  if (q.scalar_type() != k.scalar_type() || q.scalar_type() != v.scalar_type() || !q.is_floating_point())
    fail(ErrorCode::kInvalidArgument, "halftone::attention: q, k and v must have one floating-point type");
}

// ATen takes either a mask or is_causal.
OptionalTensor with_causal(const at::Tensor& mask, int64_t m, int64_t n) {
  const at::Tensor keep = at::ones({m, n}, mask.options().dtype(at::kBool)).tril();
  if (mask.scalar_type() == at::kBool) return mask.logical_and(keep);
  return at::where(keep, mask, -std::numeric_limits<double>::infinity());
}

/// ATen's kernels multiply what is masked, minus infinity, by it too.
void check(double scale) {
  if (!(scale > 0 && std::isfinite(scale)))
    fail(ErrorCode::kInvalidArgument, "halftone::attention: the scale is {}, it must be positive and finite",
         scale);
}

}  // namespace

at::Tensor attention_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const OptionalTensor& mask, bool causal, double scale) {
  check(q, k, v);
  check(scale);
  const bool both = causal && mask.has_value();
  const at::Tensor y =
      at::scaled_dot_product_attention(q, k, v, both ? with_causal(*mask, q.size(2), k.size(2)) : mask,
                                       /*dropout_p=*/0.0, causal && !both, scale,
                                       /*enable_gqa=*/k.size(1) != q.size(1));
  return y.transpose(1, 2).contiguous().transpose(1, 2);
}

at::Tensor attention_meta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const OptionalTensor& mask, bool causal, double scale) {
  check(q, k, v);
  check(scale);
  return at::empty_symint({q.sym_size(0), q.sym_size(2), q.sym_size(1), v.sym_size(3)}, q.options())
      .transpose(1, 2);
}

}  // namespace halftone::ops
