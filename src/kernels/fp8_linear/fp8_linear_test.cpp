#include "kernels/fp8_linear/fp8_linear.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/common/linear_test_support.h"
#include "kernels/fp8_linear/kernels.h"

namespace halftone::kernels {
namespace {

using testing::Aligned;
using testing::Guarded;
using testing::Random;

constexpr Fp8Activations kAllActivationModes[] = {Fp8Activations::kFloat32, Fp8Activations::kDynamicE4m3};

// What runs here for so many rows, and the AVX-512 one through its emulation, which is for one block of rows.
std::vector<Fp8LinearKernel> test_kernels(int64_t m) {
  std::vector<Fp8LinearKernel> kernels = testing::runnable(fp8_linear_kernels());
#if defined(HALFTONE_EMULATED_KERNELS)
  if (machine_isa() >= Isa::kAvx2 && m <= 12) {
    Fp8LinearKernel kernel = fp8_linear_kernels().front();
    kernel.name = "fp8_linear_f32f8_12x32_avx512vnni_emulated";
    kernel.multiply[0] = fp8_multiply_e4m3fn_avx512vnni_emulated;
    kernel.multiply[1] = fp8_multiply_e5m2_avx512vnni_emulated;
    kernels.push_back(kernel);
  }
#endif
  return kernels;
}

struct Layer {
  Fp8LinearProblem p;
  Float8Format format;
  Guarded<float> x, scale;
  Guarded<uint8_t> w;

  explicit Layer(Fp8LinearProblem problem, Float8Format weights = Float8Format::kE4m3fn)
      : p(problem), format(weights), x(p.m * p.k), scale(p.n), w(p.n * p.k) {
    Random random(3);
    random.fill_normal(x);
    const int last = format == Float8Format::kE4m3fn ? 0x7e : 0x7b;
    for (int64_t i = 0; i < w.size(); ++i) {
      w[i] = static_cast<uint8_t>(random.integer(0, last) | random.integer(0, 1) << 7);
    }
    for (int64_t i = 0; i < p.n; ++i) scale[i] = 0.001f * static_cast<float>(random.integer(1, 20));
  }

  std::vector<float> run(const Fp8LinearKernel& kernel, ParallelFor& parallel_for, Epilogue e = {},
                         int64_t scale_stride = 1, const uint16_t* halves = nullptr) const {
    Aligned packed(fp8_packed_bytes(p.n, p.k, kernel.tile_n));
    pack_fp8_weights({w.data(), p.k, scale.data(), scale_stride, p.n, p.k, format}, kernel.tile_n,
                     packed.data());
    Guarded<float> out(p.m * p.n, -7.0f);
    const size_t bytes = fp8_linear_workspace_bytes(p, parallel_for.threads(), e.type);
    Guarded<unsigned char> workspace(static_cast<int64_t>(bytes), 0xff);
    e.out = out.data();
    e.out_stride = p.n;
    const float* floats = halves != nullptr ? nullptr : x.data();
    fp8_linear(kernel, p, {floats, p.k, packed.data(), e, workspace.data(), bytes, halves}, parallel_for);
    return out.copy();
  }

  // The activation that is multiplied, in double precision.
  double activation(int64_t i, int64_t k, float row_scale) const {
    const float value = x[i * p.k + k];
    if (p.activations == Fp8Activations::kFloat32) return value;
    const uint8_t q = float8_from_float(value / row_scale, Float8Format::kE4m3fn);
    return double{float8_to_float(q, Float8Format::kE4m3fn)} * row_scale;
  }

  void expect_within_bound(int64_t scale_stride = 1) const {
    SerialFor serial;
    for (const Fp8LinearKernel& kernel : test_kernels(p.m)) {
      const std::vector<float> y = run(kernel, serial, {}, scale_stride);
      for (int64_t i = 0; i < p.m; ++i) {
        const float row_scale = float8_row_scale(x.data() + i * p.k, p.k);
        for (int64_t j = 0; j < p.n; ++j) {
          double sum = 0, magnitude = 0;
          for (int64_t k = 0; k < p.k; ++k) {
            const double product = activation(i, k, row_scale) * float8_to_float(w[j * p.k + k], format) *
                                   double{scale[j * scale_stride]};
            sum += product;
            magnitude += std::abs(product);
          }
          ASSERT_LE(
              std::abs(y[static_cast<size_t>(i * p.n + j)] - sum),
              (static_cast<double>(p.k) + 6) * 5.97e-8 * magnitude + static_cast<double>(p.k) * 0x1p-140)
              << kernel.name << " " << p.m << "x" << p.n << "x" << p.k << " at " << i << "," << j;
        }
      }
    }
  }
};

TEST(Fp8Linear, TableIsWellFormedAndFitsTheMultiplyingKernels) {
  testing::expect_well_formed(fp8_linear_kernels(), "fp8_linear");
  for (const Fp8LinearKernel& kernel : fp8_linear_kernels()) {
    EXPECT_EQ(kernel.tile_n, choose_fp32_linear({1, 1, 1}, kernel.isa).tile_n) << kernel.name;
    EXPECT_EQ(choose_fp8_linear({1, 1, 1}, kernel.isa).name, kernel.name);
  }
  EXPECT_THROW(choose_fp8_linear({-1, 1, 1}), Error);
}

TEST(Fp8Linear, EdgeSizesAreWithinTheBound) {
  for (Fp8Activations mode : kAllActivationModes) {
    for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 13}) {
      for (int64_t n : {1, 15, 16, 17, 64, 65, 130}) {
        for (int64_t k : {1, 2, 7, 33, 256, 257, 600}) {
          Layer({m, n, k, mode}).expect_within_bound();
          if (HasFatalFailure()) return;
        }
      }
    }
    Layer({200, 70, 300, mode}).expect_within_bound();
  }
}

TEST(Fp8Linear, E5m2AndOneScaleForAllAreWithinTheBound) {
  for (Fp8Activations mode : kAllActivationModes) {
    for (int64_t m : {1, 7}) {
      Layer({m, 97, 130, mode}, Float8Format::kE5m2).expect_within_bound();
      Layer({m, 97, 130, mode}).expect_within_bound(0);
      Layer({m, 97, 130, mode}, Float8Format::kE5m2).expect_within_bound(0);
    }
  }
}

// Zero rows, denormal rows, one outlier and rows at the end of the range, in both modes.
TEST(Fp8Linear, ExtremeRowsAreDefined) {
  for (Fp8Activations mode : kAllActivationModes) {
    Layer layer({5, 40, 50, mode});
    for (int64_t k = 0; k < 50; ++k) {
      layer.x[k] = 0.0f;
      layer.x[50 + k] = 1e-42f * static_cast<float>(k);
      layer.x[150 + k] *= 1e-30f;
    }
    layer.x[100 + 9] = 1e30f;
    layer.expect_within_bound();
    SerialFor serial;
    for (const Fp8LinearKernel& kernel : test_kernels(layer.p.m)) {
      const std::vector<float> y = layer.run(kernel, serial);
      for (size_t j = 0; j < 40; ++j) EXPECT_EQ(y[j], 0.0f);
    }
  }
}

TEST(Fp8Linear, RoundedRowsAreTheSameOnEveryLevelAndWithinTheirBound) {
  Random random(5);
  for (int64_t k : {0, 1, 7, 8, 9, 40, 100}) {
    for (float sigma : {1.0f, 1e-40f, 1e30f}) {
      Guarded<float> x(k), want(k), got(k);
      random.fill_normal(x, sigma);
      const float scale = fp8_round_row_scalar(x.data(), k, want.data());
      EXPECT_EQ(scale, float8_row_scale(x.data(), k));
      for (int64_t i = 0; i < k; ++i) {
        EXPECT_LE(std::abs(double{x[i]} - want[i]), 0.0626 * std::abs(x[i]) + 0.00098 * scale);
      }
      for (const Fp8LinearKernel& kernel : testing::runnable(fp8_linear_kernels())) {
        EXPECT_EQ(kernel.round_row(x.data(), k, got.data()), scale) << kernel.name;
        EXPECT_EQ(std::memcmp(got.data(), want.data(), static_cast<size_t>(k) * sizeof(float)), 0)
            << kernel.name;
      }
    }
  }
}

// The AVX-512 entry expands with AVX2, panels of 32; and panels that are multiplied together are as they are
// alone.
TEST(Fp8Linear, PanelsOfThirtyTwoExpandAndMultiplyTheSame) {
#if defined(HALFTONE_X86)
  if (machine_isa() < Isa::kAvx2) GTEST_SKIP();
  for (Float8Format format : kAllFloat8Formats) {
    const Layer layer({1, 150, 70}, format);
    Aligned block(fp8_packed_bytes(150, 70, 32));
    pack_fp8_weights({layer.w.data(), 70, layer.scale.data(), 1, 150, 70, format}, 32, block.data());
    const PackedPanels packed = open_fp8_packed(block.data(), 32);
    Guarded<float> want(64 * 32), got(64 * 32);
    fp8_expand_scalar(&packed, 2, 3, 64, want.data());
    fp8_expand_avx2(&packed, 2, 3, 64, got.data());
    EXPECT_EQ(want.copy(), got.copy());
    for (int count = 1; count <= 6; ++count) {
      Guarded<float> rows(count * 70), four(4 * count * 32), one(count * 32);
      Random(7).fill_normal(rows);
      fp8_multiply_rows_avx2(&packed, rows.data(), count, 0, 4, four.data());
      for (int64_t p = 0; p < 4; ++p) {
        fp8_multiply_rows_avx2(&packed, rows.data(), count, p, 1, one.data());
        EXPECT_EQ(std::memcmp(one.data(), four.data() + p * count * 32,
                              sizeof(float) * 32 * static_cast<size_t>(count)),
                  0)
            << count << " " << p;
      }
    }
  }
#endif
}

TEST(Fp8Linear, ThreadsEpiloguesAndNanWork) {
  for (Fp8Activations mode : kAllActivationModes) {
    Layer layer({9, 130, 300, mode});
    layer.x[4 * 300 + 299] = NAN;
    layer.x[5 * 300] = INFINITY;
    SerialFor serial;
    ThreadPool pool(2);
    for (const Fp8LinearKernel& kernel : test_kernels(layer.p.m)) {
      Epilogue e;
      e.activation = Activation::kRelu;
      const std::vector<float> plain = layer.run(kernel, serial), relu = layer.run(kernel, pool, e);
      for (size_t i = 0; i < plain.size(); ++i) {
        const size_t row = i / 130;
        EXPECT_EQ(std::isfinite(plain[i]), row != 4 && row != 5) << kernel.name;
        if (row == 4 || (row == 5 && mode == Fp8Activations::kDynamicE4m3)) {
          EXPECT_TRUE(std::isnan(relu[i])) << kernel.name;
        } else if (row != 5) {
          EXPECT_EQ(relu[i], std::max(plain[i], 0.0f)) << kernel.name;
        }
      }
    }
  }
}

TEST(Fp8Linear, Bfloat16ActivationsAreTheSameAsWidenedAndAreNotRounded) {
  SerialFor serial;
  for (int64_t m : {1, 4, 9}) {
    Layer layer({m, 70, 300});
    Guarded<uint16_t> halves(layer.x.size());
    testing::round_to_bfloat16(layer.x, halves);
    for (const Fp8LinearKernel& kernel : test_kernels(m))
      EXPECT_EQ(layer.run(kernel, serial, {}, 1, halves.data()), layer.run(kernel, serial)) << kernel.name;
    layer.p.activations = Fp8Activations::kDynamicE4m3;
    EXPECT_THROW(layer.run(fp8_linear_kernels().back(), serial, {}, 1, halves.data()), Error);
  }
}

TEST(Fp8Linear, TwoThreadsReallyRun) {
  const Layer layer({64, 512, 256, Fp8Activations::kDynamicE4m3});
  testing::CountingParallelFor parallel_for;
  for (int i = 0; i < 50 && parallel_for.threads_seen() < 2; ++i)
    layer.run(choose_fp8_linear(layer.p, machine_isa()), parallel_for);
  EXPECT_EQ(parallel_for.threads_seen(), 2u);
}

TEST(Fp8Linear, EmptySizesAreDefined) {
  SerialFor serial;
  for (Fp8Activations mode : kAllActivationModes) {
    for (const Fp8LinearKernel& kernel : test_kernels(3)) {
      EXPECT_TRUE(Layer({0, 5, 8, mode}).run(kernel, serial).empty());
      EXPECT_TRUE(Layer({3, 0, 8, mode}).run(kernel, serial).empty());
      EXPECT_EQ(Layer({3, 5, 0, mode}).run(kernel, serial), std::vector<float>(15, 0.0f));
      EXPECT_EQ(Layer({1, 70, 0, mode}).run(kernel, serial), std::vector<float>(70, 0.0f));
    }
  }
}

TEST(Fp8Linear, BadWeightsAndArgumentsAreRefused) {
  SerialFor serial;
  const Fp8LinearKernel& kernel = fp8_linear_kernels().back();
  for (float scale : {NAN, INFINITY, -1.0f, FLT_MAX}) {
    Layer bad({1, 2, 3});
    bad.scale[1] = scale;
    EXPECT_THROW(bad.run(kernel, serial), Error);
  }
  for (auto [code, format] : {std::pair(0x7f, Float8Format::kE4m3fn), std::pair(0xff, Float8Format::kE4m3fn),
                              std::pair(0x7c, Float8Format::kE5m2), std::pair(0xfe, Float8Format::kE5m2)}) {
    Layer bad({1, 2, 3}, format);
    bad.w[4] = static_cast<uint8_t>(code);
    try {
      bad.run(kernel, serial);
      ADD_FAILURE() << code;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("weight 1 of channel 1"), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(open_fp8_packed(nullptr, 16), Error);
  EXPECT_THROW(fp8_packed_bytes(1, -1, 16), Error);

  const Layer layer({2, 20, 16, Fp8Activations::kDynamicE4m3});
  Aligned packed(fp8_packed_bytes(20, 16, kernel.tile_n));
  pack_fp8_weights({layer.w.data(), 16, layer.scale.data(), 1, 20, 16, layer.format}, kernel.tile_n,
                   packed.data());
  std::vector<float> out(40);
  std::vector<char> workspace(fp8_linear_workspace_bytes(layer.p, 1, OutputType::kFloat32));
  Fp32LinearArgs good{layer.x.data(), 16, packed.data(), {}, workspace.data(), workspace.size()};
  good.epilogue.out = out.data();
  good.epilogue.out_stride = 20;
  EXPECT_NO_THROW(fp8_linear(kernel, layer.p, good, serial));
  EXPECT_THROW(fp8_linear(kernel, {2, 20, 15}, good, serial), Error);
  for (size_t bytes : {size_t{0}, size_t{130}, size_t{1000}}) {
    Fp32LinearArgs bad = good;
    bad.workspace_bytes = bytes;
    EXPECT_THROW(fp8_linear(kernel, layer.p, bad, serial), Error);
  }
}

}  // namespace
}  // namespace halftone::kernels
