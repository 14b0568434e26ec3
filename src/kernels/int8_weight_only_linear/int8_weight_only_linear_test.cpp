#include "kernels/int8_weight_only_linear/int8_weight_only_linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/common/linear_test_support.h"
#include "kernels/int8_weight_only_linear/kernels.h"

namespace halftone::kernels {
namespace {

using testing::Aligned;
using testing::Guarded;
using testing::Random;

// What runs here, and the AVX-512 one through its emulation: of the level it borrows only what needs AVX2.
std::vector<Int8WeightOnlyKernel> test_kernels() {
  std::vector<Int8WeightOnlyKernel> kernels = testing::runnable(int8_weight_only_kernels());
#if defined(HALFTONE_EMULATED_KERNELS)
  if (machine_isa() >= Isa::kAvx2) {
    Int8WeightOnlyKernel kernel = int8_weight_only_kernels().front();
    kernel.name = "int8_weight_only_linear_f32s8_12x32_avx512vnni_emulated";
    kernel.multiply = int8_multiply_avx512vnni_emulated;
    kernel.register_rows = INT64_MAX;  // what multiplies expanded weights is not emulated here
    kernels.push_back(kernel);
  }
#endif
  return kernels;
}

struct Layer {
  Int8WeightOnlyProblem p;
  Guarded<float> x, scale;
  Guarded<int8_t> w;

  explicit Layer(Int8WeightOnlyProblem problem) : p(problem), x(p.m * p.k), scale(p.n), w(p.n * p.k) {
    Random random(3);
    random.fill_normal(x);
    for (int64_t i = 0; i < w.size(); ++i) w[i] = static_cast<int8_t>(random.integer(-128, 127));
    for (int64_t i = 0; i < p.n; ++i) scale[i] = 0.001f * static_cast<float>(random.integer(1, 20));
  }

  std::vector<float> run(const Int8WeightOnlyKernel& kernel, ParallelFor& parallel_for, Epilogue e = {},
                         const uint16_t* halves = nullptr) const {
    Aligned packed(int8_weight_only_packed_bytes(p.n, p.k, kernel.tile_n));
    pack_int8_weight_only({w.data(), p.k, scale.data(), p.n, p.k}, kernel.tile_n, packed.data());
    Guarded<float> out(p.m * p.n, -7.0f);
    const size_t bytes = int8_weight_only_workspace_bytes(p, parallel_for.threads(), e.type);
    Guarded<unsigned char> workspace(static_cast<int64_t>(bytes), 0xff);
    e.out = out.data();
    e.out_stride = p.n;
    int8_weight_only_linear(
        kernel, p,
        {halves != nullptr ? nullptr : x.data(), p.k, packed.data(), e, workspace.data(), bytes, halves},
        parallel_for);
    return out.copy();
  }

  void expect_within_bound() const {
    SerialFor serial;
    for (const Int8WeightOnlyKernel& kernel : test_kernels()) {
      const std::vector<float> y = run(kernel, serial);
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j) {
          double sum = 0, magnitude = 0;
          for (int64_t k = 0; k < p.k; ++k) {
            const double product = double{x[i * p.k + k]} * w[j * p.k + k] * double{scale[j]};
            sum += product;
            magnitude += std::abs(product);
          }
          ASSERT_LE(std::abs(y[static_cast<size_t>(i * p.n + j)] - sum),
                    (static_cast<double>(p.k) + 5) * 5.97e-8 * magnitude)
              << kernel.name << " " << p.m << "x" << p.n << "x" << p.k << " at " << i << "," << j;
        }
      }
    }
  }
};

TEST(Int8WeightOnlyLinear, TableIsWellFormedAndFitsTheMultiplyingKernels) {
  testing::expect_well_formed(int8_weight_only_kernels(), "int8_weight_only_linear");
  for (const Int8WeightOnlyKernel& kernel : int8_weight_only_kernels()) {
    EXPECT_EQ(kernel.tile_n, choose_fp32_linear({1, 1, 1}, kernel.isa).tile_n) << kernel.name;
    EXPECT_EQ(choose_int8_weight_only({1, 1, 1}, kernel.isa).name, kernel.name);
  }
  EXPECT_THROW(choose_int8_weight_only({-1, 1, 1}), Error);
}

TEST(Int8WeightOnlyLinear, EdgeSizesAreWithinTheBound) {
  for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 11, 13}) {
    for (int64_t n : {1, 7, 15, 16, 17, 33, 64, 65, 130}) {
      for (int64_t k : {1, 2, 7, 33, 64, 65, 255, 256, 257, 600}) {
        Layer({m, n, k}).expect_within_bound();
        if (HasFatalFailure()) return;
      }
    }
  }
  Layer({200, 70, 300}).expect_within_bound();
}

TEST(Int8WeightOnlyLinear, ThreadsEpiloguesAndNanWork) {
  Layer layer({9, 130, 300});
  layer.x[4 * 300 + 299] = NAN;
  SerialFor serial;
  ThreadPool pool(2);
  for (const Int8WeightOnlyKernel& kernel : test_kernels()) {
    Epilogue e;
    e.activation = Activation::kRelu;
    const std::vector<float> plain = layer.run(kernel, serial), relu = layer.run(kernel, pool, e);
    for (size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(std::isnan(relu[i]), i / 130 == 4);
      if (i / 130 != 4) {
        EXPECT_EQ(relu[i], std::max(plain[i], 0.0f)) << kernel.name;
      }
    }
  }
}

TEST(Int8WeightOnlyLinear, Bfloat16ActivationsAreTheSameAsWidened) {
  for (int64_t m : {1, 4, 9}) {
    Layer layer({m, 70, 300});
    Guarded<uint16_t> halves(layer.x.size());
    testing::round_to_bfloat16(layer.x, halves);
    SerialFor serial;
    for (const Int8WeightOnlyKernel& kernel : test_kernels())
      EXPECT_EQ(layer.run(kernel, serial, {}, halves.data()), layer.run(kernel, serial)) << kernel.name;
  }
}

TEST(Int8WeightOnlyLinear, EmptySizesAndBadArgumentsAreDefined) {
  SerialFor serial;
  for (const Int8WeightOnlyKernel& kernel : test_kernels()) {
    EXPECT_TRUE(Layer({0, 5, 8}).run(kernel, serial).empty());
    EXPECT_TRUE(Layer({3, 0, 8}).run(kernel, serial).empty());
    EXPECT_EQ(Layer({3, 5, 0}).run(kernel, serial), std::vector<float>(15, 0.0f));
    EXPECT_EQ(Layer({1, 70, 0}).run(kernel, serial), std::vector<float>(70, 0.0f));
  }
  Layer bad({1, 2, 3});
  for (float scale : {NAN, INFINITY, -1.0f}) {
    bad.scale[1] = scale;
    EXPECT_THROW(bad.run(int8_weight_only_kernels().back(), serial), Error);
  }
  EXPECT_THROW(open_int8_weight_only(nullptr, 16), Error);
  EXPECT_THROW(int8_weight_only_packed_bytes(1, -1, 16), Error);
}

}  // namespace
}  // namespace halftone::kernels
