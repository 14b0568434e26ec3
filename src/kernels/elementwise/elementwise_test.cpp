#include "kernels/elementwise/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/common/test_support.h"

namespace halftone::kernels {
namespace {

using testing::Guarded;
using testing::Random;

void expect_within_bound(const Guarded<float>& x) {
  SerialFor serial;
  for (const ElementwiseKernel& kernel : testing::runnable(elementwise_kernels())) {
    for (Activation a : kAllActivations) {
      Guarded<float> y(x.size(), -7.0f);
      activate_all(kernel, x.data(), y.data(), x.size(), a, serial);
      for (int64_t i = 0; i < x.size(); ++i) {
        const double want = testing::exact_activation(x[i], a);
        ASSERT_LE(std::abs(y[i] - want), kActivationRelative * std::abs(want) + kActivationAbsolute)
            << kernel.name << " activation " << static_cast<int>(a) << " at x = " << x[i] << ": " << y[i]
            << " for " << want;
      }
    }
  }
}

TEST(Elementwise, TableIsWellFormed) {
  testing::expect_well_formed(elementwise_kernels(), "elementwise");
}

TEST(Elementwise, ActivationsAreWithinTheirBoundEverywhere) {
  constexpr int64_t kCount = 400001;
  Guarded<float> x(kCount);
  for (int64_t i = 0; i < kCount; ++i)
    x[i] = static_cast<float>((static_cast<double>(i) / kCount - 0.5) * 40.0);
  expect_within_bound(x);
  Guarded<float> wide(600);
  for (int64_t i = 0; i < 300; ++i) {
    const float magnitude = std::ldexp(1.37f, static_cast<int>(i) - 148);
    wide[2 * i] = std::min(magnitude, 3e38f);
    wide[2 * i + 1] = -std::min(magnitude, 3e38f);
  }
  SerialFor serial;
  for (const ElementwiseKernel& kernel : testing::runnable(elementwise_kernels())) {
    for (Activation a : kAllActivations) {
      Guarded<float> y(wide.size());
      activate_all(kernel, wide.data(), y.data(), wide.size(), a, serial);
      for (int64_t i = 0; i < wide.size(); ++i) {
        const double want = testing::exact_activation(wide[i], a);
        if (std::isnan(want)) continue;
        ASSERT_LE(std::abs(y[i] - want), kActivationRelative * std::abs(want) + kActivationAbsolute)
            << kernel.name << " " << static_cast<int>(a) << " x = " << wide[i] << " gives " << y[i];
      }
    }
  }
}

TEST(Elementwise, EverySizeStaysInItsBounds) {
  Random random(1);
  for (int64_t n = 0; n < 40; ++n) {
    Guarded<float> x(n);
    random.fill_normal(x);
    expect_within_bound(x);
  }
}

TEST(Elementwise, NotFiniteComesOutNotFiniteOrAsTheLimit) {
  SerialFor serial;
  const float x[3] = {NAN, INFINITY, -INFINITY};
  for (const ElementwiseKernel& kernel : testing::runnable(elementwise_kernels())) {
    for (Activation a : kAllActivations) {
      float y[3];
      activate_all(kernel, x, y, 3, a, serial);
      EXPECT_TRUE(std::isnan(y[0])) << kernel.name << static_cast<int>(a);
      EXPECT_EQ(y[1], INFINITY) << kernel.name << static_cast<int>(a);
      EXPECT_TRUE(std::isnan(y[2]) || y[2] == -INFINITY || (a == Activation::kRelu && y[2] == 0.0f))
          << kernel.name << static_cast<int>(a);
    }
  }
}

TEST(Elementwise, AddAndMulAreExactlyRoundedInPlaceAndSplit) {
  constexpr int64_t kCount = 50003;
  Guarded<float> a(kCount), b(kCount);
  Random random(2);
  random.fill_normal(a);
  random.fill_normal(b);
  a[17] = NAN;
  ThreadPool pool(2);
  for (const ElementwiseKernel& kernel : testing::runnable(elementwise_kernels())) {
    Guarded<float> sum(kCount), product(kCount);
    add_all(kernel, a.data(), b.data(), sum.data(), kCount, pool);
    for (int64_t i = 0; i < kCount; ++i) product[i] = a[i];
    mul_all(kernel, product.data(), b.data(), product.data(), kCount, pool);
    for (int64_t i = 0; i < kCount; ++i) {
      if (i == 17) {
        EXPECT_TRUE(std::isnan(sum[i]) && std::isnan(product[i]));
        continue;
      }
      ASSERT_EQ(sum[i], a[i] + b[i]);
      ASSERT_EQ(product[i], a[i] * b[i]);
    }
  }
  EXPECT_THROW(add_all(elementwise_kernels().back(), a.data(), b.data(), a.data(), -1, pool), Error);
}

}  // namespace
}  // namespace halftone::kernels
