// halftone::norm
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>

#include "base/errors.h"
#include "compiler/ops/kernels.h"

namespace halftone::ops {
namespace {

bool is_rms(c10::string_view kind) {
  if (kind != "layer" && kind != "rms")
    fail(ErrorCode::kInvalidArgument, "halftone::norm: kind must be \"layer\" or \"rms\", not \"{}\"",
         std::string_view(kind.data(), kind.size()));
  return kind == "rms";
}

}  // namespace

NormResult norm_cpu(const at::Tensor& x, const OptionalTensor& residual, const OptionalTensor& gamma,
                    const OptionalTensor& beta, c10::string_view kind, double eps, bool symmetric) {
  const bool rms = is_rms(kind);
  if (x.dim() < 1) fail(ErrorCode::kInvalidArgument, "halftone::norm: x must have a dimension");
  const at::Tensor sum = (residual ? x + *residual : x.clone()).contiguous();
  at::Tensor y;
  if (rms) {
    y = sum * at::rsqrt((sum * sum).mean(-1, /*keepdim=*/true) + eps);
    if (gamma) y = y * *gamma;
    if (beta) y = y + *beta;
  } else {
    y = at::layer_norm(sum, {x.size(-1)}, gamma, beta, eps);
  }
  auto [q, scale, zero_point] = quantize_rows_cpu(y, symmetric);
  return {y, sum, q, scale, zero_point};
}

NormResult norm_meta(const at::Tensor& x, const OptionalTensor& residual, const OptionalTensor& gamma,
                     const OptionalTensor& beta, c10::string_view kind, double eps, bool symmetric) {
  is_rms(kind);
  if (x.dim() < 1) fail(ErrorCode::kInvalidArgument, "halftone::norm: x must have a dimension");
  for (const OptionalTensor& factor : {gamma, beta}) {
    if (factor && (factor->dim() != 1 || factor->sym_size(0) != x.sym_size(-1)))
      fail(ErrorCode::kInvalidArgument, "halftone::norm: gamma and beta must be as long as rows of x");
  }
  if (residual && residual->sym_sizes() != x.sym_sizes())
    fail(ErrorCode::kInvalidArgument, "halftone::norm: the residual must have the sizes of x");
  auto [q, scale, zero_point] = quantize_rows_meta(x, symmetric);
  return {at::empty_symint(x.sym_sizes(), x.options()), at::empty_symint(x.sym_sizes(), x.options()), q,
          scale, zero_point};
}

}  // namespace halftone::ops
