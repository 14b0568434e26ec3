// halftone::quantize_rows
#include "kernels/quantize_rows/quantize_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "base/errors.h"
#include "compiler/ops/kernels.h"
#include "graph/aten/aten_parallel_for.h"
#include "kernels/common/kernel_table.h"

namespace halftone::ops {
namespace {

void check_rows_of_floats(const at::Tensor& x) {
  if (x.dim() < 1 || x.scalar_type() != at::kFloat)
    fail(ErrorCode::kInvalidArgument, "halftone::quantize_rows: x must be float32 with a dimension");
}

}  // namespace

QuantizeRowsResult quantize_rows_cpu(const at::Tensor& x, bool symmetric) {
  check_rows_of_floats(x);
  const at::Tensor rows = x.contiguous();
  const int64_t k = x.size(-1),
                count = k == 0 ? c10::multiply_integers(x.sizes().slice(0, x.dim() - 1)) : x.numel() / k;
  at::Tensor q = at::empty(x.sizes(), x.options().dtype(symmetric ? at::kChar : at::kByte));
  at::Tensor scale = at::empty({count}, x.options());
  at::Tensor zero_point = at::empty({count}, x.options().dtype(at::kInt));
  kernels::QuantizeRowsArgs args;
  args.x = rows.const_data_ptr<float>();
  args.x_stride = args.q_stride = k;
  args.q = static_cast<uint8_t*>(q.mutable_data_ptr());
  args.scale = scale.mutable_data_ptr<float>();
  args.zero_point = zero_point.mutable_data_ptr<int32_t>();
  args.format = symmetric ? kernels::RowFormat::kS8 : kernels::RowFormat::kU8;
  const kernels::QuantizeRowsProblem problem{count, k};
  AtenParallelFor parallel_for;
  kernels::quantize_rows(kernels::choose_kernel(kernels::quantize_rows_kernels(), problem, active_isa()),
                         problem, args, parallel_for);
  return {q, scale, zero_point};
}

QuantizeRowsResult quantize_rows_meta(const at::Tensor& x, bool symmetric) {
  check_rows_of_floats(x);
  c10::SymInt rows = 1;
  for (int64_t i = 0; i + 1 < x.dim(); ++i) rows *= x.sym_size(i);
  return {at::empty_symint(x.sym_sizes(), x.options().dtype(symmetric ? at::kChar : at::kByte)),
          at::empty_symint({rows}, x.options().dtype(at::kFloat)),
          at::empty_symint({rows}, x.options().dtype(at::kInt))};
}

at::Tensor dequantize_rows(const QuantizedRows& rows) {
  std::vector<int64_t> per_row = rows.q.sizes().vec();
  if (per_row.empty()) fail(ErrorCode::kInvalidArgument, "quantized rows must have a dimension");
  per_row.back() = 1;
  return (rows.q.to(at::kInt) - rows.zero_point.view(per_row)).to(at::kFloat) * rows.scale.view(per_row);
}

}  // namespace halftone::ops
