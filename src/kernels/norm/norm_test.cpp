#include "kernels/norm/norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/common/test_support.h"
#include "kernels/quantize_rows/quantize_rows.h"

namespace halftone::kernels {
namespace {

using testing::Guarded;
using testing::Random;

constexpr NormKind kKinds[] = {NormKind::kLayer, NormKind::kRms};

struct Rows {
  int64_t m, k;
  Guarded<float> x, residual, gamma, beta;

  Rows(int64_t rows, int64_t size, float shift = 0.0f)
      : m(rows), k(size), x(m * k), residual(m * k), gamma(k), beta(k) {
    Random random(7);
    random.fill_normal(x);
    for (int64_t i = 0; i < x.size(); ++i) x[i] += shift;
    random.fill_normal(residual);
    random.fill_normal(gamma);
    random.fill_normal(beta);
  }

  NormArgs args(float* out, int parts) const {
    NormArgs a;
    a.x = x.data();
    a.x_stride = a.residual_stride = a.sum_stride = a.out_stride = k;
    if (parts & 1) a.residual = residual.data();
    if (parts & 2) a.gamma = gamma.data();
    if (parts & 4) a.beta = beta.data();
    a.out = out;
    return a;
  }

  void expect_within_bound(NormKind kind, int parts) const {
    SerialFor serial;
    for (const NormKernel& kernel : testing::runnable(norm_kernels())) {
      Guarded<float> y(m * k, -7.0f), sum(m * k);
      NormArgs a = args(y.data(), parts);
      if (parts & 8) a.sum = sum.data();
      norm(kernel, {m, k, kind}, a, serial);
      for (int64_t r = 0; r < m; ++r)
        check_row(kind, parts, r, y.data() + r * k, parts & 8 ? sum.data() + r * k : nullptr, kernel.name);
    }
  }

  void check_row(NormKind kind, int parts, int64_t r, const float* y, const float* sum,
                 const char* name) const {
    std::vector<double> v(static_cast<size_t>(k));
    double mean = 0, squares = 0, largest = 0;
    for (int64_t i = 0; i < k; ++i) {
      const float rounded = parts & 1 ? x[r * k + i] + residual[r * k + i] : x[r * k + i];
      v[static_cast<size_t>(i)] = rounded;
      if (sum != nullptr) {
        ASSERT_EQ(sum[i], rounded) << name;
      }
      mean += rounded / static_cast<double>(k);
      largest = std::max(largest, std::abs(double{rounded}));
    }
    if (kind == NormKind::kRms) mean = 0;
    for (double d : v) squares += (d - mean) * (d - mean);
    const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(k) + double{1e-5f});
    for (int64_t i = 0; i < k; ++i) {
      const double g = parts & 2 ? gamma[i] : 1.0, b = parts & 4 ? beta[i] : 0.0;
      const double want = (v[static_cast<size_t>(i)] - mean) * rstd * g + b;
      const double bound =
          6 * 5.97e-8 * (std::abs(g) * 2 * largest * rstd + std::abs(want) + std::abs(b)) + 1e-44;
      ASSERT_LE(std::abs(y[i] - want), bound) << name << " k " << k << " at " << i;
    }
  }
};

TEST(Norm, TableIsWellFormed) {
  testing::expect_well_formed(norm_kernels(), "norm");
}

TEST(Norm, EverySizeAndPartIsWithinTheBound) {
  for (NormKind kind : kKinds) {
    for (int parts = 0; parts < 16; ++parts) {
      for (int64_t k : {1, 2, 7, 8, 9, 15, 16, 17, 64, 384, 1023}) {
        Rows(3, k).expect_within_bound(kind, parts);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Norm, LargeMeansOutliersAndTinyRowsAreWithinTheBound) {
  for (NormKind kind : kKinds) {
    Rows(2, 100, 1e4f).expect_within_bound(kind, 6);
    Rows rows(4, 70);
    rows.x[33] = 1e30f;
    for (int64_t i = 0; i < 70; ++i) {
      rows.x[70 + i] *= 1e36f;
      rows.x[140 + i] *= 1e-42f;
      rows.x[210 + i] = 0.0f;
    }
    rows.expect_within_bound(kind, 6);
  }
}

TEST(Norm, RowsThatAreNotFiniteBecomeNan) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    Rows rows(3, 21);
    rows.x[21 + 20] = bad;
    SerialFor serial;
    for (const NormKernel& kernel : testing::runnable(norm_kernels())) {
      Guarded<float> y(63);
      norm(kernel, {3, 21, NormKind::kLayer}, rows.args(y.data(), 6), serial);
      for (int64_t i = 0; i < 63; ++i) EXPECT_EQ(std::isnan(y[i]), i / 21 == 1) << kernel.name;
      norm(kernel, {3, 21, NormKind::kRms}, rows.args(y.data(), 6), serial);
      EXPECT_TRUE(std::isnan(y[21 + 20])) << kernel.name;
    }
  }
}

TEST(Norm, QuantizedAndBfloat16RowsAreMadeFromTheFloats) {
  const Rows rows(40, 300);
  ThreadPool pool(2);
  for (const NormKernel& kernel : testing::runnable(norm_kernels())) {
    Guarded<float> y(rows.m * rows.k), scale(rows.m);
    Guarded<uint8_t> q(rows.m * rows.k);
    Guarded<uint16_t> half(rows.m * rows.k);
    Guarded<int32_t> zero(rows.m);
    const NormProblem p{rows.m, rows.k, NormKind::kLayer};
    NormArgs a = rows.args(y.data(), 7);
    norm(kernel, p, a, pool);
    std::vector<char> workspace(norm_workspace_bytes(p, 2, OutputType::kQuantizedRows));
    a.workspace = workspace.data();
    a.workspace_bytes = workspace.size();
    a.type = OutputType::kBFloat16;
    a.out = half.data();
    norm(kernel, p, a, pool);
    a.type = OutputType::kQuantizedRows;
    a.out = q.data();
    a.out_scale = scale.data();
    a.out_zero_point = zero.data();
    norm(kernel, p, a, pool);
    std::vector<uint8_t> want(static_cast<size_t>(rows.k));
    for (int64_t r = 0; r < rows.m; ++r) {
      const RowScale s =
          quantize_rows_kernels().back().row(y.data() + r * rows.k, rows.k, RowFormat::kU8, want.data());
      EXPECT_EQ(scale[r], s.scale);
      EXPECT_EQ(zero[r], s.zero_point);
      EXPECT_EQ(std::memcmp(want.data(), q.data() + r * rows.k, want.size()), 0);
      for (int64_t i = 0; i < rows.k; ++i) ASSERT_EQ(half[r * rows.k + i], to_bfloat16(y[r * rows.k + i]));
    }
    a.workspace_bytes = 16;
    EXPECT_THROW(norm(kernel, p, a, pool), Error);
    a.workspace = nullptr;
    EXPECT_THROW(norm(kernel, p, a, pool), Error);
  }
}

TEST(Norm, RefusesBadArguments) {
  SerialFor serial;
  const Rows rows(1, 4);
  float y[4];
  NormArgs a = rows.args(y, 0);
  EXPECT_THROW(norm(norm_kernels().back(), {-1, 4, NormKind::kLayer}, a, serial), Error);
  a.eps = NAN;
  EXPECT_THROW(norm(norm_kernels().back(), {1, 4, NormKind::kLayer}, a, serial), Error);
  a.eps = 1e-5f;
  EXPECT_NO_THROW(norm(norm_kernels().back(), {0, 4, NormKind::kLayer}, a, serial));
  EXPECT_NO_THROW(norm(norm_kernels().back(), {1, 0, NormKind::kLayer}, a, serial));
}

}  // namespace
}  // namespace halftone::kernels
