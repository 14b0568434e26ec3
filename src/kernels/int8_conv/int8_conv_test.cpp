// The bytes of int8_conv: the same on every level, against 64-bit sums, over all geometries.
#include "kernels/int8_conv/int8_conv.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/common/kernel_table.h"
#include "kernels/int8_conv/test_kernels.h"

namespace halftone::kernels {
namespace {

using testing::Aligned;
using testing::ConvCase;
using testing::either;
using testing::expect_conv;
using testing::expect_conv_in_all_ranges;
using testing::Guarded;
using testing::Random;
using testing::uniform;

ConvShape with_output(ConvShape s, const ConvExtent& output_padding = {0, 0, 0}) {
  s.out = conv_output(s, output_padding);
  return s;
}

ConvShape square(int64_t ic, int64_t oc, int64_t size, int64_t kernel, int64_t stride, int64_t pad,
                 int64_t groups = 1, int64_t dilation = 1) {
  ConvShape s;
  s.in_channels = ic;
  s.out_channels = oc;
  s.groups = groups;
  s.in = {1, size, size + 1};
  s.kernel = {1, kernel, kernel};
  s.stride = {1, stride, stride};
  s.pad = {0, pad, pad};
  s.dilation = {1, dilation, dilation};
  return with_output(s);
}

ConvShape linear(int64_t m, int64_t n, int64_t k) {
  ConvShape s;
  s.batch = m;
  s.in_channels = k;
  s.out_channels = n;
  return s;
}

TEST(Int8Conv, TableIsWellFormedAndEachLevelGetsItsKernel) {
  testing::expect_well_formed(int8_conv_kernels(), "int8_conv");
  if (int8_conv_kernels().size() == 1) GTEST_SKIP() << "only the scalar kernel is built";
  const ConvShape dense = square(64, 64, 8, 3, 1, 1), depthwise = square(32, 32, 8, 3, 1, 1, 32);
  EXPECT_STREQ(choose_int8_conv({dense, 8, 8}, Isa::kScalar).name, "int8_conv_u8s8_4x16_scalar");
  EXPECT_STREQ(choose_int8_conv({dense, 8, 8}, Isa::kAvx2).name, "int8_conv_u8s8_12x16_avx2");
  EXPECT_STREQ(choose_int8_conv({dense, 7, 8}, Isa::kAvx2).name, "int8_conv_u8s7_12x16_avx2");
  EXPECT_STREQ(choose_int8_conv({dense, 8, 7}, Isa::kAvx2).name, "int8_conv_u8s7_12x16_avx2");
  EXPECT_STREQ(choose_int8_conv({dense, 8, 8}, Isa::kAvx512Vnni).name, "int8_conv_u8s8_8x32_avx512vnni");
  EXPECT_STREQ(choose_int8_conv({depthwise, 8, 8}, Isa::kAvx512Vnni).name,
               "int8_conv_depthwise_u8s8_16_avx2");
  EXPECT_STREQ(choose_int8_conv({depthwise, 8, 8}, Isa::kScalar).name, "int8_conv_u8s8_4x16_scalar");
  for (const auto& verdict : explain_choice(int8_conv_kernels(), Int8ConvProblem{dense, 8, 8}, Isa::kAvx2)) {
    if (std::string(verdict.name).find("u8s7") != std::string::npos) {
      EXPECT_NE(verdict.reason.find("saturate"), std::string::npos) << verdict.reason;
    }
  }
}

TEST(Int8Conv, KernelsStridesPaddingAndDilation) {
  Random random(1);
  for (const auto& [kernel, stride, pad, dilation] : std::vector<std::array<int64_t, 4>>{{1, 1, 0, 1},
                                                                                         {1, 2, 0, 1},
                                                                                         {1, 1, 1, 1},
                                                                                         {3, 1, 1, 1},
                                                                                         {3, 2, 1, 1},
                                                                                         {3, 1, 2, 2},
                                                                                         {3, 3, 0, 1},
                                                                                         {2, 2, 0, 1},
                                                                                         {5, 1, 2, 1},
                                                                                         {5, 2, 4, 2},
                                                                                         {7, 2, 3, 1}}) {
    for (int64_t ic : {3, 4, 12, 20})
      expect_conv_in_all_ranges(square(ic, 18, 9, kernel, stride, pad, 1, dilation), random);
    if (HasFatalFailure()) return;
  }
}

TEST(Int8Conv, EdgesOfTilesAndChannels) {
  Random random(2);
  for (int64_t m : {1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 23, 25, 37}) {
    for (int64_t n : {1, 15, 16, 17, 32, 33, 50}) {
      for (int64_t k : {1, 3, 4, 8, 20, 28, 36, 61, 64}) {
        expect_conv_in_all_ranges(linear(m, n, k), random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Int8Conv, GroupsAndDepthwise) {
  Random random(3);
  for (const auto& [ic, oc, groups] : std::vector<std::array<int64_t, 3>>{
           {8, 8, 2}, {12, 36, 3}, {6, 4, 2}, {32, 64, 4}, {5, 10, 5}, {10, 5, 5}, {1, 1, 1}}) {
    for (int64_t stride : {1, 2}) expect_conv_in_all_ranges(square(ic, oc, 6, 3, stride, 1, groups), random);
    if (HasFatalFailure()) return;
  }
  for (int64_t channels : {2, 15, 16, 17, 32, 47, 64}) {
    for (const auto& [kernel, stride, pad, dilation] : std::vector<std::array<int64_t, 4>>{
             {3, 1, 1, 1}, {3, 2, 1, 1}, {5, 1, 2, 1}, {3, 1, 2, 2}, {2, 1, 0, 1}, {1, 1, 0, 1}}) {
      expect_conv_in_all_ranges(square(channels, channels, 7, kernel, stride, pad, channels, dilation),
                                random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Int8Conv, OneAndThreeDimensions) {
  Random random(4);
  ConvShape s;
  s.batch = 2;
  s.in_channels = 12;
  s.out_channels = 20;
  s.in = {1, 1, 30};
  s.kernel = {1, 1, 5};
  s.pad = {0, 0, 2};
  s.stride = {1, 1, 2};
  expect_conv_in_all_ranges(with_output(s), random);
  s.in = {5, 6, 7};
  s.kernel = {3, 2, 3};
  s.stride = {2, 1, 2};
  s.pad = {1, 0, 2};
  s.dilation = {1, 2, 1};
  for (int64_t groups : {1, 2, 4}) {
    s.groups = groups;
    expect_conv_in_all_ranges(with_output(s), random);
  }
  s.groups = s.in_channels = s.out_channels = 18;
  expect_conv_in_all_ranges(with_output(s), random);
}

TEST(Int8Conv, Transposed) {
  Random random(5);
  for (const auto& [kernel, stride, pad, dilation] : std::vector<std::array<int64_t, 4>>{{2, 2, 0, 1},
                                                                                         {4, 2, 1, 1},
                                                                                         {3, 2, 1, 1},
                                                                                         {3, 1, 1, 1},
                                                                                         {3, 3, 0, 2},
                                                                                         {3, 4, 0, 1},
                                                                                         {5, 2, 3, 2},
                                                                                         {1, 2, 0, 1},
                                                                                         {4, 6, 1, 4}}) {
    for (const auto& [ic, oc, groups] :
         std::vector<std::array<int64_t, 3>>{{8, 18, 1}, {5, 6, 1}, {8, 6, 2}, {6, 6, 6}}) {
      ConvShape s;
      s.batch = 2;
      s.transposed = true;
      s.in_channels = ic;
      s.out_channels = oc;
      s.groups = groups;
      s.in = {1, 4, 5};
      s.kernel = {1, kernel, kernel};
      s.stride = {1, stride, stride};
      s.pad = {0, pad, pad};
      s.dilation = {1, dilation, dilation};
      expect_conv_in_all_ranges(with_output(s, {0, stride > 1 ? 1 : 0, 0}), random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Int8Conv, ExtremesNeverSaturate) {
  Random random(6);
  for (const auto& bits : {std::pair{8, 8}, {7, 8}, {8, 7}, {7, 7}}) {
    const int w_lo = bits.first == 8 ? -128 : -64, w_hi = bits.first == 8 ? 127 : 64,
              x_hi = bits.second == 8 ? 255 : 127;
    for (int64_t k : {4, 8, 36, 148, 1024}) {
      for (int zero : {0, 64, x_hi}) {
        const Int8ConvProblem p{linear(13, 17, k), bits.first, bits.second};
        std::vector<std::pair<ConvCase::Draw, ConvCase::Draw>> draws;
        for (int x : {0, 1, x_hi / 2, x_hi})
          for (int w : {w_lo, -1, w_hi}) draws.emplace_back(testing::constant(x), testing::constant(w));
        draws.emplace_back(either(random, 0, x_hi), either(random, w_lo, w_hi));
        draws.emplace_back(testing::constant(x_hi), either(random, w_lo, w_hi));
        for (const auto& [x, w] : draws) {
          ConvCase c(p, x, w);
          c.args.x_zero_point = zero;
          expect_conv(c);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Weights for which packing proves each depth, and activations that come as near to the limit as they may.
TEST(Int8Conv, EachDepthIsExactAtItsLimit) {
  for (int activation_bits : {7, 8}) {
    const int x_max = activation_bits == 7 ? 127 : 255, limit = 32767 / x_max;
    for (int depth : {1, 2, 4, 8}) {
      const int w = limit / (2 * depth);
      for (int64_t k : {32, 64, 100}) {
        Int8ConvProblem p{linear(7, 16, k), 8, activation_bits};
        for (int sign : {1, -1}) {
          ConvCase c(p, testing::constant(x_max), testing::constant(std::clamp(w * sign, -128, 127)));
          Aligned packed(int8_conv_packed_bytes(p, {16, true}));
          pack_int8_conv(p, c.w.data(), {16, true}, packed.data());
          const int found = open_int8_conv_packed(p, packed.data(), {16, true}).depth[0];
          EXPECT_EQ(found, activation_bits == 7 && depth == 1 ? 1 : depth);
          expect_conv(c);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Small weights with a few large ones: packing takes the large ones apart, and nothing changes.
TEST(Int8Conv, ExtraQuadsAreExact) {
  Random random(13);
  for (int activation_bits : {7, 8}) {
    const int x_max = activation_bits == 7 ? 127 : 255, small = activation_bits == 7 ? 45 : 14;
    int extras = 0;
    for (const ConvShape& shape :
         {linear(25, 40, 512), square(64, 20, 5, 3, 1, 1), square(13, 16, 6, 5, 1, 2)}) {
      const Int8ConvProblem p{shape, 8, activation_bits};
      const ConvCase::Draw few_large = [&] {
        return random.integer(0, 1499) == 0 ? random.integer(0, 1) * 255 - 128
                                            : random.integer(-small, small);
      };
      for (const ConvCase::Draw& x : {testing::constant(x_max), uniform(random, 0, x_max)}) {
        ConvCase c(p, x, few_large);
        c.args.x_zero_point = 5;
        Aligned packed(int8_conv_packed_bytes(p, {16, true}));
        pack_int8_conv(p, c.w.data(), {16, true}, packed.data());
        const Int8ConvPacked found = open_int8_conv_packed(p, packed.data(), {16, true});
        for (int64_t i = 0; i < found.group_panels; ++i) extras += found.extras[i];
        EXPECT_FALSE(found.shallow);
        EXPECT_GE(found.depth[0], 2);
        expect_conv(c);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_GT(extras, 0);
  }
}

TEST(Int8Conv, LargestKFillsThirtyTwoBits) {
  for (int zero : {0, 255}) {
    for (int w : {-128, 127}) {
      for (int x : {0, 255}) {
        ConvCase c({linear(1, 3, kInt8ConvMaxK), 8, 8}, testing::constant(x), testing::constant(w));
        c.args.x_zero_point = zero;
        c.multiplier[0] = c.multiplier[1] = c.multiplier[2] = 4e-8f;
        expect_conv(c);
      }
    }
  }
}

TEST(Int8Conv, FloatsAndTheirLimits) {
  Random random(7);
  SerialFor serial;
  for (int64_t oc : {5, 16, 37}) {
    ConvCase c({square(12, oc, 5, 3, 1, 1), 7, 8}, uniform(random, 0, 255), uniform(random, -64, 64));
    c.use_residual();
    for (const bool limits : {false, true}) {
      if (limits) {
        c.args.lo_f32 = 0.0f;
        c.args.hi_f32 = 6.0f;
      }
      const std::vector<float> want = c.expected_floats();
      for (const Int8ConvKernel& kernel : testing::int8_conv_test_kernels()) {
        if (kernel.refuse(c.p) == nullptr) {
          EXPECT_EQ(c.floats_of(kernel, serial), want) << kernel.name;
        }
      }
    }
  }
}

TEST(Int8Conv, HugeFactorsClampInsteadOfWrapping) {
  Random random(8);
  ConvCase c({linear(5, 20, 32), 8, 8}, uniform(random, 0, 255), uniform(random, -128, 127));
  for (int64_t i = 0; i < 20; ++i) c.multiplier[i] = i % 2 == 0 ? 1e30f : 3e9f;
  expect_conv(c);
}

// Neighbours in wider tensors are neither read for the result nor written.
TEST(Int8Conv, StridesLeaveNeighboursAlone) {
  Random random(9);
  SerialFor serial;
  ConvCase c({square(20, 19, 6, 3, 1, 1), 7, 7}, uniform(random, 0, 127), uniform(random, -64, 64));
  c.use_residual();
  const std::vector<uint8_t> want = c.expected_bytes();
  const int64_t pixels = c.p.shape.in_pixels(), out_pixels = c.p.shape.out_pixels();
  Guarded<uint8_t> wide_x(pixels * 23 - 3), wide_out(out_pixels * 31 - 12, 9);
  for (int64_t i = 0; i < wide_x.size(); ++i) wide_x[i] = i % 23 < 20 ? c.x[i / 23 * 20 + i % 23] : 255;
  for (const Int8ConvKernel& kernel : testing::int8_conv_test_kernels()) {
    if (kernel.refuse(c.p) != nullptr) continue;
    Int8ConvArgs args = c.args;
    args.x = wide_x.data();
    args.x_stride = 23;
    args.out = wide_out.data();
    args.out_stride = 31;
    std::fill_n(wide_out.data(), wide_out.size(), uint8_t{9});
    c.run(kernel, args, serial);
    for (int64_t i = 0; i < wide_out.size(); ++i)
      ASSERT_EQ(wide_out[i], i % 31 < 19 ? want[static_cast<size_t>(i / 31 * 19 + i % 31)] : 9)
          << kernel.name;
  }
}

TEST(Int8Conv, TheOutputMayBeTheResidual) {
  Random random(10);
  SerialFor serial;
  ConvCase c({square(16, 24, 6, 1, 1, 0), 7, 7}, uniform(random, 0, 127), uniform(random, -64, 64));
  c.use_residual();
  const std::vector<uint8_t> want = c.expected_bytes();
  const std::vector<uint8_t> kept = c.residual.copy();
  for (const Int8ConvKernel& kernel : testing::int8_conv_test_kernels()) {
    if (kernel.refuse(c.p) != nullptr) continue;
    std::copy(kept.begin(), kept.end(), c.residual.data());
    Int8ConvArgs args = c.args;
    args.out = c.residual.data();
    c.run(kernel, args, serial);
    EXPECT_EQ(c.residual.copy(), want) << kernel.name;
  }
}

TEST(Int8Conv, ThreadsGiveTheSameBytes) {
  Random random(11);
  for (const ConvShape& shape : {square(16, 80, 20, 3, 1, 1), square(3, 40, 30, 7, 2, 3),
                                 square(33, 33, 12, 3, 1, 1, 33), linear(5, 300, 64)}) {
    for (const int bits : {7, 8}) {
      const ConvCase c({shape, bits, bits}, uniform(random, 0, bits == 7 ? 127 : 255),
                       uniform(random, -64, 64));
      const std::vector<uint8_t> want = c.expected_bytes();
      for (int threads : {2, 3}) {
        ThreadPool pool(threads);
        for (const Int8ConvKernel& kernel : testing::int8_conv_test_kernels()) {
          if (kernel.refuse(c.p) == nullptr) {
            EXPECT_EQ(c.bytes_of(kernel, pool), want) << kernel.name;
          }
        }
      }
    }
  }
}

TEST(Int8Conv, TwoThreadsReallyRun) {
  Random random(12);
  for (const ConvShape& shape :
       {square(32, 64, 16, 3, 1, 1), square(64, 64, 16, 3, 1, 1, 64), linear(1, 512, 64)}) {
    const ConvCase c({shape, 7, 7}, uniform(random, 0, 127), uniform(random, -64, 64));
    testing::CountingParallelFor witness;
    for (int round = 0; round < 200 && witness.threads_seen() < 2; ++round)
      c.bytes_of(choose_int8_conv(c.p, machine_isa()), witness);
    EXPECT_EQ(witness.threads_seen(), 2u);
  }
}

}  // namespace
}  // namespace halftone::kernels
