// The floats of int8_linear: scales, epilogues, output formats, rows that are not finite.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/int8_linear/test_kernels.h"
#include "kernels/quantize_rows/quantize_rows.h"

namespace halftone::kernels {
namespace {

using testing::Guarded;
using testing::Random;

// Float rows, weights with scales, bias and residual.
struct Layer {
  Int8LinearProblem p;
  Guarded<float> x;
  Guarded<int8_t> w;
  Guarded<float> scale, bias, residual;

  explicit Layer(Int8LinearProblem problem, uint32_t seed = 1)
      : p(problem), x(p.m * p.k), w(p.n * p.k), scale(p.n), bias(p.n), residual(p.m * p.n) {
    Random random(seed);
    const int most = p.weight_bits == 8 ? 127 : 64;
    random.fill_normal(x);
    for (int64_t i = 0; i < w.size(); ++i) w[i] = static_cast<int8_t>(random.integer(-most, most));
    for (int64_t i = 0; i < p.n; ++i) scale[i] = 0.001f * static_cast<float>(random.integer(1, 20));
    random.fill_normal(bias);
    random.fill_normal(residual);
  }

  Int8Weights weights() const { return {w.data(), p.k, scale.data(), p.n, p.k, p.weight_bits}; }

  Int8LinearArgs args(void* out, OutputType type = OutputType::kFloat32) const {
    Int8LinearArgs a;
    a.x = x.data();
    a.x_stride = p.k;
    a.epilogue.out = out;
    a.epilogue.out_stride = p.n;
    a.epilogue.type = type;
    return a;
  }

  std::vector<float> run(const Int8LinearKernel& kernel, const Epilogue& e = {},
                         RowFormat format = RowFormat::kU8) const {
    Guarded<float> out(p.m * p.n, -7.0f);
    Int8LinearArgs a = args(out.data());
    a.epilogue = e;
    a.epilogue.out = out.data();
    a.epilogue.out_stride = p.n;
    a.x_format = format;
    SerialFor serial;
    testing::run_int8_linear(kernel, p, a, weights(), serial);
    return out.copy();
  }

  // The contract's formula in double, on rows quantized by the scalar kernel.
  std::vector<double> expected(const Epilogue& e, RowFormat format) const {
    std::vector<double> y(static_cast<size_t>(p.m * p.n));
    std::vector<uint8_t> q(static_cast<size_t>(p.k));
    for (int64_t i = 0; i < p.m; ++i) {
      const RowScale s = quantize_rows_kernels().back().row(x.data() + i * p.k, p.k, format, q.data());
      for (int64_t j = 0; j < p.n; ++j) {
        int64_t a = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          const uint8_t byte = q[static_cast<size_t>(k)];
          a += int64_t{format == RowFormat::kS8 ? static_cast<int8_t>(byte) : byte - s.zero_point} *
               w[j * p.k + k];
        }
        double v = static_cast<double>(a) * s.scale * scale[j];
        if (e.bias != nullptr) v += e.bias[j];
        y[static_cast<size_t>(i * p.n + j)] = v;
      }
    }
    return y;
  }
};

TEST(Int8LinearFloat, EveryEpilogueIsWithinItsBound) {
  for (const Int8LinearProblem& p : {Int8LinearProblem{5, 35, 70, 8}, Int8LinearProblem{13, 50, 64, 7}}) {
    const Layer layer(p);
    for (RowFormat format : {RowFormat::kU8, RowFormat::kS8}) {
      for (Activation activation : kAllActivations) {
        for (int parts = 0; parts < 4; ++parts) {
          Epilogue e;
          e.activation = activation;
          if (parts & 1) e.bias = layer.bias.data();
          if (parts & 2) e.residual = layer.residual.data();
          e.residual_stride = p.n;
          const std::vector<double> sums = layer.expected(e, format);
          for (const Int8LinearKernel& kernel : testing::int8_test_kernels()) {
            if (kernel.refuse(p) != nullptr) continue;
            const std::vector<float> y = layer.run(kernel, e, format);
            for (size_t i = 0; i < y.size(); ++i) {
              double want = testing::exact_activation(sums[i], activation);
              // Four roundings of the sum (amplified at most 1.2 times by an activation), those of activation
              // and residual.
              double bound =
                  4 * 6e-8 * 1.2 * (std::abs(sums[i]) + 3.0) + kActivationRelative * std::abs(want);
              if (parts & 2) want += layer.residual[static_cast<int64_t>(i)];
              bound += 6e-8 * std::abs(want);
              ASSERT_NEAR(y[i], want, bound)
                  << kernel.name << " " << i << " activation " << static_cast<int>(activation);
            }
          }
        }
      }
    }
  }
}

TEST(Int8LinearFloat, WithoutActivationFloatsAreTheSameOnEveryLevel) {
  const Layer layer({9, 40, 100, 7});
  Epilogue e;
  e.bias = layer.bias.data();
  e.residual = layer.residual.data();
  e.residual_stride = layer.p.n;
  const std::vector<float> want = layer.run(int8_linear_kernels().back(), e);
  for (const Int8LinearKernel& kernel : testing::int8_test_kernels())
    EXPECT_EQ(layer.run(kernel, e), want) << kernel.name;
}

TEST(Int8LinearFloat, Bfloat16IsTheRoundedFloat) {
  const Layer layer({3, 21, 40, 8});
  SerialFor serial;
  for (const Int8LinearKernel& kernel : testing::int8_test_kernels()) {
    if (kernel.refuse(layer.p) != nullptr) continue;
    Guarded<uint16_t> out(layer.p.m * layer.p.n);
    testing::run_int8_linear(kernel, layer.p, layer.args(out.data(), OutputType::kBFloat16), layer.weights(),
                             serial);
    const std::vector<float> floats = layer.run(kernel);
    for (size_t i = 0; i < floats.size(); ++i)
      EXPECT_EQ(out[static_cast<int64_t>(i)], to_bfloat16(floats[i])) << kernel.name;
  }
}

TEST(Int8LinearFloat, QuantizedRowsFeedTheNextLayer) {
  const Layer layer({7, 37, 40, 8});
  const int64_t m = layer.p.m, n = layer.p.n;
  ThreadPool pool(2);
  for (RowFormat format : {RowFormat::kU8, RowFormat::kS8}) {
    for (const Int8LinearKernel& kernel : testing::int8_test_kernels()) {
      if (kernel.refuse(layer.p) != nullptr) continue;
      Guarded<uint8_t> out(m * n);
      Guarded<float> scale(m);
      Guarded<int32_t> zero(m);
      Int8LinearArgs args = layer.args(out.data(), OutputType::kQuantizedRows);
      args.epilogue.row_format = format;
      args.epilogue.out_scale = scale.data();
      args.epilogue.out_zero_point = zero.data();
      testing::run_int8_linear(kernel, layer.p, args, layer.weights(), pool);
      const std::vector<float> floats = layer.run(kernel);
      std::vector<uint8_t> q(static_cast<size_t>(n));
      for (int64_t r = 0; r < m; ++r) {
        const RowScale want = quantize_rows_kernels().back().row(floats.data() + r * n, n, format, q.data());
        EXPECT_EQ(scale[r], want.scale);
        EXPECT_EQ(zero[r], want.zero_point);
        EXPECT_EQ(std::memcmp(q.data(), out.data() + r * n, q.size()), 0) << kernel.name;
      }
    }
  }
}

// A row's result does not depend on the rows beside it, nor on how many threads share them: enough rows for
// groups of blocks, and too few.
TEST(Int8LinearFloat, AnyNumberOfThreadsGivesTheSameRows) {
  for (int64_t m : {200, 61}) {
    const Layer layer({m, 45, 40, 7});
    const int64_t n = layer.p.n;
    const auto run = [&](const Int8LinearKernel& kernel, int64_t first, int64_t rows,
                         ParallelFor& parallel_for) {
      Guarded<uint8_t> out(rows * n);
      Guarded<float> scale(rows);
      Guarded<int32_t> zero(rows);
      Int8LinearArgs args = layer.args(out.data(), OutputType::kQuantizedRows);
      args.x += first * layer.p.k;
      args.epilogue.bias = layer.bias.data();
      args.epilogue.residual = layer.residual.data() + first * n;
      args.epilogue.residual_stride = n;
      args.epilogue.activation = Activation::kGeluErf;
      args.epilogue.out_scale = scale.data();
      args.epilogue.out_zero_point = zero.data();
      testing::run_int8_linear(kernel, {rows, n, layer.p.k, 7}, args, layer.weights(), parallel_for);
      return std::make_tuple(out.copy(), scale.copy(), zero.copy());
    };
    for (const Int8LinearKernel& kernel : testing::int8_test_kernels()) {
      SerialFor serial;
      const auto [out, scale, zero] = run(kernel, 0, m, serial);
      for (int64_t r : {int64_t{0}, int64_t{7}, m / 2, m - 1}) {
        const auto [row, row_scale, row_zero] = run(kernel, r, 1, serial);
        EXPECT_EQ(scale[static_cast<size_t>(r)], row_scale[0]) << kernel.name << " row " << r;
        EXPECT_EQ(zero[static_cast<size_t>(r)], row_zero[0]) << kernel.name;
        EXPECT_TRUE(std::equal(row.begin(), row.end(), out.begin() + r * n)) << kernel.name;
      }
      for (int threads : {2, 3, 8}) {
        ThreadPool pool(threads);
        EXPECT_EQ(run(kernel, 0, m, pool), std::make_tuple(out, scale, zero)) << kernel.name << threads;
      }
    }
  }
}

// A ParallelFor inside another parallel region has one thread; the workspace was made for more.
TEST(Int8LinearFloat, AWorkspaceForMoreThreadsIsEnough) {
  const Int8LinearKernel& kernel = int8_linear_kernels().back();
  for (int64_t m = 1; m < 150; ++m) {
    size_t most = 0;
    for (int threads = 1; threads < 12; ++threads) {
      const size_t bytes =
          int8_linear_workspace_bytes(kernel, {m, 64, 16, 8}, threads, OutputType::kQuantizedRows);
      EXPECT_GE(bytes, most) << m << " rows, threads " << threads;
      most = bytes;
    }
  }
}

TEST(Int8LinearFloat, RowsThatAreNotFiniteBecomeNanAndLeaveOthersAlone) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    for (Activation activation : kAllActivations) {
      Layer layer({5, 18, 33, 7});
      layer.x[2 * layer.p.k + 32] = bad;
      Epilogue e;
      e.activation = activation;
      for (const Int8LinearKernel& kernel : testing::int8_test_kernels()) {
        const std::vector<float> y = layer.run(kernel, e);
        for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
          EXPECT_EQ(std::isnan(y[static_cast<size_t>(i)]), i / layer.p.n == 2) << kernel.name;
        }
      }
    }
  }
}

TEST(Int8LinearFloat, ZeroDenormalAndHugeRowsAreDefined) {
  Layer layer({4, 18, 33, 8});
  for (int64_t k = 0; k < layer.p.k; ++k) {
    layer.x[k] = 0.0f;
    layer.x[layer.p.k + k] = 1e-41f;
    layer.x[2 * layer.p.k + k] *= 1e36f;
  }
  layer.x[3 * layer.p.k + 5] = 1e30f;
  for (int64_t j = 0; j < layer.p.n; ++j) layer.scale[j] = j == 4 ? 0.0f : 1e-3f;
  const std::vector<double> want = layer.expected({}, RowFormat::kU8);
  for (const Int8LinearKernel& kernel : testing::int8_test_kernels()) {
    if (kernel.refuse(layer.p) != nullptr) continue;
    const std::vector<float> y = layer.run(kernel);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_TRUE(std::isfinite(y[i]));
      EXPECT_NEAR(y[i], want[i], 3e-7 * std::abs(want[i]) + 1e-37) << kernel.name << " " << i;
    }
    for (int64_t j = 0; j < layer.p.n; ++j) EXPECT_EQ(y[static_cast<size_t>(j)], 0.0f);
    for (int64_t r = 0; r < layer.p.m; ++r) EXPECT_EQ(y[static_cast<size_t>(r * layer.p.n + 4)], 0.0f);
  }
}

TEST(Int8LinearFloat, MisalignedAndStridedRowsWork) {
  const Layer layer({6, 20, 50, 7});
  const int64_t m = layer.p.m, n = layer.p.n, k = layer.p.k;
  SerialFor serial;
  for (int64_t shift : {1, 3}) {
    Guarded<float> x(m * (k + 7) + shift), out(m * (n + 5) + shift, -3.0f);
    for (int64_t r = 0; r < m; ++r) std::copy_n(layer.x.data() + r * k, k, x.data() + shift + r * (k + 7));
    for (const Int8LinearKernel& kernel : testing::int8_test_kernels()) {
      Int8LinearArgs args = layer.args(out.data() + shift);
      args.x = x.data() + shift;
      args.x_stride = k + 7;
      args.epilogue.out_stride = n + 5;
      testing::run_int8_linear(kernel, layer.p, args, layer.weights(), serial);
      const std::vector<float> want = layer.run(kernel);
      for (int64_t r = 0; r < m; ++r) {
        for (int64_t j = 0; j < n; ++j)
          EXPECT_EQ(out[shift + r * (n + 5) + j], want[static_cast<size_t>(r * n + j)]);
        for (int64_t j = n; j < n + 5; ++j) EXPECT_EQ(out[shift + r * (n + 5) + j], -3.0f) << kernel.name;
      }
    }
  }
}

TEST(Int8LinearFloat, EmptySizesAreDefined) {
  for (const Int8LinearKernel& kernel : testing::int8_test_kernels()) {
    const Layer no_rows({0, 5, 8, 7}), no_columns({3, 0, 8, 7}), no_k({3, 5, 0, 7});
    EXPECT_TRUE(no_rows.run(kernel).empty());
    EXPECT_TRUE(no_columns.run(kernel).empty());
    EXPECT_EQ(no_k.run(kernel), std::vector<float>(15, 0.0f)) << kernel.name;
  }
}

TEST(Int8LinearFloat, ArgumentsThatDoNotFitAreRefused) {
  const Layer layer({3, 20, 16, 8});
  const Int8LinearKernel& kernel = int8_linear_kernels().back();
  SerialFor serial;
  testing::Aligned packed(int8_packed_bytes(20, 16, kernel.tile));
  pack_int8_weights(layer.weights(), kernel.tile, packed.data());
  std::vector<float> out(60);
  std::vector<char> workspace(int8_linear_workspace_bytes(kernel, layer.p, 1, OutputType::kFloat32));
  Int8LinearArgs good = layer.args(out.data());
  good.weights = packed.data();
  good.workspace = workspace.data();
  good.workspace_bytes = workspace.size();
  EXPECT_NO_THROW(int8_linear(kernel, layer.p, good, serial));

  Int8LinearArgs bad = good;
  bad.workspace_bytes = 100;
  EXPECT_THROW(int8_linear(kernel, layer.p, bad, serial), Error);
  bad = good;
  bad.x = nullptr;
  EXPECT_THROW(int8_linear(kernel, layer.p, bad, serial), Error);
  bad = good;
  bad.epilogue.out = nullptr;
  EXPECT_THROW(int8_linear(kernel, layer.p, bad, serial), Error);
  EXPECT_THROW(int8_linear(kernel, {3, 20, 15, 8}, good, serial), Error);
  EXPECT_THROW(int8_linear(kernel, {3, 20, 16, 7}, good, serial), Error);
}

}  // namespace
}  // namespace halftone::kernels
