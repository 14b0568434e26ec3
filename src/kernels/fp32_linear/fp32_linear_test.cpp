#include "kernels/fp32_linear/fp32_linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "halftone/base/error.h"
#include "kernels/common/linear_test_support.h"
#include "kernels/fp32_linear/kernels.h"

namespace halftone::kernels {
namespace {

using testing::Aligned;
using testing::Guarded;
using testing::Random;

std::vector<Fp32LinearKernel> test_kernels() {
  std::vector<Fp32LinearKernel> kernels = testing::runnable(fp32_linear_kernels());
#if defined(HALFTONE_EMULATED_KERNELS)
  testing::add_emulated(kernels, fp32_linear_kernels(), &Fp32LinearKernel::multiply, fp32_multiply_avx512vnni,
                        fp32_multiply_avx512vnni_emulated, "fp32_linear_12x32_avx512vnni_emulated");
#endif
  return kernels;
}

struct Layer {
  Fp32LinearProblem p;
  Guarded<float> x, w, bias, residual;

  explicit Layer(Fp32LinearProblem problem, uint32_t seed = 1)
      : p(problem), x(p.m * p.k), w(p.n * p.k), bias(p.n), residual(p.m * p.n) {
    Random random(seed);
    random.fill_normal(x);
    random.fill_normal(w);
    random.fill_normal(bias);
    random.fill_normal(residual);
  }

  void run(const Fp32LinearKernel& kernel, const Epilogue& e, ParallelFor& parallel_for) const {
    Aligned packed(fp32_packed_bytes(p.n, p.k, kernel.tile_n));
    pack_fp32_weights({w.data(), p.k, p.n, p.k}, kernel.tile_n, packed.data());
    const size_t bytes = fp32_linear_workspace_bytes(kernel, p, parallel_for.threads(), e.type);
    Guarded<unsigned char> workspace(static_cast<int64_t>(bytes), 0xff);  // NaN, where read before written
    fp32_linear(kernel, p, {x.data(), p.k, packed.data(), e, workspace.data(), bytes}, parallel_for);
  }

  std::vector<float> floats(const Fp32LinearKernel& kernel, Epilogue e = {}) const {
    Guarded<float> out(p.m * p.n, -7.0f);
    e.out = out.data();
    e.out_stride = p.n;
    SerialFor serial;
    run(kernel, e, serial);
    return out.copy();
  }

  double exact(int64_t i, int64_t j, double* magnitude) const {
    double sum = 0;
    *magnitude = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      const double product = double{x[i * p.k + k]} * w[j * p.k + k];
      sum += product;
      *magnitude += std::abs(product);
    }
    return sum;
  }
};

void expect_within_bound(const Layer& layer) {
  const Fp32LinearProblem& p = layer.p;
  for (const Fp32LinearKernel& kernel : test_kernels()) {
    const std::vector<float> y = layer.floats(kernel);
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        double magnitude = 0;
        const double want = layer.exact(i, j, &magnitude);
        ASSERT_LE(std::abs(y[static_cast<size_t>(i * p.n + j)] - want), (p.k + 4) * 5.97e-8 * magnitude)
            << kernel.name << " " << p.m << "x" << p.n << "x" << p.k << " at " << i << "," << j;
      }
    }
  }
}

TEST(Fp32Linear, TableIsWellFormedAndEachLevelGetsItsKernel) {
  testing::expect_well_formed(fp32_linear_kernels(), "fp32_linear");
  for (Isa isa : kAllIsas) {
    if (fp32_linear_kernels().size() > 1) {
      EXPECT_EQ(choose_fp32_linear({1, 1, 1}, isa).isa, isa);
    }
  }
  EXPECT_THROW(choose_fp32_linear({1, -1, 1}), Error);
}

TEST(Fp32Linear, EdgeSizesAreWithinTheBound) {
  for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 25}) {
    for (int64_t n : {1, 7, 8, 9, 15, 16, 17, 33, 50}) {
      for (int64_t k : {1, 2, 3, 4, 5, 7, 8, 33, 64}) {
        expect_within_bound(Layer({m, n, k}));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Fp32Linear, FewRowsTimesSeveralPanelsAreWithinTheBound) {
  for (int64_t m : {1, 2, 3}) {
    for (int64_t n : {48, 49, 64, 65, 97, 128, 129, 300}) {
      for (int64_t k : {1, 37, 600}) expect_within_bound(Layer({m, n, k}));
    }
  }
}

TEST(Fp32Linear, DepthAndRowGroupsAreCutRight) {
  for (const Fp32LinearProblem& p :
       {Fp32LinearProblem{13, 40, 255}, Fp32LinearProblem{13, 40, 256}, Fp32LinearProblem{13, 40, 257},
        Fp32LinearProblem{7, 17, 700}, Fp32LinearProblem{200, 70, 300}, Fp32LinearProblem{97, 600, 260},
        Fp32LinearProblem{1, 600, 600}}) {
    expect_within_bound(Layer(p));
  }
}

TEST(Fp32Linear, EpiloguesApplyInOrder) {
  const Layer layer({7, 21, 30});
  for (const Fp32LinearKernel& kernel : test_kernels()) {
    const std::vector<float> sums = layer.floats(kernel);
    for (Activation activation : kAllActivations) {
      Epilogue e;
      e.bias = layer.bias.data();
      e.activation = activation;
      e.residual = layer.residual.data();
      e.residual_stride = layer.p.n;
      const std::vector<float> y = layer.floats(kernel, e);
      for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
        const float activated =
            activate(sums[static_cast<size_t>(i)] + layer.bias[i % layer.p.n], activation);
        const float want = activated + layer.residual[i];
        ASSERT_NEAR(y[static_cast<size_t>(i)], want,
                    2 * kActivationRelative * std::abs(activated) + 1e-6 * std::abs(want) + 1e-7)
            << kernel.name;
      }
    }
  }
}

TEST(Fp32Linear, OutputFormatsAreMadeFromTheFloats) {
  const Layer layer({9, 37, 40});
  for (const Fp32LinearKernel& kernel : test_kernels()) {
    SCOPED_TRACE(kernel.name);
    testing::expect_output_formats(
        layer.floats(kernel), layer.p.n,
        [&](const Epilogue& e, ParallelFor& parallel_for) { layer.run(kernel, e, parallel_for); });
  }
}

TEST(Fp32Linear, NanAndInfinityReachTheirRowOnly) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    Layer layer({14, 18, 33});
    layer.x[8 * 33 + 32] = bad;
    for (const Fp32LinearKernel& kernel : test_kernels()) {
      const std::vector<float> y = layer.floats(kernel);
      for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
        const float v = y[static_cast<size_t>(i)];
        EXPECT_EQ(std::isfinite(v), i / layer.p.n != 8) << kernel.name;
        EXPECT_EQ(std::isnan(v), i / layer.p.n == 8 && std::isnan(bad));
      }
    }
  }
}

TEST(Fp32Linear, ThreadsGiveTheSameFloats) {
  for (int64_t m : {1, 2, 3, 5, 61}) {
    const Layer layer({m, 1100, 300});
    for (const Fp32LinearKernel& kernel : test_kernels()) {
      const std::vector<float> want = layer.floats(kernel);
      for (int threads : {2, 3, 5}) {
        ThreadPool pool(threads);
        Guarded<float> out(layer.p.m * layer.p.n);
        Epilogue e;
        e.out = out.data();
        e.out_stride = layer.p.n;
        layer.run(kernel, e, pool);
        EXPECT_EQ(out.copy(), want) << kernel.name << " " << m << " " << threads;
      }
    }
  }
}

TEST(Fp32Linear, EmptySizesAreDefined) {
  for (const Fp32LinearKernel& kernel : test_kernels()) {
    EXPECT_TRUE(Layer({0, 5, 8}).floats(kernel).empty());
    EXPECT_TRUE(Layer({3, 0, 8}).floats(kernel).empty());
    EXPECT_EQ(Layer({13, 5, 0}).floats(kernel), std::vector<float>(65, 0.0f)) << kernel.name;
  }
}

TEST(Fp32Linear, ArgumentsThatDoNotFitAreRefused) {
  const Layer layer({3, 20, 16});
  const Fp32LinearKernel& kernel = fp32_linear_kernels().back();
  SerialFor serial;
  Aligned packed(fp32_packed_bytes(20, 16, kernel.tile_n));
  pack_fp32_weights({layer.w.data(), 16, 20, 16}, kernel.tile_n, packed.data());
  std::vector<float> out(60);
  std::vector<char> workspace(fp32_linear_workspace_bytes(kernel, layer.p, 1, OutputType::kFloat32));
  Fp32LinearArgs good{layer.x.data(), 16, packed.data(), {}, workspace.data(), workspace.size()};
  good.epilogue.out = out.data();
  good.epilogue.out_stride = 20;
  EXPECT_NO_THROW(fp32_linear(kernel, layer.p, good, serial));
  Fp32LinearArgs bad = good;
  bad.workspace_bytes = 100;
  EXPECT_THROW(fp32_linear(kernel, layer.p, bad, serial), Error);
  bad = good;
  bad.x = nullptr;
  EXPECT_THROW(fp32_linear(kernel, layer.p, bad, serial), Error);
  EXPECT_THROW(fp32_linear(kernel, {3, 20, 15}, good, serial), Error);
  EXPECT_THROW(open_fp32_packed(packed.data(), 32), Error);
  EXPECT_THROW(open_fp32_packed(static_cast<char*>(packed.data()) + 4, 16), Error);
  EXPECT_THROW(fp32_packed_bytes(INT64_MAX / 2, INT64_MAX / 2, 16), Error);
  EXPECT_THROW(fp32_packed_bytes(-1, 2, 16), Error);
}

}  // namespace
}  // namespace halftone::kernels
