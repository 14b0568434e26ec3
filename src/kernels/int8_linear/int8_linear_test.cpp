// The integers of int8_linear: bit for bit the same on every level, against 64-bit sums.
#include "kernels/int8_linear/int8_linear.h"

#include <gtest/gtest.h>

#include <functional>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/common/kernel_table.h"
#include "kernels/int8_linear/test_kernels.h"

namespace halftone::kernels {
namespace {

using testing::Guarded;
using testing::Random;

// Quantized rows and weights of one problem, all in memory that ends at an unreadable page.
struct Operands {
  Int8LinearProblem p;
  Guarded<uint8_t> q;
  Guarded<float> q_scale;
  Guarded<int32_t> q_zero;
  Guarded<int8_t> w;
  Guarded<float> w_scale;

  Operands(Int8LinearProblem problem, const std::function<int()>& x, const std::function<int()>& zero,
           const std::function<int()>& weight)
      : p(problem), q(p.m * p.k), q_scale(p.m, 1.0f), q_zero(p.m), w(p.n * p.k), w_scale(p.n, 1.0f) {
    for (int64_t i = 0; i < q.size(); ++i) q[i] = static_cast<uint8_t>(x());
    for (int64_t i = 0; i < q_zero.size(); ++i) q_zero[i] = zero();
    for (int64_t i = 0; i < w.size(); ++i) w[i] = static_cast<int8_t>(weight());
  }

  std::vector<int32_t> expected(RowFormat format) const {
    std::vector<int32_t> sums(static_cast<size_t>(p.m * p.n));
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        int64_t sum = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          const uint8_t byte = q[i * p.k + k];
          const int x = format == RowFormat::kS8 ? static_cast<int8_t>(byte) : byte - q_zero[i];
          sum += int64_t{x} * w[j * p.k + k];
        }
        EXPECT_EQ(sum, static_cast<int32_t>(sum));
        sums[static_cast<size_t>(i * p.n + j)] = static_cast<int32_t>(sum);
      }
    }
    return sums;
  }

  std::vector<int32_t> computed(const Int8LinearKernel& kernel, RowFormat format,
                                ParallelFor& parallel_for) const {
    Guarded<int32_t> sums(p.m * p.n, 0x55555555);
    Int8LinearArgs args;
    args.q = q.data();
    args.q_stride = p.k;
    args.q_scale = q_scale.data();
    args.q_zero_point = q_zero.data();
    args.x_format = format;
    args.sums = sums.data();
    testing::run_int8_linear(kernel, p, args, {w.data(), p.k, w_scale.data(), p.n, p.k, p.weight_bits},
                             parallel_for);
    return sums.copy();
  }
};

void expect_exact(const Operands& operands) {
  SerialFor serial;
  for (RowFormat format : {RowFormat::kU8, RowFormat::kS8}) {
    const std::vector<int32_t> want = operands.expected(format);
    for (const Int8LinearKernel& kernel : testing::int8_test_kernels()) {
      if (kernel.refuse(operands.p) != nullptr) continue;
      ASSERT_EQ(operands.computed(kernel, format, serial), want)
          << kernel.name << " " << operands.p.m << "x" << operands.p.n << "x" << operands.p.k << " bits "
          << operands.p.weight_bits;
    }
  }
}

std::function<int()> constant(int v) {
  return [v] { return v; };
}

std::function<int()> uniform(Random& random, int lo, int hi) {
  return [&random, lo, hi] { return random.integer(lo, hi); };
}

std::function<int()> either(Random& random, int a, int b) {
  return [&random, a, b] { return random.integer(0, 1) == 0 ? a : b; };
}

TEST(Int8Linear, TableIsWellFormedAndEachLevelGetsItsKernel) {
  testing::expect_well_formed(int8_linear_kernels(), "int8_linear");
  if (int8_linear_kernels().size() == 1) GTEST_SKIP() << "only the scalar kernel is built";
  EXPECT_STREQ(choose_int8_linear({8, 8, 8, 8}, Isa::kScalar).name, "int8_linear_u8s8_4x16x4_scalar");
  EXPECT_STREQ(choose_int8_linear({8, 8, 8, 8}, Isa::kAvx2).name, "int8_linear_u8s8_4x16x4_avx2");
  EXPECT_STREQ(choose_int8_linear({8, 8, 8, 7}, Isa::kAvx2).name, "int8_linear_u8s7_6x16x4_avx2");
  EXPECT_STREQ(choose_int8_linear({8, 8, 8, 7}, Isa::kAvx512Vnni).name,
               "int8_linear_u8s8_12x32x4_avx512vnni");
}

TEST(Int8Linear, EnvironmentForcesTheLevel) {
  ::setenv("HALFTONE_ISA", "scalar", 1);
  EXPECT_EQ(choose_int8_linear({8, 8, 8, 8}).isa, Isa::kScalar);
  ::unsetenv("HALFTONE_ISA");
  EXPECT_EQ(choose_int8_linear({8, 8, 8, 8}).isa, machine_isa());
}

TEST(Int8Linear, TheSaturatingChainRefusesEightBits) {
  for (const auto& verdict :
       explain_choice(int8_linear_kernels(), Int8LinearProblem{1, 1, 1, 8}, Isa::kAvx2)) {
    if (std::string(verdict.name).find("u8s7") != std::string::npos) {
      EXPECT_NE(verdict.reason.find("saturate"), std::string::npos) << verdict.reason;
    }
  }
}

TEST(Int8Linear, EdgeSizesAreExact) {
  Random random(1);
  for (int bits : {8, 7}) {
    const int most = bits == 8 ? 127 : 64, least = bits == 8 ? -128 : -64;
    for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 25}) {
      for (int64_t n : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 50}) {
        for (int64_t k : {1, 2, 3, 4, 5, 31, 32, 33, 36, 65}) {
          expect_exact(Operands({m, n, k, bits}, uniform(random, 0, 255), uniform(random, 0, 255),
                                uniform(random, least, most)));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Int8Linear, FewRowsTimesSeveralPanelsAreExact) {
  Random random(5);
  for (int bits : {8, 7}) {
    for (int64_t m : {1, 2, 3}) {
      for (int64_t n : {48, 49, 64, 65, 96, 97, 127, 128, 129, 300}) {
        for (int64_t k : {1, 37}) {
          expect_exact(Operands({m, n, k, bits}, uniform(random, 0, 255), uniform(random, 0, 255),
                                uniform(random, -64, 64)));
        }
      }
    }
  }
}

TEST(Int8Linear, ExtremesNeverSaturate) {
  Random random(2);
  for (int64_t k : {1, 2, 4, 7, 64, 1024, 4100}) {
    for (int zero : {0, 128, 255}) {
      for (int x : {0, 1, 127, 128, 255}) {
        for (int w : {-128, -127, -1, 1, 127}) {
          expect_exact(Operands({5, 17, k, 8}, constant(x), constant(zero), constant(w)));
        }
        for (int w : {-64, 63, 64})
          expect_exact(Operands({7, 17, k, 7}, constant(x), constant(zero), constant(w)));
      }
      expect_exact(
          Operands({13, 33, k, 8}, either(random, 0, 255), constant(zero), either(random, -128, 127)));
      expect_exact(Operands({13, 33, k, 7}, either(random, 0, 255), constant(zero), either(random, -64, 64)));
      expect_exact(
          Operands({13, 33, k, 8}, either(random, 127, 128), constant(zero), either(random, -128, 127)));
    }
    if (HasFatalFailure()) return;
  }
}

TEST(Int8Linear, LargestKFillsThirtyTwoBits) {
  for (int zero : {0, 255}) {
    for (int w : {-128, 127}) {
      for (int x : {0, 255})
        expect_exact(Operands({1, 3, kInt8LinearMaxK, 8}, constant(x), constant(zero), constant(w)));
    }
  }
}

TEST(Int8Linear, ThreadsGiveTheSameIntegers) {
  Random random(3);
  const Operands operands({61, 130, 300, 7}, uniform(random, 0, 255), uniform(random, 0, 255),
                          uniform(random, -64, 64));
  const std::vector<int32_t> want = operands.expected(RowFormat::kU8);
  for (int threads : {2, 3}) {
    ThreadPool pool(threads);
    for (const Int8LinearKernel& kernel : testing::int8_test_kernels()) {
      EXPECT_EQ(operands.computed(kernel, RowFormat::kU8, pool), want) << kernel.name;
    }
  }
}

TEST(Int8Linear, TwoThreadsReallyRun) {
  Random random(4);
  const Operands operands({64, 256, 512, 8}, uniform(random, 0, 255), uniform(random, 0, 255),
                          uniform(random, -128, 127));
  testing::CountingParallelFor witness;
  for (int round = 0; round < 200 && witness.threads_seen() < 2; ++round) {
    operands.computed(choose_int8_linear(operands.p, machine_isa()), RowFormat::kU8, witness);
  }
  EXPECT_EQ(witness.threads_seen(), 2u);
}

TEST(Int8Linear, RefusesProblemsOutOfRange) {
  EXPECT_THROW(choose_int8_linear({1, 1, kInt8LinearMaxK + 1, 8}, Isa::kScalar), Error);
  EXPECT_THROW(choose_int8_linear({-1, 1, 1, 8}, Isa::kScalar), Error);
  EXPECT_THROW(choose_int8_linear({1, 1, 1, 6}, Isa::kScalar), Error);
}

}  // namespace
}  // namespace halftone::kernels
