#include "kernels/int4_dynamic_linear/int4_dynamic_linear.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/common/linear_test_support.h"
#include "kernels/int4_dynamic_linear/kernels.h"

namespace halftone::kernels {
namespace {

using testing::Aligned;
using testing::Guarded;
using testing::Random;

std::vector<Int4DynamicKernel> test_kernels() {
  std::vector<Int4DynamicKernel> kernels = testing::runnable(int4_dynamic_kernels());
#if defined(HALFTONE_EMULATED_KERNELS)
  if (machine_isa() >= Isa::kAvx2) {
    Int4DynamicKernel kernel = int4_dynamic_kernels().front();
    kernel.name = "int4_dynamic_linear_avx512vnni_emulated";
    kernel.multiply = int4_dynamic_multiply_avx512vnni_emulated;
    kernels.push_back(kernel);  // its isa stays: the finishing kernel is chosen by it and needs only AVX2
  }
#endif
  return kernels;
}

// Plain operands in memory that ends at an unreadable page.
struct Layer {
  Int4DynamicProblem p;
  bool has_zero, floats = false;  // zero points; they are floats
  int64_t groups;
  Guarded<float> x, scale, bias, residual;
  Guarded<int8_t> w, zero;
  Guarded<float> float_zero;
  const uint16_t* halves = nullptr;  // read instead of x, if set

  Layer(Int4DynamicProblem problem, bool zero_points)
      : p(problem),
        has_zero(zero_points),
        groups((p.k + p.group - 1) / p.group),
        x(p.m * p.k),
        scale(p.n * groups),
        bias(p.n),
        residual(p.m * p.n),
        w(p.n * p.k),
        zero(p.n * groups),
        float_zero(p.n * groups) {
    Random random(3);
    random.fill_normal(x);
    random.fill_normal(bias);
    random.fill_normal(residual);
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

  Int4Weights weights() const {
    const bool integers = has_zero && !floats;
    return {w.data(), p.k, scale.data(), integers ? zero.data() : nullptr,
            p.n,      p.k, p.group,      floats ? float_zero.data() : nullptr};
  }

  void run_to(const Int4DynamicKernel& kernel, const Epilogue& e, ParallelFor& parallel_for) const {
    Aligned packed(int4_dynamic_packed_bytes(p.n, p.k, p.group, weights().zero_points(), kernel.tile_n));
    pack_int4_dynamic(weights(), kernel.tile_n, packed.data());
    const size_t bytes = int4_dynamic_workspace_bytes(kernel, p, parallel_for.threads(), e.type);
    Guarded<unsigned char> workspace(static_cast<int64_t>(bytes), 0xff);
    int4_dynamic_linear(
        kernel, p,
        {halves != nullptr ? nullptr : x.data(), p.k, packed.data(), e, workspace.data(), bytes, halves},
        parallel_for);
  }

  std::vector<float> run(const Int4DynamicKernel& kernel, ParallelFor& parallel_for, Epilogue e = {}) const {
    Guarded<float> out(p.m * p.n, -7.0f);
    e.out = out.data();
    e.out_stride = p.n;
    run_to(kernel, e, parallel_for);
    return out.copy();
  }

  std::vector<float> run(const Int4DynamicKernel& kernel, Epilogue e = {}) const {
    SerialFor serial;
    return run(kernel, serial, e);
  }

  // The contract's formula, blocks quantized by the scalar kernel: floats in its order (s), and in double
  // with the sum of magnitudes.
  struct Expected {
    std::vector<float> s;
    std::vector<double> exact, magnitude;
  };
  Expected expected() const {
    Expected want;
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        float s = 0;
        double exact = 0, magnitude = 0;
        for (int64_t b = 0; b < p.k; b += 32) {
          int8_t q[32];
          const int64_t count = std::min<int64_t>(32, p.k - b);
          const RowScale row = quantize_rows_kernels().back().row(
              x.data() + i * p.k + b, count, RowFormat::kS8, reinterpret_cast<uint8_t*>(q));
          const int64_t g = j * groups + b / p.group;
          int64_t a = 0, sum_x = 0;
          for (int64_t k = 0; k < count; ++k) {
            a += int64_t{q[k]} * w[j * p.k + b + k];
            sum_x += q[k];
          }
          const float counted = std::fma(-zero_of(g), static_cast<float>(sum_x), static_cast<float>(a));
          s = std::fma(counted, row.scale * scale[g], s);
          const double steps = static_cast<double>(row.scale) * scale[g];
          exact += (static_cast<double>(a) - double{zero_of(g)} * static_cast<double>(sum_x)) * steps;
          magnitude += std::abs(static_cast<double>(a) * steps) +
                       std::abs(double{zero_of(g)} * static_cast<double>(sum_x) * steps);
        }
        want.s.push_back(s);
        want.exact.push_back(exact);
        want.magnitude.push_back(magnitude);
      }
    }
    return want;
  }

  void expect_exact() const {
    const Expected want = expected();
    const double bound = (static_cast<double>(p.k) / 32 + 2) * 5.97e-8;
    for (const Int4DynamicKernel& kernel : test_kernels()) {
      const std::vector<float> y = run(kernel);
      ASSERT_EQ(y, want.s) << kernel.name << " " << p.m << "x" << p.n << "x" << p.k << " group " << p.group;
      for (size_t i = 0; i < y.size(); ++i)
        ASSERT_LE(std::abs(y[i] - want.exact[i]), bound * want.magnitude[i] + 1e-44) << kernel.name;
    }
  }
};

TEST(Int4DynamicLinear, TableIsWellFormedAndEachLevelGetsItsKernel) {
  testing::expect_well_formed(int4_dynamic_kernels(), "int4_dynamic_linear");
  for (const Int4DynamicKernel& kernel : int4_dynamic_kernels()) {
    EXPECT_EQ(kernel.tile_n, choose_fp32_linear({1, 1, 1}, kernel.isa).tile_n) << kernel.name;
    EXPECT_EQ(choose_int4_dynamic({1, 1, 32, 32}, kernel.isa).name, kernel.name);
  }
  ::setenv("HALFTONE_ISA", "scalar", 1);
  EXPECT_EQ(choose_int4_dynamic({1, 1, 32, 32}).isa, Isa::kScalar);
  ::unsetenv("HALFTONE_ISA");
}

TEST(Int4DynamicLinear, EdgeSizesAreTheSameFloatsOnEveryLevel) {
  for (bool zero : {false, true}) {
    for (int group : {32, 64, 128, 256}) {
      for (int64_t m : {1, 2, 3, 4, 5, 7}) {
        for (int64_t n : {1, 8, 9, 16, 17, 33, 64, 65, 130}) {
          for (int64_t k : {group, 256}) {
            Layer({m, n, k, group}, zero).expect_exact();
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
  Layer({40, 70, 768, 32}, true).expect_exact();
  Layer({1, 16, 8192, 64}, true).expect_exact();
}

// Scales of 1 (each block holds a 127) show the integers themselves.
// Their kernels agree bit for bit too: each step is one fused multiply-add.
TEST(Int4DynamicLinear, ZeroPointsMayBeFloats) {
  for (const int64_t m : {1, 2, 6, 13}) {
    for (const int group : {32, 128}) {
      Layer layer({m, 70, 512, group}, true);
      layer.make_zero_points_floats();
      layer.expect_exact();
    }
  }
}

TEST(Int4DynamicLinear, BlocksKnowTheKindOfTheirZeroPoints) {
  for (const Int4DynamicKernel& kernel : test_kernels()) {
    Layer layer({1, 20, 64, 32}, true);
    layer.make_zero_points_floats();
    Aligned packed(int4_dynamic_packed_bytes(20, 64, 32, Int4ZeroPoints::kFloats, kernel.tile_n));
    pack_int4_dynamic(layer.weights(), kernel.tile_n, packed.data());
    EXPECT_EQ(open_int4_dynamic(packed.data(), kernel.tile_n).zero_points, Int4ZeroPoints::kFloats);
    Int4Weights last = layer.weights();
    const int64_t first = last_packed_panel(20, kernel.tile_n);
    last.w += first * 64;
    last.scale += first * 2;
    last.float_zero_point += first * 2;
    last.n -= first;
    EXPECT_NO_THROW(check_int4_dynamic_packed(last, 20, kernel.tile_n, packed.data()));
    last.float_zero_point = nullptr;
    last.zero_point = layer.zero.data() + first * 2;
    EXPECT_THROW(check_int4_dynamic_packed(last, 20, kernel.tile_n, packed.data()), Error);
  }
}

TEST(Int4DynamicLinear, ExtremeIntegersNeverSaturate) {
  Random random(5);
  for (int x : {-127, 127, 0}) {  // 0: mixed signs
    for (int w : {-8, 7, 0}) {    // 0: mixed
      for (int z : {-8, 7}) {
        Layer layer({5, 33, 512, 64}, true);
        for (int64_t i = 0; i < layer.x.size(); ++i)
          layer.x[i] = static_cast<float>(x != 0 ? x : random.integer(0, 1) == 0 ? -127 : 127);
        for (int64_t i = 0; i < layer.w.size(); ++i)
          layer.w[i] = static_cast<int8_t>(w != 0 ? w : random.integer(0, 1) == 0 ? -8 : 7);
        for (int64_t i = 0; i < layer.zero.size(); ++i) {
          layer.zero[i] = static_cast<int8_t>(z);
          layer.scale[i] = 1.0f;
        }
        for (const Int4DynamicKernel& kernel : test_kernels()) {
          const std::vector<float> y = layer.run(kernel);
          for (int64_t i = 0; i < 5; ++i) {
            for (int64_t j = 0; j < 33; ++j) {
              int64_t sum = 0;
              for (int64_t k = 0; k < 512; ++k)
                sum += static_cast<int64_t>(layer.x[i * 512 + k]) * (layer.w[j * 512 + k] - z);
              ASSERT_EQ(y[static_cast<size_t>(i * 33 + j)], static_cast<float>(sum)) << kernel.name;
            }
          }
        }
      }
    }
  }
}

TEST(Int4DynamicLinear, EveryEpilogueIsTheSumsFinished) {
  const Layer layer({7, 37, 128, 64}, true);
  for (const Int4DynamicKernel& kernel : test_kernels()) {
    const std::vector<float> sums = layer.run(kernel);
    for (Activation activation : kAllActivations) {
      Epilogue e;
      e.bias = layer.bias.data();
      e.residual = layer.residual.data();
      e.residual_stride = layer.p.n;
      e.activation = activation;
      const std::vector<float> y = layer.run(kernel, e);
      for (int64_t i = 0; i < layer.p.m * layer.p.n; ++i) {
        const double active = activate(sums[static_cast<size_t>(i)] + layer.bias[i % layer.p.n], activation);
        EXPECT_NEAR(y[static_cast<size_t>(i)], active + layer.residual[i],
                    2 * kActivationRelative * std::abs(active) + 3e-7)
            << kernel.name << " activation " << static_cast<int>(activation);
      }
    }
  }
}

TEST(Int4DynamicLinear, OutputFormatsAreMadeFromTheFloats) {
  const Layer layer({6, 35, 96, 32}, false);
  for (const Int4DynamicKernel& kernel : test_kernels()) {
    SCOPED_TRACE(kernel.name);
    testing::expect_output_formats(
        layer.run(kernel), layer.p.n,
        [&](const Epilogue& e, ParallelFor& parallel_for) { layer.run_to(kernel, e, parallel_for); });
  }
}

TEST(Int4DynamicLinear, Bfloat16ActivationsAreTheSameAsWidened) {
  Layer layer({5, 35, 608, 32}, true);
  Guarded<uint16_t> halves(layer.x.size());
  testing::round_to_bfloat16(layer.x, halves);
  for (const Int4DynamicKernel& kernel : test_kernels()) {
    const std::vector<float> want = layer.run(kernel);
    layer.halves = halves.data();
    EXPECT_EQ(layer.run(kernel), want) << kernel.name;
    layer.halves = nullptr;
  }
}

TEST(Int4DynamicLinear, NotFiniteStaysInItsRowAndTinyAndHugeAreDefined) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    Layer layer({5, 40, 128, 32}, true);
    layer.x[3 * 128 + 77] = bad;
    for (const Int4DynamicKernel& kernel : test_kernels()) {
      const std::vector<float> y = layer.run(kernel);
      for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 40 == 3) << kernel.name;
    }
  }
  Layer layer({4, 18, 64, 32}, true);
  for (int64_t k = 0; k < 64; ++k) {
    layer.x[k] = 0.0f;
    layer.x[64 + k] = 1e-41f;
    layer.x[2 * 64 + k] *= 1e36f;
  }
  layer.x[3 * 64 + 5] = 1e30f;
  for (int64_t g = 0; g < 2; ++g) layer.scale[4 * 2 + g] = 0.0f;
  layer.expect_exact();
  for (const Int4DynamicKernel& kernel : test_kernels()) {
    const std::vector<float> y = layer.run(kernel);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_TRUE(std::isfinite(y[i]));
    for (size_t j = 0; j < 18; ++j) EXPECT_EQ(y[j], 0.0f);
    for (size_t r = 0; r < 4; ++r) EXPECT_EQ(y[r * 18 + 4], 0.0f);
  }
}

TEST(Int4DynamicLinear, MisalignedAndStridedRowsWork) {
  const Layer layer({6, 20, 64, 64}, true);
  SerialFor serial;
  for (const Int4DynamicKernel& kernel : test_kernels()) {
    const std::vector<float> want = layer.run(kernel);
    Guarded<float> x(6 * 71 + 1), out(6 * 25 + 3, -3.0f);
    for (int64_t r = 0; r < 6; ++r) std::copy_n(layer.x.data() + r * 64, 64, x.data() + 1 + r * 71);
    Aligned packed(int4_dynamic_packed_bytes(20, 64, 64, Int4ZeroPoints::kIntegers, kernel.tile_n));
    pack_int4_dynamic(layer.weights(), kernel.tile_n, packed.data());
    std::vector<unsigned char> workspace(
        int4_dynamic_workspace_bytes(kernel, layer.p, 1, OutputType::kFloat32) + 1);
    Epilogue e;
    e.out = out.data() + 3;
    e.out_stride = 25;
    int4_dynamic_linear(kernel, layer.p,
                        {x.data() + 1, 71, packed.data(), e, workspace.data() + 1, workspace.size() - 1},
                        serial);
    for (int64_t i = 0; i < 6 * 25; ++i)
      EXPECT_EQ(out[3 + i], i % 25 < 20 ? want[static_cast<size_t>(i / 25 * 20 + i % 25)] : -3.0f);
  }
}

TEST(Int4DynamicLinear, TwoThreadsReallyRunAndGiveTheSameFloats) {
  const Layer layer({61, 200, 256, 128}, true);
  testing::CountingParallelFor witness;
  for (const Int4DynamicKernel& kernel : test_kernels()) {
    const std::vector<float> want = layer.run(kernel);
    EXPECT_EQ(layer.run(kernel, witness), want) << kernel.name;
  }
  const Int4DynamicKernel& best = choose_int4_dynamic(layer.p, machine_isa());
  for (int round = 0; round < 200 && witness.threads_seen() < 2; ++round) layer.run(best, witness);
  EXPECT_EQ(witness.threads_seen(), 2u);
}

TEST(Int4DynamicLinear, EmptySizesAreDefined) {
  for (const Int4DynamicKernel& kernel : test_kernels()) {
    EXPECT_TRUE(Layer({0, 5, 32, 32}, false).run(kernel).empty());
    EXPECT_TRUE(Layer({3, 0, 32, 32}, false).run(kernel).empty());
    EXPECT_EQ(Layer({3, 5, 0, 32}, false).run(kernel), std::vector<float>(15, 0.0f));
  }
}

TEST(Int4DynamicLinear, RejectsWhatItCannotTake) {
  EXPECT_THROW(choose_int4_dynamic({1, 1, 48, 16}), Error);
  EXPECT_THROW(choose_int4_dynamic({1, -1, 32, 32}), Error);
  EXPECT_THROW(int4_dynamic_packed_bytes(1, 100, 60, Int4ZeroPoints::kNone, 16), Error);
  EXPECT_THROW(int4_dynamic_packed_bytes(1, INT64_MAX - 3, 32, Int4ZeroPoints::kNone, 16), Error);
  EXPECT_THROW(int4_dynamic_packed_bytes(INT64_MAX / 2, 64, 64, Int4ZeroPoints::kNone, 16), Error);
  EXPECT_THROW(open_int4_dynamic(nullptr, 16), Error);
  const Int4DynamicKernel& kernel = int4_dynamic_kernels().back();
  for (int bad : {-9, 8}) {
    Layer weights({1, 2, 32, 32}, true), zeros({1, 2, 32, 32}, true);
    weights.w[40] = static_cast<int8_t>(bad);
    zeros.zero[1] = static_cast<int8_t>(bad);
    EXPECT_THROW(weights.run(kernel), Error);
    EXPECT_THROW(zeros.run(kernel), Error);
  }
  Layer scales({1, 2, 32, 32}, false);
  for (float bad : {NAN, INFINITY, -1.0f}) {
    scales.scale[1] = bad;
    EXPECT_THROW(scales.run(kernel), Error);
  }
}

// Activations end at an unreadable page: nothing is read beyond k.
TEST(Int4DynamicLinear, TheLastGroupMayBeShorter) {
  for (bool zero : {false, true}) {
    for (int group : {32, 128}) {
      for (int64_t m : {1, 3, 40}) {
        for (int64_t n : {1, 33, 130}) {
          for (int64_t k : {1, 31, 33, 100, 300}) {
            Layer({m, n, k, group}, zero).expect_exact();
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(Int4DynamicLinear, AShorterGroupTakesBfloat16AndThreads) {
  Layer layer({40, 70, 100, 32}, true);
  Guarded<uint16_t> halves(layer.x.size());
  testing::round_to_bfloat16(layer.x, halves);
  ThreadPool pool(3);
  for (const Int4DynamicKernel& kernel : test_kernels()) {
    const std::vector<float> want = layer.run(kernel);
    EXPECT_EQ(layer.run(kernel, pool), want) << kernel.name;
    layer.halves = halves.data();
    EXPECT_EQ(layer.run(kernel), want) << kernel.name;
    layer.halves = nullptr;
  }
}

TEST(Int4DynamicLinear, ABlockThatLiesAboutItsInputsIsRefused) {
  const Layer layer({1, 20, 33, 32}, true);
  SerialFor serial;
  const Int4DynamicKernel& kernel = int4_dynamic_kernels().back();
  Aligned packed(int4_dynamic_packed_bytes(20, 33, 32, Int4ZeroPoints::kIntegers, kernel.tile_n));
  pack_int4_dynamic(layer.weights(), kernel.tile_n, packed.data());
  std::vector<float> out(20);
  std::vector<char> space(int4_dynamic_workspace_bytes(kernel, layer.p, 1, OutputType::kFloat32));
  Epilogue e;
  e.out = out.data();
  e.out_stride = 20;
  const Fp32LinearArgs args{layer.x.data(), 33, packed.data(), e, space.data(), space.size()};
  EXPECT_NO_THROW(int4_dynamic_linear(kernel, layer.p, args, serial));
  auto& header = *reinterpret_cast<PackedHeader*>(packed.data());
  for (int64_t k : {int64_t{32}, int64_t{34}, int64_t{64}, int64_t{-33}, INT64_MAX}) {
    header.k = k;
    EXPECT_THROW(int4_dynamic_linear(kernel, layer.p, args, serial), Error) << k;
  }
}

TEST(Int4DynamicLinear, ArgumentsThatDoNotFitAreRefused) {
  const Layer layer({3, 20, 64, 32}, false);
  const Int4DynamicKernel& kernel = int4_dynamic_kernels().back();
  SerialFor serial;
  Aligned packed(int4_dynamic_packed_bytes(20, 64, 32, Int4ZeroPoints::kNone, kernel.tile_n));
  pack_int4_dynamic(layer.weights(), kernel.tile_n, packed.data());
  std::vector<float> out(60);
  std::vector<char> space(int4_dynamic_workspace_bytes(kernel, layer.p, 1, OutputType::kFloat32));
  Epilogue e;
  e.out = out.data();
  e.out_stride = 20;
  const Fp32LinearArgs good{layer.x.data(), 64, packed.data(), e, space.data(), space.size()};
  EXPECT_NO_THROW(int4_dynamic_linear(kernel, layer.p, good, serial));
  Fp32LinearArgs bad = good;
  bad.workspace_bytes = 100;
  EXPECT_THROW(int4_dynamic_linear(kernel, layer.p, bad, serial), Error);
  bad = good;
  bad.x = nullptr;
  EXPECT_THROW(int4_dynamic_linear(kernel, layer.p, bad, serial), Error);
  bad = good;
  bad.epilogue.out = nullptr;
  EXPECT_THROW(int4_dynamic_linear(kernel, layer.p, bad, serial), Error);
  EXPECT_THROW(int4_dynamic_linear(kernel, {3, 20, 64, 64}, good, serial), Error);
  EXPECT_THROW(open_int4_dynamic(packed.data(), 32), Error);
}

}  // namespace
}  // namespace halftone::kernels
