// Shared by the tests of this folder: weights and inputs from a seed, the double-precision reference, and the
// conformance that every linear format must show.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <string>

#include "graph/test_support.h"
#include "halftone/quant/weight_format.h"

namespace halftone {

inline at::Tensor randn(at::IntArrayRef sizes, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(sizes, generator, at::kFloat);
}

/// x · dequantized Wᵀ + bias in double.
inline at::Tensor exact_linear(const at::Tensor& x, const QuantizedWeight& weight,
                               const std::optional<at::Tensor>& bias) {
  at::Tensor y = at::matmul(x.to(at::kDouble), weight.format->dequantize(weight).to(at::kDouble).t());
  return bias.has_value() ? y + bias->to(at::kDouble) : y;
}

/// Σ |x| · |w|: what the kernels' error bounds are relative to.
inline at::Tensor magnitude(const at::Tensor& x, const QuantizedWeight& weight) {
  return at::matmul(x.to(at::kDouble).abs(), weight.format->dequantize(weight).to(at::kDouble).abs().t());
}

/// Relative rounding of a type: half a unit in the last place.
inline double rounding_of(c10::ScalarType type) {
  return type == at::kBFloat16 ? 0x1p-8 : type == at::kHalf ? 0x1p-11 : 0x1p-24;
}

/// |y - exact| <= slack · e · magnitude + rounding of the sum and of the result's type, element by element.
inline void expect_close(const at::Tensor& y, const at::Tensor& exact, const at::Tensor& magnitude,
                         double slack) {
  ASSERT_EQ(y.sizes(), exact.sizes());
  const at::Tensor bound =
      magnitude * (slack * 0x1p-24) + exact.abs() * (rounding_of(y.scalar_type()) + 0x1p-23) + 1e-30;
  const at::Tensor excess = (y.to(at::kDouble) - exact).abs() - bound;
  EXPECT_TRUE(y.numel() == 0 || excess.max().item<double>() <= 0)
      << "largest excess over the bound: " << excess.max().item<double>();
}

class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(at::get_num_threads()) { at::set_num_threads(threads); }
  ~ThreadCount() { at::set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace halftone
