#include "kernels/fp32_conv/fp32_conv.h"

#include <gtest/gtest.h>

#include "halftone/base/error.h"
#include "kernels/fp32_conv/fp32_conv_test_support.h"

namespace halftone::kernels {
namespace {

using testing::Aligned;
using testing::conv_shape_2d;
using testing::conv_test_kernels;
using testing::ConvLayer;
using testing::expect_conv_within_bound;
using testing::Guarded;

TEST(Fp32Conv, TableIsWellFormedAndEachLevelGetsItsKernel) {
  testing::expect_well_formed(fp32_conv_kernels(), "fp32_conv");
  for (Isa isa : kAllIsas) {
    if (fp32_conv_kernels().size() > 2) {
      EXPECT_EQ(choose_fp32_conv({conv_shape_2d(64, 64, 14, 1)}, isa).isa, isa);
    }
  }
  EXPECT_EQ(choose_fp32_conv({conv_shape_2d(48, 48, 9, 3, 1, 1, 1, 48)}).algorithm,
            ConvAlgorithm::kDepthwise);
  Fp32ConvProblem plain{conv_shape_2d(64, 64, 56, 3, 1, 1)};
  plain.winograd = false;
  EXPECT_EQ(choose_fp32_conv(plain).algorithm, ConvAlgorithm::kGemm);
  ConvShape bad = conv_shape_2d(4, 4, 5, 3);
  bad.stride[2] = 0;
  EXPECT_THROW(choose_fp32_conv({bad}), Error);
}

TEST(Fp32Conv, OneByOneOverChannelEdges) {
  for (int64_t ic : {1, 3, 5, 16, 17, 40})
    for (int64_t oc : {1, 3, 8, 15, 16, 17, 33, 64})
      for (int64_t size : {1, 2, 3, 5})
        ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(ConvLayer(conv_shape_2d(ic, oc, size, 1))));
}

TEST(Fp32Conv, KernelsStridesPaddingAndDilation) {
  for (int64_t ic : {1, 3, 17, 20})
    for (int64_t kernel : {2, 3, 5})
      for (int64_t stride : {1, 2, 3})
        for (int64_t pad : {0, 1, 3})
          for (int64_t dilation : {1, 2})
            ASSERT_NO_FATAL_FAILURE(
                expect_conv_within_bound(ConvLayer(conv_shape_2d(ic, 18, 9, kernel, stride, pad, dilation))));
  ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(ConvLayer(conv_shape_2d(3, 64, 21, 7, 2, 3))));
}

TEST(Fp32Conv, DepthIsCutInTheRightPlaces) {
  for (int64_t ic : {100, 255, 256, 257, 600})
    for (int64_t kernel : {1, 3})
      ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(ConvLayer(conv_shape_2d(ic, 20, 4, kernel, 1, 1))));
}

TEST(Fp32Conv, ManyPixelsAndPanelsAreCutInTheRightPlaces) {
  ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(ConvLayer(conv_shape_2d(20, 450, 12, 1))));
  ConvShape s = conv_shape_2d(18, 40, 17, 3, 1, 1);
  s.batch = 2;
  ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(ConvLayer(s)));
}

TEST(Fp32Conv, Groups) {
  for (int64_t groups : {2, 3, 5})
    for (int64_t ic : {1, 4, 17})
      for (int64_t oc : {1, 2, 16, 19})
        ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(
            ConvLayer(conv_shape_2d(groups * ic, groups * oc, 6, 3, 2, 1, 1, groups))));
}

TEST(Fp32Conv, SmallGroupsAsVectorsAcrossGroups) {
  for (int64_t groups : {2, 3, 5, 8})
    for (int64_t width : {2, 4, 8})
      for (bool transposed : {false, true}) {
        ConvShape s = conv_shape_2d(groups * width, groups * width, 6, 3, 2, 1, 1, groups);
        s.transposed = transposed;
        s.out = conv_output(s);
        EXPECT_EQ(choose_fp32_conv({s}).algorithm, ConvAlgorithm::kDepthwise);
        ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(ConvLayer(s)));
      }
}

TEST(Fp32Conv, DepthwiseOverChannelEdges) {
  for (int64_t channels : {1, 3, 7, 8, 9, 16, 17, 31, 40})
    for (int64_t kernel : {1, 3, 5})
      for (int64_t stride : {1, 2})
        for (int64_t dilation : {1, 2})
          ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(
              ConvLayer(conv_shape_2d(channels, channels, 9, kernel, stride, 2, dilation, channels))));
}

TEST(Fp32Conv, OneAndThreeDimensions) {
  for (int64_t groups : {1, 2, 6}) {
    ConvShape line;
    line.batch = 2;
    line.in_channels = line.out_channels = 6;
    line.groups = groups;
    line.in = {1, 1, 23};
    line.kernel = {1, 1, 5};
    line.stride = {1, 1, 2};
    line.pad = {0, 0, 3};
    line.out = conv_output(line);
    ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(ConvLayer(line)));
    ConvShape solid = line;
    solid.in = {5, 6, 4};
    solid.kernel = {3, 2, 3};
    solid.stride = {2, 1, 1};
    solid.pad = {1, 0, 2};
    solid.dilation = {1, 2, 1};
    solid.out = conv_output(solid);
    ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(ConvLayer(solid)));
    solid.in_channels = solid.out_channels = 36;
    ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(ConvLayer(solid)));
  }
}

TEST(Fp32Conv, TransposedWithOutputPadding) {
  for (int64_t stride : {1, 2, 3})
    for (int64_t kernel : {1, 2, 3, 4})
      for (int64_t dilation : {1, 2, 3})
        for (int64_t groups : {1, 3, 18}) {
          ConvShape s = conv_shape_2d(18, groups == 1 ? 17 : 18, 5, 1);
          s.batch = 2;
          s.transposed = true;
          s.groups = groups;
          s.in = {1, 4, 5};
          s.kernel = {1, kernel, 3};
          s.stride = {1, stride, 2};
          s.dilation = {1, dilation, 1};
          s.pad = {0, kernel > 1 ? 1 : 0, 1};
          s.out = conv_output(s, {0, stride > 1 ? 1 : 0, 1});
          ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(ConvLayer(s)));
        }
  ConvShape solid = conv_shape_2d(3, 5, 4, 1);
  solid.transposed = true;
  solid.in = {3, 2, 4};
  solid.kernel = {2, 3, 4};
  solid.stride = {2, 3, 2};
  solid.pad = {1, 0, 1};
  solid.out = conv_output(solid, {1, 2, 0});
  ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(ConvLayer(solid)));
}

TEST(Fp32Conv, EpiloguesApplyInOrder) {
  for (const ConvShape& s : {conv_shape_2d(16, 37, 5, 3, 1, 1), conv_shape_2d(300, 32, 3, 1),
                             conv_shape_2d(21, 21, 5, 3, 1, 1, 1, 21), conv_shape_2d(16, 32, 7, 3, 1, 1)}) {
    const ConvLayer layer(s);
    for (const Fp32ConvKernel& kernel : conv_test_kernels(s)) {
      const std::vector<float> sums = layer.floats(kernel);
      for (ConvActivation kind : kAllConvActivations) {
        Fp32ConvArgs a = layer.args();
        a.bias = layer.bias.data();
        a.residual = layer.residual.data();
        a.residual_stride = s.out_channels;
        a.activate = {kind, -0.5f, 1.5f};
        SerialFor serial;
        const std::vector<float> y = layer.floats(kernel, a, serial);
        for (size_t i = 0; i < y.size(); ++i) {
          const int64_t at = static_cast<int64_t>(i);
          const float sum = sums[i] + layer.bias[at % s.out_channels] + layer.residual[at];
          ASSERT_NEAR(y[i], conv_activate(sum, a.activate), 2e-5 * std::abs(sum) + 1e-6)
              << kernel.name << " " << static_cast<int>(kind);
        }
      }
    }
  }
}

TEST(Fp32Conv, SlicesOfChannelsAreReadAndWrittenWithoutTheirNeighbours) {
  for (const ConvShape& s : {conv_shape_2d(16, 19, 6, 3, 1, 1), conv_shape_2d(3, 8, 6, 3, 2, 1),
                             conv_shape_2d(20, 20, 6, 3, 1, 1, 1, 20), conv_shape_2d(16, 16, 6, 3, 1, 1)}) {
    const ConvLayer layer(s);
    const int64_t wide_in = s.in_channels + 5, wide_out = s.out_channels + 3;
    Guarded<float> x(s.in_pixels() * wide_in - 2, NAN), out(s.out_pixels() * wide_out - 1, -7.0f);
    for (int64_t p = 0; p < s.in_pixels(); ++p)
      for (int64_t c = 0; c < s.in_channels; ++c) x[p * wide_in + 3 + c] = layer.x[p * s.in_channels + c];
    for (const Fp32ConvKernel& kernel : conv_test_kernels(s)) {
      Fp32ConvArgs a = layer.args();
      a.x = x.data() + 3;
      a.x_strides = channels_last_strides(s, wide_in);
      a.out = out.data() + 2;
      a.out_stride = wide_out;
      SerialFor serial;
      layer.run(kernel, a, serial);
      const std::vector<float> want = layer.floats(kernel);
      for (int64_t i = 0; i < out.size(); ++i) {
        const int64_t channel = i % wide_out - 2;
        const bool ours = channel >= 0 && channel < s.out_channels;
        ASSERT_EQ(out[i], ours ? want[static_cast<size_t>(i / wide_out * s.out_channels + channel)] : -7.0f)
            << kernel.name << " " << i;
      }
    }
  }
}

TEST(Fp32Conv, ReadsImagesWithChannelsFirst) {
  for (int64_t channels : {3, 18}) {
    for (int64_t groups : {1, 3}) {
      ConvShape s = conv_shape_2d(channels, 18, 11, 5, 2, 2, 1, groups);
      s.batch = 2;
      const ConvLayer layer(s);
      Guarded<float> x(layer.x.size());
      const int64_t pixels = s.in_pixels();
      for (int64_t i = 0; i < x.size(); ++i) {
        const int64_t image = i / (channels * pixels), pixel = i / channels % pixels, channel = i % channels;
        x[(image * channels + channel) * pixels + pixel] = layer.x[i];
      }
      for (const Fp32ConvKernel& kernel : conv_test_kernels(s, true)) {
        Fp32ConvArgs a = layer.args();
        a.x = x.data();
        a.x_strides = {channels * pixels, pixels, {pixels, 11, 1}};
        testing::CountingParallelFor parallel_for;
        const std::vector<float> y = layer.floats(kernel, a, parallel_for), want = layer.floats(kernel);
        for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], want[i], 1e-4) << kernel.name;
      }
    }
  }
}

TEST(Fp32Conv, ThreadsGiveTheSameFloats) {
  for (const ConvShape& s :
       {conv_shape_2d(30, 170, 19, 3, 1, 1), conv_shape_2d(70, 200, 3, 1), conv_shape_2d(3, 20, 40, 3, 2, 1),
        conv_shape_2d(40, 40, 19, 3, 1, 1, 1, 40), conv_shape_2d(32, 32, 21, 3, 1, 1)}) {
    const ConvLayer layer(s);
    for (const Fp32ConvKernel& kernel : conv_test_kernels(s)) {
      const std::vector<float> want = layer.floats(kernel);
      for (int threads : {2, 3, 5}) {
        ThreadPool pool(threads);
        EXPECT_EQ(layer.floats(kernel, layer.args(), pool), want) << kernel.name << " " << threads;
      }
      testing::CountingParallelFor counting;
      layer.floats(kernel, layer.args(), counting);
      EXPECT_EQ(counting.threads_seen(), 2u) << kernel.name;
    }
  }
}

TEST(Fp32Conv, NanAndInfinityReachTheOutputsThatReadThem) {
  for (const ConvShape& s : {conv_shape_2d(17, 20, 8, 3, 1, 1), conv_shape_2d(17, 17, 8, 3, 1, 1, 1, 17)}) {
    for (float bad : {NAN, INFINITY, -INFINITY}) {
      ConvLayer layer(s);
      layer.x[(3 * 8 + 4) * 17 + 16] = bad;
      for (const Fp32ConvKernel& kernel : conv_test_kernels(s)) {
        const std::vector<float> y = layer.floats(kernel);
        Fp32ConvArgs relu = layer.args();
        relu.activate.kind = ConvActivation::kRelu;
        SerialFor serial;
        const std::vector<float> positive = layer.floats(kernel, relu, serial);
        for (size_t i = 0; i < y.size(); ++i) {
          ASSERT_EQ(std::isnan(positive[i]), std::isnan(y[i])) << kernel.name << " " << i;
          const int64_t channel = static_cast<int64_t>(i) % s.out_channels;
          const int64_t pixel = static_cast<int64_t>(i) / s.out_channels;
          const bool near = std::abs(pixel / 8 - 3) <= 1 && std::abs(pixel % 8 - 4) <= 1;
          const bool hit = near && (s.groups == 1 || channel == 16);
          ASSERT_EQ(std::isfinite(y[i]), !hit) << kernel.name << " " << i;
          ASSERT_EQ(std::isnan(y[i]), hit && std::isnan(bad)) << kernel.name << " " << i;
        }
      }
    }
  }
}

TEST(Fp32Conv, AnEmptyBatchDoesNothing) {
  ConvShape s = conv_shape_2d(4, 4, 5, 3);
  s.batch = 0;
  const ConvLayer layer(s);
  for (const Fp32ConvKernel& kernel : conv_test_kernels(s)) EXPECT_TRUE(layer.floats(kernel).empty());
}

TEST(Fp32Conv, ArgumentsThatDoNotFitAreRefused) {
  const ConvShape s = conv_shape_2d(16, 32, 6, 3, 1, 1);
  const ConvLayer layer(s);
  SerialFor serial;
  for (const Fp32ConvKernel& kernel : conv_test_kernels(s)) {
    Aligned packed(fp32_conv_packed_bytes(kernel, s));
    pack_fp32_conv(kernel, s, layer.w.data(), packed.data());
    std::vector<float> out(static_cast<size_t>(s.out_pixels() * s.out_channels));
    std::vector<char> workspace(fp32_conv_workspace_bytes(kernel, s, 1));
    Fp32ConvArgs good = layer.args();
    good.weights = packed.data();
    good.out = out.data();
    good.workspace = workspace.data();
    good.workspace_bytes = workspace.size();
    EXPECT_NO_THROW(fp32_conv(kernel, s, good, serial));
    const auto refused = [&](auto spoil) {
      Fp32ConvArgs bad = good;
      spoil(bad);
      EXPECT_THROW(fp32_conv(kernel, s, bad, serial), Error) << kernel.name;
    };
    refused([](Fp32ConvArgs& a) { a.workspace_bytes = 100; });
    refused([](Fp32ConvArgs& a) { a.x = nullptr; });
    refused([](Fp32ConvArgs& a) { a.out = nullptr; });
    refused([](Fp32ConvArgs& a) { a.out_stride = 31; });
    refused([](Fp32ConvArgs& a) { a.residual = a.x, a.residual_stride = 31; });
    refused([](Fp32ConvArgs& a) { a.activate = {ConvActivation::kClamp, 2.0f, 1.0f}; });
    refused([](Fp32ConvArgs& a) { a.weights = static_cast<const char*>(a.weights) + 4; });
    refused([](Fp32ConvArgs& a) { a.weights = nullptr; });
    EXPECT_THROW(fp32_conv(kernel, conv_shape_2d(16, 48, 6, 3, 1, 1), good, serial), Error);
    EXPECT_THROW(pack_fp32_conv(kernel, s, nullptr, packed.data()), Error);
  }
}

TEST(Fp32Conv, WeightsOfAnotherAlgorithmOrGeometryAreRefused) {
  const ConvShape s = conv_shape_2d(16, 16, 6, 3, 1, 1);
  const ConvLayer layer(s);
  const Fp32ConvKernel& gemm = fp32_conv_kernels().back();
  Aligned packed(fp32_conv_packed_bytes(gemm, s));
  pack_fp32_conv(gemm, s, layer.w.data(), packed.data());
  EXPECT_NO_THROW(open_fp32_conv_packed(gemm, s, packed.data()));
  for (const Fp32ConvKernel& kernel : conv_test_kernels(s)) {
    if (kernel.algorithm != ConvAlgorithm::kGemm || kernel.tile_n != gemm.tile_n) {
      EXPECT_THROW(open_fp32_conv_packed(kernel, s, packed.data()), Error) << kernel.name;
    }
  }
  ConvShape other = s;
  other.kernel = {1, 1, 9};
  EXPECT_THROW(open_fp32_conv_packed(gemm, other, packed.data()), Error);
  other = s;
  other.transposed = true;
  EXPECT_THROW(open_fp32_conv_packed(gemm, other, packed.data()), Error);
  other = s;
  other.in = {1, 9, 9};
  other.batch = 3;
  EXPECT_NO_THROW(open_fp32_conv_packed(gemm, other, packed.data()));
}

}  // namespace
}  // namespace halftone::kernels
