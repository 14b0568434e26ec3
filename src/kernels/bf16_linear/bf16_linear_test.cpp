#include "kernels/bf16_linear/bf16_linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "halftone/base/error.h"
#include "kernels/bf16_linear/kernels.h"
#include "kernels/common/linear_test_support.h"
#include "kernels/fp32_linear/kernels.h"

namespace halftone::kernels {
namespace {

using testing::Aligned;
using testing::Guarded;
using testing::Random;

std::vector<Bf16LinearKernel> test_kernels() {
  std::vector<Bf16LinearKernel> kernels = testing::runnable(bf16_linear_kernels());
#if defined(HALFTONE_EMULATED_KERNELS)
  testing::add_emulated(kernels, bf16_linear_kernels(), &Bf16LinearKernel::multiply, bf16_multiply_avx512vnni,
                        bf16_multiply_avx512vnni_emulated, "bf16_linear_f32bf16_12x32_avx512vnni_emulated");
#endif
  return kernels;
}

struct Layer {
  Bf16LinearProblem p;
  Guarded<float> x, bias, residual;
  Guarded<uint16_t> w;

  explicit Layer(Bf16LinearProblem problem)
      : p(problem), x(p.m * p.k), bias(p.n), residual(p.m * p.n), w(p.n * p.k) {
    Random random(5);
    random.fill_normal(x);
    random.fill_normal(bias);
    random.fill_normal(residual);
    for (int64_t i = 0; i < w.size(); ++i) w[i] = to_bfloat16(random.normal());
  }

  // `halves`: the activations in bfloat16, instead of x.
  void run(const Bf16LinearKernel& kernel, const Epilogue& e, ParallelFor& parallel_for,
           const uint16_t* halves = nullptr) const {
    Aligned packed(bf16_packed_bytes(p.n, p.k, kernel.tile_n));
    pack_bf16_weights({w.data(), p.k, p.n, p.k}, kernel.tile_n, packed.data());
    const size_t bytes = bf16_linear_workspace_bytes(p, parallel_for.threads(), e.type);
    Guarded<unsigned char> workspace(static_cast<int64_t>(bytes), 0xff);  // NaN, where read before written
    const float* floats = halves != nullptr ? nullptr : x.data();
    bf16_linear(kernel, p, {floats, p.k, packed.data(), e, workspace.data(), bytes, halves}, parallel_for);
  }

  std::vector<float> floats(const Bf16LinearKernel& kernel, ParallelFor& parallel_for, Epilogue e = {},
                            const uint16_t* halves = nullptr) const {
    Guarded<float> out(p.m * p.n, -7.0f);
    e.out = out.data();
    e.out_stride = p.n;
    run(kernel, e, parallel_for, halves);
    return out.copy();
  }

  std::vector<float> floats(const Bf16LinearKernel& kernel) const {
    SerialFor serial;
    return floats(kernel, serial);
  }

  Epilogue epilogue(Activation activation) const {
    Epilogue e;
    e.bias = bias.data();
    e.activation = activation;
    e.residual = residual.data();
    e.residual_stride = p.n;
    return e;
  }
};

void expect_within_bound(const Layer& layer) {
  const Bf16LinearProblem& p = layer.p;
  std::vector<double> want, magnitude;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0, absolute = 0;
      for (int64_t k = 0; k < p.k; ++k) {
        const double product = double{layer.x[i * p.k + k]} * from_bfloat16(layer.w[j * p.k + k]);
        sum += product;
        absolute += std::abs(product);
      }
      want.push_back(sum);
      magnitude.push_back(absolute);
    }
  }
  for (const Bf16LinearKernel& kernel : test_kernels()) {
    const std::vector<float> y = layer.floats(kernel);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_LE(std::abs(y[i] - want[i]), (static_cast<double>(p.k) + 4) * 5.97e-8 * magnitude[i])
          << kernel.name << " " << p.m << "x" << p.n << "x" << p.k << " at " << i;
    }
  }
}

TEST(Bf16Linear, TableIsWellFormedAndEachLevelGetsItsKernel) {
  testing::expect_well_formed(bf16_linear_kernels(), "bf16_linear");
  for (const Bf16LinearKernel& kernel : bf16_linear_kernels()) {
    EXPECT_EQ(choose_bf16_linear({1, 1, 1}, kernel.isa).name, kernel.name);
  }
  EXPECT_THROW(choose_bf16_linear({1, 1, -1}), Error);
}

TEST(Bf16Linear, EdgeSizesAreWithinTheBound) {
  for (int64_t m : {1, 2, 3, 4, 6, 7, 12, 13}) {
    for (int64_t n : {1, 7, 8, 15, 16, 17, 31, 32, 33, 65, 130}) {
      for (int64_t k : {1, 2, 3, 5, 33, 64}) {
        expect_within_bound(Layer({m, n, k}));
        if (HasFatalFailure()) return;
      }
    }
  }
  for (int64_t m : {1, 2, 3, 13}) expect_within_bound(Layer({m, 300, 601}));
  expect_within_bound(Layer({200, 70, 801}));
}

// The same sums as fp32_linear's kernel of the same level, bit for bit, through every epilogue.
TEST(Bf16Linear, IsFp32LinearOnWidenedWeights) {
  SerialFor serial;
  for (const Bf16LinearProblem& p :
       {Bf16LinearProblem{1, 200, 99}, Bf16LinearProblem{3, 70, 300}, Bf16LinearProblem{61, 40, 500}}) {
    const Layer layer(p);
    Guarded<float> widened(layer.w.size());
    for (int64_t i = 0; i < widened.size(); ++i) widened[i] = from_bfloat16(layer.w[i]);
    for (const Bf16LinearKernel& kernel : testing::runnable(bf16_linear_kernels())) {
      const Fp32LinearKernel& plain = choose_fp32_linear(p, kernel.isa);
      Aligned packed(fp32_packed_bytes(p.n, p.k, plain.tile_n));
      pack_fp32_weights({widened.data(), p.k, p.n, p.k}, plain.tile_n, packed.data());
      std::vector<char> workspace(fp32_linear_workspace_bytes(plain, p, 1, OutputType::kFloat32));
      for (Activation activation : kAllActivations) {
        std::vector<float> want(static_cast<size_t>(p.m * p.n));
        Epilogue e = layer.epilogue(activation);
        e.out = want.data();
        e.out_stride = p.n;
        fp32_linear(plain, p, {layer.x.data(), p.k, packed.data(), e, workspace.data(), workspace.size()},
                    serial);
        EXPECT_EQ(layer.floats(kernel, serial, layer.epilogue(activation)), want) << kernel.name;
      }
    }
  }
}

TEST(Bf16Linear, Bfloat16ActivationsAreTheSameAsWidened) {
  SerialFor serial;
  for (int64_t m : {1, 4, 14}) {
    Layer layer({m, 70, 301});
    Guarded<uint16_t> halves(layer.x.size());
    testing::round_to_bfloat16(layer.x, halves);
    for (const Bf16LinearKernel& kernel : test_kernels())
      EXPECT_EQ(layer.floats(kernel, serial, {}, halves.data()), layer.floats(kernel)) << kernel.name;
  }
}

TEST(Bf16Linear, OutputFormatsAreMadeFromTheFloats) {
  const Layer layer({9, 37, 41});
  for (const Bf16LinearKernel& kernel : test_kernels()) {
    SCOPED_TRACE(kernel.name);
    testing::expect_output_formats(
        layer.floats(kernel), layer.p.n,
        [&](const Epilogue& e, ParallelFor& parallel_for) { layer.run(kernel, e, parallel_for); });
  }
}

TEST(Bf16Linear, NanAndInfinityGoWhereTheyBelong) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    Layer rows({14, 18, 33}), columns({5, 50, 33});
    rows.x[8 * 33 + 32] = bad;              // a row of x
    columns.w[41 * 33] = to_bfloat16(bad);  // a channel of W
    for (const Bf16LinearKernel& kernel : test_kernels()) {
      const std::vector<float> y = rows.floats(kernel), z = columns.floats(kernel);
      for (size_t i = 0; i < y.size(); ++i) {
        EXPECT_EQ(std::isfinite(y[i]), i / 18 != 8) << kernel.name;
        EXPECT_EQ(std::isnan(y[i]), i / 18 == 8 && std::isnan(bad)) << kernel.name;
      }
      for (size_t i = 0; i < z.size(); ++i) {
        EXPECT_EQ(std::isfinite(z[i]), i % 50 != 41) << kernel.name;
        EXPECT_EQ(std::isnan(z[i]), i % 50 == 41 && std::isnan(bad)) << kernel.name;
      }
    }
  }
}

TEST(Bf16Linear, ThreadsGiveTheSameFloatsAndTwoReallyRun) {
  for (int64_t m : {1, 2, 3, 5, 61}) {
    const Layer layer({m, 1100, 300});
    for (const Bf16LinearKernel& kernel : test_kernels()) {
      const std::vector<float> want = layer.floats(kernel);
      for (int threads : {2, 3, 5}) {
        ThreadPool pool(threads);
        EXPECT_EQ(layer.floats(kernel, pool), want) << kernel.name << " " << m << " " << threads;
      }
    }
  }
  const Layer large({64, 1024, 1024});
  testing::CountingParallelFor parallel_for;
  large.floats(bf16_linear_kernels().back(), parallel_for);
  EXPECT_EQ(parallel_for.threads_seen(), 2u);
}

TEST(Bf16Linear, EmptySizesAreDefined) {
  for (const Bf16LinearKernel& kernel : test_kernels()) {
    EXPECT_TRUE(Layer({0, 5, 8}).floats(kernel).empty());
    EXPECT_TRUE(Layer({3, 0, 8}).floats(kernel).empty());
    EXPECT_EQ(Layer({13, 5, 0}).floats(kernel), std::vector<float>(65, 0.0f)) << kernel.name;
    EXPECT_EQ(Layer({1, 70, 0}).floats(kernel), std::vector<float>(70, 0.0f)) << kernel.name;
  }
}

TEST(Bf16Linear, ArgumentsThatDoNotFitAreRefused) {
  const Layer layer({3, 20, 16});
  const Bf16LinearKernel& kernel = bf16_linear_kernels().back();
  SerialFor serial;
  Aligned packed(bf16_packed_bytes(20, 16, 16));
  pack_bf16_weights({layer.w.data(), 16, 20, 16}, 16, packed.data());
  std::vector<float> out(60);
  std::vector<char> workspace(bf16_linear_workspace_bytes(layer.p, 1, OutputType::kFloat32));
  Fp32LinearArgs good{layer.x.data(), 16, packed.data(), {}, workspace.data(), workspace.size()};
  good.epilogue.out = out.data();
  good.epilogue.out_stride = 20;
  EXPECT_NO_THROW(bf16_linear(kernel, layer.p, good, serial));
  Fp32LinearArgs bad = good;
  bad.workspace_bytes = 100;
  EXPECT_THROW(bf16_linear(kernel, layer.p, bad, serial), Error);
  bad = good;
  bad.x_bfloat16 = layer.w.data();  // two inputs
  EXPECT_THROW(bf16_linear(kernel, layer.p, bad, serial), Error);
  EXPECT_THROW(bf16_linear(kernel, {3, 20, 15}, good, serial), Error);
  EXPECT_THROW(open_bf16_packed(packed.data(), 32), Error);
  EXPECT_THROW(open_fp32_packed(packed.data(), 16), Error);
  EXPECT_THROW(open_bf16_packed(static_cast<char*>(packed.data()) + 4, 16), Error);
  EXPECT_THROW(bf16_packed_bytes(INT64_MAX / 2, INT64_MAX / 2, 16), Error);
  EXPECT_THROW(bf16_packed_bytes(-1, 2, 16), Error);
}

}  // namespace
}  // namespace halftone::kernels
