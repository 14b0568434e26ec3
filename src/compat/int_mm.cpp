// halftone::int_mm. torch's own _int_mm goes to oneDNN, which saturates at 16 bits on CPUs without VNNI;
// floating-point products whose sums are integers below the mantissa's end are exact on all of them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <torch/library.h>

#include "base/errors.h"
#include "compat/rewrites.h"

namespace halftone::baseline {
namespace {

/// |q - zero_point| ≤ 255 and |weight| ≤ 128: all partial sums of so many products fit a float's 24 bits.
constexpr int64_t kMaxExactInFloat = (int64_t{1} << 24) / (255 * 128);
/// … and int32.
constexpr int64_t kMaxExactInInt = (int64_t{1} << 31) / (255 * 128) - 1;

void check_int_mm(const at::Tensor& q, const at::Tensor& weight) {
  if (weight.dim() != 2 || q.dim() < 1 || q.sym_size(-1) != weight.sym_size(1))
    fail(ErrorCode::kInvalidArgument, "halftone::int_mm: rows and weight do not fit each other");
  if (weight.sym_size(1) > kMaxExactInInt)
    fail(ErrorCode::kInvalidArgument, "halftone::int_mm: more than {} products do not fit 32 bits",
         kMaxExactInInt);
}

at::Tensor int_mm_cpu(const at::Tensor& q, const at::Tensor& zero_point, const at::Tensor& weight) {
  check_int_mm(q, weight);
  std::vector<int64_t> per_row = q.sizes().vec();
  per_row.back() = 1;
  const auto type = weight.size(1) <= kMaxExactInFloat ? at::kFloat : at::kDouble;
  const at::Tensor centred = q.to(type) - zero_point.view(per_row);
  return at::matmul(centred, weight.to(type).t()).to(at::kInt);
}

at::Tensor int_mm_meta(const at::Tensor& q, const at::Tensor& zero_point, const at::Tensor& weight) {
  check_int_mm(q, weight);
  c10::SymDimVector sizes(q.sym_sizes().begin(), q.sym_sizes().end());
  sizes.back() = weight.sym_size(0);
  return at::empty_symint(sizes, q.options().dtype(at::kInt));
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def("int_mm(Tensor q, Tensor zero_point, Tensor weight) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("int_mm", int_mm_cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("int_mm", int_mm_meta);
}

}  // namespace

void register_int_mm() {}

}  // namespace halftone::baseline
