#include "kernels/softmax/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/common/test_support.h"

namespace halftone::kernels {
namespace {

using testing::Guarded;
using testing::Random;

void expect_within_bound(const Guarded<float>& x, const Guarded<float>* mask, float scale) {
  const int64_t k = x.size();
  std::vector<double> v(static_cast<size_t>(k));
  double largest = -INFINITY, magnitude = 0, sum = 0;
  for (int64_t i = 0; i < k; ++i) {
    const double d = double{x[i]} * scale + (mask != nullptr ? (*mask)[i] : 0.0);
    v[static_cast<size_t>(i)] = d;
    largest = std::max(largest, d);
    if (!std::isinf(d)) magnitude = std::max(magnitude, std::abs(d));
  }
  for (double d : v) sum += std::exp(d - largest);
  for (const SoftmaxKernel& kernel : testing::runnable(softmax_kernels())) {
    Guarded<float> y(k, -7.0f);
    kernel.row(x.data(), mask != nullptr ? mask->data() : nullptr, scale, k, y.data());
    for (int64_t i = 0; i < k; ++i) {
      const double want = std::exp(v[static_cast<size_t>(i)] - largest) / sum;
      ASSERT_LE(std::abs(y[i] - want), (1e-6 + 2.5e-7 * magnitude) * want + 1e-38)
          << kernel.name << " k " << k << " at " << i;
    }
  }
}

TEST(Softmax, TableIsWellFormed) {
  testing::expect_well_formed(softmax_kernels(), "softmax");
}

TEST(Softmax, EverySizeIsWithinTheBound) {
  Random random(1);
  for (int64_t k = 1; k < 70; ++k) {
    for (float sigma : {0.1f, 3.0f, 40.0f}) {
      Guarded<float> x(k), mask(k);
      random.fill_normal(x, sigma);
      random.fill_normal(mask);
      expect_within_bound(x, nullptr, 1.0f);
      expect_within_bound(x, &mask, 0.125f);
      mask[0] = k > 1 ? -INFINITY : 0.0f;
      expect_within_bound(x, &mask, 0.125f);
    }
  }
  Guarded<float> x(100000);
  random.fill_normal(x);
  expect_within_bound(x, nullptr, 1.0f);
}

TEST(Softmax, ExtremesAreDefined) {
  Guarded<float> outlier(33, 1.0f);
  outlier[9] = 1e30f;
  expect_within_bound(outlier, nullptr, 1.0f);
  Guarded<float> zeros(17, 0.0f), denormals(17, 1e-42f);
  expect_within_bound(zeros, nullptr, 1.0f);
  expect_within_bound(denormals, nullptr, 1.0f);
}

TEST(Softmax, NotFiniteRowsBecomeNan) {
  for (const SoftmaxKernel& kernel : testing::runnable(softmax_kernels())) {
    for (int64_t at : {0, 7, 8, 20}) {
      for (float bad : {NAN, INFINITY}) {
        Guarded<float> x(21, 1.0f);
        x[at] = bad;
        kernel.row(x.data(), nullptr, 1.0f, 21, x.data());
        for (int64_t i = 0; i < 21; ++i)
          EXPECT_TRUE(std::isnan(x[i])) << kernel.name << " " << at << " " << i;
      }
    }
    Guarded<float> none(11, -INFINITY);
    kernel.row(none.data(), nullptr, 1.0f, 11, none.data());
    for (int64_t i = 0; i < 11; ++i) EXPECT_TRUE(std::isnan(none[i])) << kernel.name;
  }
}

TEST(Softmax, RowsAreSplitAndStridesKept) {
  constexpr int64_t kRows = 50, kK = 130, kStride = 133;
  Guarded<float> x(kRows * kStride), mask(kK);
  Random random(3);
  random.fill_normal(x);
  random.fill_normal(mask);
  ThreadPool pool(3);
  for (const SoftmaxKernel& kernel : testing::runnable(softmax_kernels())) {
    Guarded<float> y(kRows * kStride, -3.0f);
    softmax(kernel, {kRows, kK}, {x.data(), kStride, mask.data(), 0, 0.5f, y.data(), kStride}, pool);
    Guarded<float> row(kK);
    for (int64_t r = 0; r < kRows; ++r) {
      kernel.row(x.data() + r * kStride, mask.data(), 0.5f, kK, row.data());
      EXPECT_EQ(std::memcmp(row.data(), y.data() + r * kStride, kK * sizeof(float)), 0);
      if (r + 1 < kRows) {
        EXPECT_EQ(y[r * kStride + kK], -3.0f);
      }
    }
    EXPECT_THROW(softmax(kernel, {-1, 3}, {}, pool), Error);
  }
}

}  // namespace
}  // namespace halftone::kernels
