#include "kernels/int4_weight_only_linear/int4_weight_only_linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/common/linear_test_support.h"
#include "kernels/int4_weight_only_linear/kernels.h"

namespace halftone::kernels {
namespace {

using testing::Aligned;
using testing::Guarded;
using testing::Random;

// What runs here for so many rows, and the AVX-512 one through its emulation, which is for one block of rows.
std::vector<Int4WeightOnlyKernel> test_kernels(int64_t m) {
  std::vector<Int4WeightOnlyKernel> kernels = testing::runnable(int4_weight_only_kernels());
#if defined(HALFTONE_EMULATED_KERNELS)
  Int4WeightOnlyKernel kernel = int4_weight_only_kernels().front();
  if (machine_isa() >= Isa::kAvx2 && m <= kernel.fused_rows) {
    kernel.name = "int4_weight_only_linear_f32s4_12x32_avx512vnni_emulated";
    kernel.multiply_rows = int4_multiply_rows_avx512vnni_emulated;
    kernels.push_back(kernel);
  }
#endif
  return kernels;
}

struct Layer {
  Int4WeightOnlyProblem p;
  bool has_zero, floats = false;  // zero points; they are floats
  int64_t groups;
  Guarded<float> x, scale;
  Guarded<int8_t> w, zero;
  Guarded<float> float_zero;

  Layer(Int4WeightOnlyProblem problem, bool zero_points)
      : p(problem),
        has_zero(zero_points),
        groups((p.k + p.group - 1) / p.group),
        x(p.m * p.k),
        scale(p.n * groups),
        w(p.n * p.k),
        zero(p.n * groups),
        float_zero(p.n * groups) {
    Random random(3);
    random.fill_normal(x);
    for (int64_t i = 0; i < w.size(); ++i) w[i] = static_cast<int8_t>(random.integer(-8, 7));
    for (int64_t i = 0; i < scale.size(); ++i) {
      scale[i] = 0.01f * static_cast<float>(random.integer(1, 20));
      zero[i] = static_cast<int8_t>(has_zero ? random.integer(-8, 7) : 0);
    }
  }

  /// Between the integers and far outside of the weights' range.
  void make_zero_points_floats() {
    floats = true;
    Random random(4);
    for (int64_t i = 0; i < zero.size(); ++i)
      float_zero[i] = 0.37f * static_cast<float>(random.integer(-100, 100)) + 0.1f;
  }
  float zero_of(int64_t group) const { return floats ? float_zero[group] : static_cast<float>(zero[group]); }

  Int4WeightOnlyWeights weights() const {
    const bool integers = has_zero && !floats;
    return {w.data(), p.k, scale.data(), integers ? zero.data() : nullptr,
            p.n,      p.k, p.group,      floats ? float_zero.data() : nullptr};
  }

  std::vector<float> run(const Int4WeightOnlyKernel& kernel, ParallelFor& parallel_for,
                         const uint16_t* halves = nullptr) const {
    Aligned packed(int4_weight_only_packed_bytes(p.n, p.k, p.group, weights().zero_points(), kernel.tile_n));
    pack_int4_weight_only(weights(), kernel.tile_n, packed.data());
    Guarded<float> out(p.m * p.n, -7.0f);
    const size_t bytes = int4_weight_only_workspace_bytes(p, parallel_for.threads(), OutputType::kFloat32);
    Guarded<unsigned char> workspace(static_cast<int64_t>(bytes), 0xff);
    Epilogue e;
    e.out = out.data();
    e.out_stride = p.n;
    int4_weight_only_linear(
        kernel, p,
        {halves != nullptr ? nullptr : x.data(), p.k, packed.data(), e, workspace.data(), bytes, halves},
        parallel_for);
    return out.copy();
  }

  void expect_within_bound() const {
    SerialFor serial;
    for (const Int4WeightOnlyKernel& kernel : test_kernels(p.m)) {
      const std::vector<float> y = run(kernel, serial);
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j) {
          double sum = 0, magnitude = 0;
          for (int64_t k = 0; k < p.k; ++k) {
            const int64_t g = j * groups + k / p.group;
            sum += double{x[i * p.k + k]} * (w[j * p.k + k] - double{zero_of(g)}) * double{scale[g]};
            magnitude += std::abs(double{x[i * p.k + k]}) *
                         (std::abs(w[j * p.k + k]) + std::abs(double{zero_of(g)}) + 16) * double{scale[g]};
          }
          ASSERT_LE(
              std::abs(y[static_cast<size_t>(i * p.n + j)] - sum),
              (static_cast<double>(p.k) + 8) * 5.97e-8 * magnitude + static_cast<double>(p.k) * 0x1p-122)
              << kernel.name << " " << p.m << "x" << p.n << "x" << p.k << " group " << p.group << " at " << i
              << "," << j;
        }
      }
    }
  }
};

TEST(Int4WeightOnlyLinear, TableIsWellFormedAndFitsTheMultiplyingKernels) {
  testing::expect_well_formed(int4_weight_only_kernels(), "int4_weight_only_linear");
  for (const Int4WeightOnlyKernel& kernel : int4_weight_only_kernels()) {
    EXPECT_EQ(kernel.tile_n, choose_fp32_linear({1, 1, 1}, kernel.isa).tile_n) << kernel.name;
    EXPECT_EQ(choose_int4_weight_only({1, 1, 32, 32}, kernel.isa).name, kernel.name);
  }
}

TEST(Int4WeightOnlyLinear, EdgeSizesAreWithinTheBound) {
  for (bool zero : {false, true}) {
    for (int group : {32, 64, 128, 256}) {
      for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 13}) {
        for (int64_t n : {1, 8, 9, 16, 17, 33, 64, 65, 130}) {
          for (int64_t k : {group, 256, 512, 768}) {
            Layer({m, n, k, group}, zero).expect_within_bound();
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
  Layer({200, 70, 512, 32}, true).expect_within_bound();
}

TEST(Int4WeightOnlyLinear, EveryWeightAndZeroPointIsExact) {
  SerialFor serial;
  for (int zero = -8; zero <= 7; ++zero) {
    for (int w = -8; w <= 7; ++w) {
      Layer layer({1, 33, 32, 32}, true);
      for (int64_t i = 0; i < layer.w.size(); ++i) layer.w[i] = static_cast<int8_t>(w);
      for (int64_t i = 0; i < layer.zero.size(); ++i) layer.zero[i] = static_cast<int8_t>(zero);
      for (int64_t i = 0; i < layer.scale.size(); ++i) layer.scale[i] = 0.5f;
      for (int64_t i = 0; i < layer.x.size(); ++i) layer.x[i] = static_cast<float>(i % 5) - 1.0f;
      double sum = 0;
      for (int64_t i = 0; i < 32; ++i) sum += layer.x[i];
      for (const Int4WeightOnlyKernel& kernel : test_kernels(layer.p.m)) {
        for (float y : layer.run(kernel, serial))
          ASSERT_EQ(y, static_cast<float>(sum * (w - zero) * 0.5)) << kernel.name;
      }
    }
  }
}

// As GGUF's Q4_1 needs them: any number instead of an integer.
TEST(Int4WeightOnlyLinear, ZeroPointsMayBeFloats) {
  for (const int64_t m : {1, 3, 12, 40}) {
    Layer layer({m, 70, 512, 32}, true);
    layer.make_zero_points_floats();
    layer.expect_within_bound();
  }
  Layer coarse({2, 33, 256, 128}, true);
  coarse.make_zero_points_floats();
  coarse.expect_within_bound();
}

TEST(Int4WeightOnlyLinear, FloatZeroPointsAreChecked) {
  for (const float bad : {HUGE_VALF, std::nanf("")}) {
    Layer layer({1, 2, 32, 32}, true);
    layer.make_zero_points_floats();
    layer.float_zero[1] = bad;
    Aligned packed(int4_weight_only_packed_bytes(2, 32, 32, Int4ZeroPoints::kFloats, 16));
    EXPECT_THROW(pack_int4_weight_only(layer.weights(), 16, packed.data()), Error) << bad;
  }
  Layer partial({1, 2, 40, 32}, true);  // the last group has 8 of 32
  partial.make_zero_points_floats();
  Aligned packed(int4_weight_only_packed_bytes(2, 40, 32, Int4ZeroPoints::kFloats, 16));
  EXPECT_THROW(pack_int4_weight_only(partial.weights(), 16, packed.data()), Error);
}

// The AVX-512 entry expands with AVX2, panels of 32; and panels that are multiplied together are as they are
// alone.
TEST(Int4WeightOnlyLinear, PanelsOfThirtyTwoExpandAndMultiplyTheSame) {
#if defined(HALFTONE_X86)
  if (machine_isa() < Isa::kAvx2) GTEST_SKIP();
  for (bool zero : {false, true}) {
    const Layer layer({1, 150, 512, 64}, zero);
    Aligned block(int4_weight_only_packed_bytes(150, 512, 64, layer.weights().zero_points(), 32));
    pack_int4_weight_only(layer.weights(), 32, block.data());
    const Int4WeightOnlyPacked packed = open_int4_weight_only(block.data(), 32);
    Guarded<float> want(256 * 32), got(256 * 32);
    int4_expand_scalar(&packed, 2, 256, 256, want.data());
    int4_expand_avx2(&packed, 2, 256, 256, got.data());
    EXPECT_EQ(want.copy(), got.copy());
    for (int count = 1; count <= 6; ++count) {
      Guarded<float> rows(count * (512 + 512 / 64)), x(count * 512), four(4 * count * 32), one(count * 32);
      Random(7).fill_normal(x);
      int4_pack_rows_avx2(&packed, x.data(), 512, count, 0, 256, rows.data());
      int4_pack_rows_avx2(&packed, x.data() + 256, 512, count, 256, 256, rows.data());
      int4_multiply_rows_avx2(&packed, rows.data(), count, 0, 4, four.data());
      for (int64_t p = 0; p < 4; ++p) {
        int4_multiply_rows_avx2(&packed, rows.data(), count, p, 1, one.data());
        EXPECT_EQ(std::memcmp(one.data(), four.data() + p * count * 32,
                              sizeof(float) * 32 * static_cast<size_t>(count)),
                  0)
            << count << " " << p;
      }
    }
  }
#endif
}

TEST(Int4WeightOnlyLinear, ThreadsGiveTheSameFloatsAndNanStaysInItsRow) {
  Layer layer({9, 130, 512, 128}, true);
  layer.x[4 * 512 + 511] = NAN;
  SerialFor serial;
  ThreadPool pool(2);
  for (const Int4WeightOnlyKernel& kernel : test_kernels(9)) {
    const std::vector<float> one = layer.run(kernel, serial), two = layer.run(kernel, pool);
    EXPECT_EQ(std::memcmp(one.data(), two.data(), one.size() * sizeof(float)), 0) << kernel.name;
    for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(std::isnan(one[i]), i / 130 == 4) << kernel.name;
  }
}

// Zeros, denormals, an outlier, a scale of 0: within the bound, and finite.
TEST(Int4WeightOnlyLinear, TinyAndHugeRowsAreWithinTheBound) {
  for (int64_t m : {1, 4, 9}) {
    Layer layer({m, 40, 256, 64}, true);
    for (int64_t k = 0; k < 256; ++k) layer.x[k] *= 1e-40f;
    if (m > 1) layer.x[256 + 5] = 1e30f;
    for (int64_t k = 0; m > 1 && k < 256; ++k) layer.x[2 * 256 + k] = 0.0f;
    for (int64_t g = 0; g < 4; ++g) layer.scale[7 * 4 + g] = 0.0f;
    layer.expect_within_bound();
  }
}

TEST(Int4WeightOnlyLinear, Bfloat16ActivationsAreTheSameAsWidened) {
  for (int64_t m : {1, 4, 9}) {
    Layer layer({m, 70, 512, 128}, true);
    Guarded<uint16_t> halves(layer.x.size());
    testing::round_to_bfloat16(layer.x, halves);
    SerialFor serial;
    for (const Int4WeightOnlyKernel& kernel : test_kernels(m))
      EXPECT_EQ(layer.run(kernel, serial, halves.data()), layer.run(kernel, serial)) << kernel.name;
  }
}

TEST(Int4WeightOnlyLinear, RejectsGroupsThatThereAreNot) {
  EXPECT_THROW(choose_int4_weight_only({1, 1, 48, 16}), Error);
  EXPECT_THROW(choose_int4_weight_only({1, -1, 32, 32}), Error);
  EXPECT_THROW(int4_weight_only_packed_bytes(1, 100, 60, Int4ZeroPoints::kNone, 16), Error);
  EXPECT_THROW(int4_weight_only_packed_bytes(1, INT64_MAX - 3, 32, Int4ZeroPoints::kNone, 16), Error);
  EXPECT_THROW(int4_weight_only_packed_bytes(1, -1, 32, Int4ZeroPoints::kNone, 16), Error);
}

// Activations end at an unreadable page: nothing is read beyond k.
TEST(Int4WeightOnlyLinear, TheLastGroupMayBeShorter) {
  for (bool zero : {false, true}) {
    for (int group : {32, 128}) {
      for (int64_t m : {1, 3, 13, 40}) {
        for (int64_t n : {1, 33, 130}) {
          for (int64_t k : {1, 31, 33, 100, 257, 300}) {
            Layer({m, n, k, group}, zero).expect_within_bound();
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(Int4WeightOnlyLinear, AShorterGroupTakesBfloat16AndThreads) {
  Layer layer({40, 70, 100, 32}, true);
  Guarded<uint16_t> halves(layer.x.size());
  testing::round_to_bfloat16(layer.x, halves);
  SerialFor serial;
  ThreadPool pool(3);
  for (const Int4WeightOnlyKernel& kernel : test_kernels(40)) {
    EXPECT_EQ(layer.run(kernel, serial, halves.data()), layer.run(kernel, serial)) << kernel.name;
    EXPECT_EQ(layer.run(kernel, pool), layer.run(kernel, serial)) << kernel.name;
  }
}

TEST(Int4WeightOnlyLinear, ABlockThatLiesAboutItsInputsIsRefused) {
  const Layer layer({1, 20, 33, 32}, true);
  SerialFor serial;
  const Int4WeightOnlyKernel& kernel = int4_weight_only_kernels().back();
  Aligned packed(int4_weight_only_packed_bytes(20, 33, 32, Int4ZeroPoints::kIntegers, kernel.tile_n));
  pack_int4_weight_only(layer.weights(), kernel.tile_n, packed.data());
  const auto check = [&] {
    Int4Weights last = layer.weights();
    const int64_t first = last_packed_panel(20, kernel.tile_n);
    last.w += first * last.stride;
    last.scale += first * layer.groups;
    last.zero_point += first * layer.groups;
    last.n -= first;
    check_int4_weight_only_packed(last, 20, kernel.tile_n, packed.data());
  };
  EXPECT_NO_THROW(check());
  auto& header = *reinterpret_cast<PackedHeader*>(packed.data());
  for (int64_t k : {int64_t{32}, int64_t{34}, int64_t{64}, int64_t{65}, int64_t{-33}, INT64_MAX}) {
    header.k = k;
    EXPECT_THROW(check(), Error) << k;
    std::vector<float> out(20);
    std::vector<char> space(int4_weight_only_workspace_bytes(layer.p, 1, OutputType::kFloat32));
    Epilogue e;
    e.out = out.data();
    e.out_stride = 20;
    EXPECT_THROW(
        int4_weight_only_linear(kernel, layer.p,
                                {layer.x.data(), 33, packed.data(), e, space.data(), space.size()}, serial),
        Error)
        << k;
  }
}

TEST(Int4WeightOnlyLinear, RejectsWhatFourBitsCannotHold) {
  SerialFor serial;
  const Int4WeightOnlyKernel& kernel = int4_weight_only_kernels().back();
  for (int bad : {-9, 8}) {
    Layer weights({1, 2, 32, 32}, true), zeros({1, 2, 32, 32}, true);
    weights.w[40] = static_cast<int8_t>(bad);
    zeros.zero[1] = static_cast<int8_t>(bad);
    EXPECT_THROW(weights.run(kernel, serial), Error);
    EXPECT_THROW(zeros.run(kernel, serial), Error);
  }
  Layer scales({1, 2, 32, 32}, false);
  for (float bad : {NAN, INFINITY, -1.0f}) {
    scales.scale[1] = bad;
    EXPECT_THROW(scales.run(kernel, serial), Error);
  }
}

TEST(Int4WeightOnlyLinear, EmptySizesAreDefined) {
  SerialFor serial;
  for (const Int4WeightOnlyKernel& kernel : test_kernels(3)) {
    EXPECT_TRUE(Layer({0, 5, 32, 32}, false).run(kernel, serial).empty());
    EXPECT_TRUE(Layer({3, 0, 32, 32}, false).run(kernel, serial).empty());
    EXPECT_EQ(Layer({3, 5, 0, 32}, false).run(kernel, serial), std::vector<float>(15, 0.0f));
  }
}

}  // namespace
}  // namespace halftone::kernels
