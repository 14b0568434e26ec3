// Outputs of type kQuantizedRows: a whole row must be known before it can be quantized, so the linears write
// floats to scratch memory first.
#pragma once

#include "kernels/common/kernel_table.h"
#include "kernels/common/workspace.h"
#include "kernels/quantize_rows/quantize_rows.h"

namespace halftone::kernels {

/// Takes [m][n] floats of scratch for kQuantizedRows, nothing for other types.
class QuantizedOutput {
 public:
  QuantizedOutput(int64_t m, int64_t n, OutputType type, Workspace& space)
      : m_(m), n_(n), floats_(space.take<float>(type == OutputType::kQuantizedRows ? m * n : 0)) {}

  /// What the kernels finish with: `e`, or the same to scratch.
  Epilogue redirect(Epilogue e) const {
    if (e.type == OutputType::kQuantizedRows) {
      e.type = OutputType::kFloat32;
      e.out = floats_;
      e.out_stride = n_;
    }
    return e;
  }

  /// From scratch to `e`, if it is kQuantizedRows.
  void finish(const Epilogue& e, Isa isa, ParallelFor& parallel_for) const {
    if (e.type != OutputType::kQuantizedRows) return;
    quantize_rows(choose_kernel(quantize_rows_kernels(), QuantizeRowsProblem{m_, n_}, isa), {m_, n_},
                  {floats_, n_, static_cast<uint8_t*>(e.out), e.out_stride, e.out_scale, e.out_zero_point,
                   e.row_format},
                  parallel_for);
  }

 private:
  int64_t m_, n_;
  float* floats_;
};

}  // namespace halftone::kernels
