#include "kernels/quantize_rows/quantize_rows.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/common/kernel_table.h"
#include "kernels/common/test_support.h"

namespace halftone::kernels {
namespace {

using testing::Guarded;
using testing::Random;

constexpr RowFormat kFormats[] = {RowFormat::kU8, RowFormat::kS8};

struct Quantized {
  RowScale scale;
  std::vector<uint8_t> q;
  friend bool operator==(const Quantized& a, const Quantized& b) {
    return std::memcmp(&a.scale, &b.scale, sizeof(RowScale)) == 0 && a.q == b.q;
  }
};

Quantized run(const QuantizeRowsKernel& kernel, const Guarded<float>& x, RowFormat format) {
  Guarded<uint8_t> q(x.size(), 0xee);
  const RowScale scale = kernel.row(x.data(), x.size(), format, q.data());
  return {scale, q.copy()};
}

double value(const Quantized& r, int64_t i, RowFormat format) {
  const int q = format == RowFormat::kS8 ? static_cast<int8_t>(r.q[static_cast<size_t>(i)])
                                         : r.q[static_cast<size_t>(i)];
  return static_cast<double>(r.scale.scale) * (q - r.scale.zero_point);
}

void expect_within_bound(const Guarded<float>& x, RowFormat format) {
  std::vector<Quantized> results;
  for (const QuantizeRowsKernel& kernel : testing::runnable(quantize_rows_kernels())) {
    SCOPED_TRACE(kernel.name);
    const Quantized r = run(kernel, x, format);
    ASSERT_GE(r.scale.scale, FLT_MIN);
    ASSERT_GE(r.scale.zero_point, 0);
    ASSERT_LE(r.scale.zero_point, format == RowFormat::kU8 ? 255 : 0);
    for (int64_t i = 0; i < x.size(); ++i) {
      ASSERT_LE(std::abs(x[i] - value(r, i, format)), kQuantizeRowsBound * r.scale.scale) << i;
      if (format == RowFormat::kS8) {
        ASSERT_NE(r.q[static_cast<size_t>(i)], 0x80) << i;
      }
    }
    results.push_back(r);
  }
  for (const Quantized& r : results) EXPECT_EQ(r, results.front());
}

TEST(QuantizeRows, TableIsWellFormed) {
  testing::expect_well_formed(quantize_rows_kernels(), "quantize_rows");
  for (Isa isa : kAllIsas) {
    const auto& kernel = choose_kernel(quantize_rows_kernels(), QuantizeRowsProblem{1, 1}, isa);
    EXPECT_LE(kernel.isa, isa);
    EXPECT_EQ(kernel.isa == Isa::kScalar, isa == Isa::kScalar || quantize_rows_kernels().size() == 1);
  }
}

TEST(QuantizeRows, EverySizeIsWithinTheBoundAndTheSameOnEveryLevel) {
  Random random(1);
  for (int64_t k = 0; k <= 140; ++k) {
    for (float shift : {0.0f, 3.0f, -3.0f}) {
      Guarded<float> x(k);
      for (int64_t i = 0; i < k; ++i) x[i] = random.normal() + shift;
      for (RowFormat format : kFormats) expect_within_bound(x, format);
    }
  }
}

TEST(QuantizeRows, ExtremeMagnitudesAreDefined) {
  Random random(2);
  for (float magnitude : {1e-45f, 1e-40f, FLT_MIN, 1e-30f, 1e30f, 1e38f}) {
    Guarded<float> x(77);
    for (int64_t i = 0; i < x.size(); ++i) x[i] = magnitude * static_cast<float>(random.integer(-2, 2));
    for (RowFormat format : kFormats) expect_within_bound(x, format);
  }
  Guarded<float> outlier(100);
  random.fill_normal(outlier);
  outlier[63] = 1e30f;
  for (RowFormat format : kFormats) expect_within_bound(outlier, format);
  Guarded<float> widest(40, FLT_MAX);
  widest[7] = -FLT_MAX;
  for (RowFormat format : kFormats) expect_within_bound(widest, format);
}

TEST(QuantizeRows, ZeroIsExact) {
  Guarded<float> x(33, 0.0f);
  for (RowFormat format : kFormats) expect_within_bound(x, format);
  x[3] = 0.7f;
  x[4] = -0.31f;
  for (const auto& kernel : testing::runnable(quantize_rows_kernels())) {
    for (RowFormat format : kFormats) EXPECT_EQ(value(run(kernel, x, format), 0, format), 0.0);
  }
}

TEST(QuantizeRows, NanAndInfinityGiveANanScaleWhereverTheyStand) {
  for (float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
    for (int64_t at = 0; at < 41; ++at) {
      Guarded<float> x(41, 1.0f);
      x[at] = bad;
      for (const auto& kernel : testing::runnable(quantize_rows_kernels())) {
        for (RowFormat format : kFormats) {
          const Quantized r = run(kernel, x, format);
          EXPECT_TRUE(std::isnan(r.scale.scale)) << kernel.name << at;
          EXPECT_EQ(r.scale.zero_point, 0);
          EXPECT_EQ(r.q, std::vector<uint8_t>(41, 0));
        }
      }
    }
  }
}

TEST(QuantizeRows, RowsAreSplitAndStridesKept) {
  constexpr int64_t kRows = 37, kK = 1000, kStride = 1003;
  Guarded<float> x(kRows * kStride);
  Random random(3);
  random.fill_normal(x);
  ThreadPool pool(3);
  SerialFor serial;
  for (const auto& kernel : testing::runnable(quantize_rows_kernels())) {
    Guarded<uint8_t> q1(kRows * kStride, 7), q2(kRows * kStride, 7);
    Guarded<float> s1(kRows), s2(kRows);
    Guarded<int32_t> z1(kRows), z2(kRows);
    quantize_rows(kernel, {kRows, kK},
                  {x.data(), kStride, q1.data(), kStride, s1.data(), z1.data(), RowFormat::kU8}, pool);
    quantize_rows(kernel, {kRows, kK},
                  {x.data(), kStride, q2.data(), kStride, s2.data(), z2.data(), RowFormat::kU8}, serial);
    EXPECT_EQ(q1.copy(), q2.copy());
    EXPECT_EQ(s1.copy(), s2.copy());
    EXPECT_EQ(z1.copy(), z2.copy());
    for (int64_t r = 0; r < kRows; ++r) EXPECT_EQ(q1[r * kStride + kK], 7);
  }
  EXPECT_THROW(quantize_rows(quantize_rows_kernels().back(), {-1, 4}, {}, serial), Error);
}

}  // namespace
}  // namespace halftone::kernels
