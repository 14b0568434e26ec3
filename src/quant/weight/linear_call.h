// Shared by the CPU kernels of all linear operators: x as rows of floats, the bias, scratch memory, and the
// result in x's type.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>

#include "graph/aten/aten_parallel_for.h"
#include "kernels/common/epilogue.h"
#include "kernels/fp32_linear/fp32_linear.h"

namespace halftone {

/// One call of y = x · Wᵀ + bias with W [n, k]. x has any leading dimensions (none too), any strides and any
/// floating type; float64 is computed in float32, whose error is far below that of the quantization.
class LinearCall {
 public:
  /// `name` of the operator for messages. kInvalidArgument if x or bias do not fit.
  LinearCall(const char* name, const at::Tensor& x, int64_t n, int64_t k,
             const std::optional<at::Tensor>& bias);

  int64_t m() const { return m_; }
  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  const at::Tensor& rows() const { return rows_; }  ///< x as float32 [m, k]
  const float* x() const { return rows_.const_data_ptr<float>(); }
  int64_t x_stride() const { return x_stride_; }
  /// x, weights and epilogue for the kernels that take floats; the workspace is still to be set.
  kernels::Fp32LinearArgs float_args(const at::Tensor& packed) const;
  /// Bias and output. The kernel writes bfloat16 itself; for other types than float32 the floats are
  /// converted afterwards.
  kernels::Epilogue epilogue() const;
  kernels::OutputType output_type() const;
  AtenParallelFor& parallel_for() { return parallel_for_; }
  /// Scratch memory until the next call in this thread.
  void* workspace(size_t bytes);
  /// [..., n] in x's type, once the kernel has run.
  at::Tensor result() const;

 private:
  int64_t m_ = 1, n_, k_, x_stride_;
  c10::ScalarType type_;
  std::vector<int64_t> sizes_;  // of the result
  at::Tensor rows_, bias_, out_;
  at::Tensor large_workspace_;
  AtenParallelFor parallel_for_;
};

/// Whether a size is a symbol: while graphs are traced. Kernels will see numbers and check those.
bool has_symbols(const at::Tensor& tensor);

/// kInvalidArgument unless `weight` is a two-dimensional CPU tensor, or a meta tensor, of that type.
void check_matrix(const char* name, const at::Tensor& weight, c10::ScalarType type);

/// kInvalidArgument unless `part` is a CPU tensor, or a meta tensor, of that type and of those sizes:
/// "halftone::int8_linear: scale must be …".
void check_part(const char* name, const char* part, const at::Tensor& tensor, c10::ScalarType type,
                c10::IntArrayRef sizes);

}  // namespace halftone
