// elementwise: activations, add and mul on contiguous floats, for what no linear's epilogue took along.
//
//   activate: y = activation(x), bound in epilogue.h · add: y = a + b · mul: y = a · b, both exactly rounded,
//   the same on every level.
// y may be x, a or b. NaN gives NaN.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"
#include "kernels/common/epilogue.h"

namespace halftone::kernels {

struct ElementwiseProblem {
  int64_t count = 0;
};

struct ElementwiseKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const ElementwiseProblem&);
  void (*activate)(const float* x, float* y, int64_t count, Activation activation);
  void (*add)(const float* a, const float* b, float* y, int64_t count);
  void (*mul)(const float* a, const float* b, float* y, int64_t count);
};

/// Best first, scalar last.
std::span<const ElementwiseKernel> elementwise_kernels();

/// The three operations, split into pieces. Throw kInvalidArgument for a negative count.
void activate_all(const ElementwiseKernel& kernel, const float* x, float* y, int64_t count,
                  Activation activation, ParallelFor& parallel_for);
void add_all(const ElementwiseKernel& kernel, const float* a, const float* b, float* y, int64_t count,
             ParallelFor& parallel_for);
void mul_all(const ElementwiseKernel& kernel, const float* a, const float* b, float* y, int64_t count,
             ParallelFor& parallel_for);

}  // namespace halftone::kernels
