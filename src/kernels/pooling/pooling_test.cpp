#include "kernels/pooling/pooling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/common/test_support.h"

namespace halftone::kernels {
namespace {

using testing::Guarded;
using testing::Random;

using Runs = std::vector<PoolRun>;

/// Windows of `size` at each `stride`, begun `pad` before the input; the padding counts for nothing.
Runs runs_of(int64_t in, int64_t out, int64_t size, int64_t stride, int64_t pad, int64_t step) {
  Runs runs;
  for (int64_t o = 0; o < out; ++o) {
    PoolRun run{0, 0, 1};
    for (int64_t t = 0; t < size; ++t) {
      const int64_t at = o * stride - pad + t * step;
      if (at < 0 || at >= in) continue;
      if (run.count++ == 0) run.first = at;
    }
    run.divide = std::max<int64_t>(run.count, 1);
    runs.push_back(run);
  }
  return runs;
}

struct Case {
  PoolProblem problem;
  Runs runs[kConvDims];
  int64_t x_stride, y_stride;

  PoolArgs args(const float* x, float* y) const {
    PoolArgs args{x, x_stride, y, y_stride, {}};
    for (size_t d = 0; d < kConvDims; ++d) args.runs[d] = runs[d];
    return args;
  }
  int64_t in_elements() const {
    return problem.batch * problem.in[0] * problem.in[1] * problem.in[2] * x_stride;
  }
  int64_t out_elements() const {
    return problem.batch * problem.out[0] * problem.out[1] * problem.out[2] * y_stride;
  }
};

Case image_case(PoolKind kind, int64_t channels, int64_t step) {
  Case c{{kind, 2, channels, {3, 9, 11}, {2, 5, 5}, {1, step, 1}}, {}, channels + 3, channels + 1};
  c.runs[0] = runs_of(3, 2, 2, 1, 0, 1);
  c.runs[1] = runs_of(9, 5, 3, 2, 1, step);
  c.runs[2] = runs_of(11, 5, 3, 2, 0, 1);
  return c;
}

double window_value(const Case& c, const Guarded<float>& x, int64_t row, int64_t w, int64_t channel) {
  const PoolProblem& p = c.problem;
  const int64_t h = row % p.out[1], d = row / p.out[1] % p.out[0], n = row / p.out[1] / p.out[0];
  const auto at = [](const Runs& runs, int64_t i) { return runs[static_cast<size_t>(i)]; };
  const PoolRun deep = at(c.runs[0], d), high = at(c.runs[1], h), wide = at(c.runs[2], w);
  float sum = 0, largest = -INFINITY;
  for (int64_t i = 0; i < deep.count; ++i) {
    for (int64_t j = 0; j < high.count; ++j) {
      for (int64_t k = 0; k < wide.count; ++k) {
        const int64_t pixel =
            ((n * p.in[0] + deep.first + i * p.step[0]) * p.in[1] + high.first + j * p.step[1]) * p.in[2] +
            wide.first + k * p.step[2];
        const float value = x[pixel * c.x_stride + channel];
        sum += value;
        if (value > largest || std::isnan(value)) largest = value;
      }
    }
  }
  return p.kind == PoolKind::kMax ? largest
                                  : sum / static_cast<float>(deep.divide * high.divide * wide.divide);
}

TEST(Pooling, TableIsWellFormed) {
  testing::expect_well_formed(pool_kernels(), "pooling");
}

TEST(Pooling, EveryKernelGivesTheSameBits) {
  Random random(5);
  for (const PoolKind kind : {PoolKind::kMax, PoolKind::kMean}) {
    for (int64_t channels : {1, 3, 7, 8, 9, 31, 32, 33, 64, 75}) {
      const Case c = image_case(kind, channels, 1 + channels % 2);
      Guarded<float> x(c.in_elements());
      random.fill_normal(x);
      for (const PoolKernel& kernel : testing::runnable(pool_kernels())) {
        Guarded<float> y(c.out_elements(), -7.0f);
        SerialFor serial;
        pool(kernel, c.problem, c.args(x.data(), y.data()), serial);
        const int64_t rows = c.problem.batch * c.problem.out[0] * c.problem.out[1];
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t w = 0; w < c.problem.out[2]; ++w) {
            for (int64_t i = 0; i < channels; ++i)
              ASSERT_EQ(y[(row * c.problem.out[2] + w) * c.y_stride + i], window_value(c, x, row, w, i))
                  << kernel.name << " channels " << channels;
          }
        }
        EXPECT_EQ(y[c.y_stride - 1], -7.0f) << "wrote between the pixels";
      }
    }
  }
}

TEST(Pooling, ThreadsChangeNothing) {
  Random random(6);
  Case c{{PoolKind::kMean, 1, 200, {1, 7, 7}, {1, 1, 1}, {1, 1, 1}},
         {{{0, 1, 1}}, {{0, 7, 7}}, {{0, 7, 7}}},
         200,
         200};
  Guarded<float> x(c.in_elements()), one(200), four(200);
  random.fill_normal(x);
  SerialFor serial;
  ThreadPool threads(4);
  for (const PoolKernel& kernel : testing::runnable(pool_kernels())) {
    pool(kernel, c.problem, c.args(x.data(), one.data()), serial);
    pool(kernel, c.problem, c.args(x.data(), four.data()), threads);
    for (int64_t i = 0; i < 200; ++i) ASSERT_EQ(one[i], four[i]);
  }
}

TEST(Pooling, NanWinsAndEmptyWindowsHaveValues) {
  for (const PoolKernel& kernel : testing::runnable(pool_kernels())) {
    for (const int64_t place : {0, 1, 2}) {
      Guarded<float> x(3 * 9, 1.0f), y(9);
      x[place * 9 + 4] = NAN;
      const Case c{{PoolKind::kMax, 1, 9, {1, 1, 3}, {1, 1, 1}, {1, 1, 1}},
                   {{{0, 1, 1}}, {{0, 1, 1}}, {{0, 3, 3}}},
                   9,
                   9};
      SerialFor serial;
      pool(kernel, c.problem, c.args(x.data(), y.data()), serial);
      for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(std::isnan(y[i]), i == 4) << kernel.name;
    }
    Guarded<float> x(9, 1.0f), y(9);
    Case empty{{PoolKind::kMax, 1, 9, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
               {{{0, 1, 1}}, {{0, 1, 1}}, {{0, 0, 1}}},
               9,
               9};
    SerialFor serial;
    pool(kernel, empty.problem, empty.args(x.data(), y.data()), serial);
    EXPECT_EQ(y[0], -INFINITY);
    empty.problem.kind = PoolKind::kMean;
    pool(kernel, empty.problem, empty.args(x.data(), y.data()), serial);
    EXPECT_EQ(y[8], 0.0f);
  }
}

TEST(Pooling, RefusesRunsThatLeaveTheInput) {
  const PoolKernel& kernel = pool_kernels().back();
  SerialFor serial;
  float x[4] = {}, y[4] = {};
  for (const PoolRun& run : {PoolRun{-1, 1, 1}, PoolRun{1, 2, 1}, PoolRun{0, -1, 1}, PoolRun{0, 1, 0}}) {
    const Case c{
        {PoolKind::kMax, 1, 1, {1, 1, 2}, {1, 1, 1}, {1, 1, 1}}, {{{0, 1, 1}}, {{0, 1, 1}}, {run}}, 1, 1};
    EXPECT_THROW(pool(kernel, c.problem, c.args(x, y), serial), Error);
  }
  const Case few{
      {PoolKind::kMax, 1, 1, {1, 1, 2}, {1, 1, 2}, {1, 1, 1}}, {{{0, 1, 1}}, {{0, 1, 1}}, {{0, 1, 1}}}, 1, 1};
  EXPECT_THROW(pool(kernel, few.problem, few.args(x, y), serial), Error);
}

}  // namespace
}  // namespace halftone::kernels
