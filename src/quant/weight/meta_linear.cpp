#include "quant/weight/meta_linear.h"

#include <ATen/ops/empty.h>

#include "base/errors.h"

namespace halftone {

at::Tensor meta_linear(const char* name, const at::Tensor& x, const c10::SymInt& n, const c10::SymInt& k,
                       const std::optional<at::Tensor>& bias) {
  if (x.dim() < 1) fail(ErrorCode::kInvalidArgument, "{}: x must have a dimension", name);
  TORCH_SYM_CHECK(x.sym_size(-1).sym_eq(k), name, ": x of sizes ", x.sym_sizes(),
                  " does not fit a weight of ", k, " inputs");
  if (bias.has_value() && bias->defined()) {
    if (bias->dim() != 1) fail(ErrorCode::kInvalidArgument, "{}: bias must have one dimension", name);
    TORCH_SYM_CHECK(bias->sym_size(0).sym_eq(n), name, ": bias must have ", n, " elements");
  }
  c10::SymDimVector sizes(x.sym_sizes().begin(), x.sym_sizes().end());
  sizes.back() = n;
  return at::empty_symint(sizes, x.options());
}

}  // namespace halftone
