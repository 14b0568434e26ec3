// Winograd kernels: sizes that tiles do not divide, chunks, and how large their error really is.
#include <gtest/gtest.h>

#include "kernels/fp32_conv/fp32_conv_test_support.h"

namespace halftone::kernels {
namespace {

using testing::conv_shape_2d;
using testing::conv_test_kernels;
using testing::ConvLayer;
using testing::expect_conv_within_bound;

TEST(Fp32ConvWinograd, SizesThatTilesDoNotDivide) {
  for (int64_t size : {3, 4, 5, 7, 8, 9, 14})
    for (int64_t pad : {0, 1, 2})
      ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(ConvLayer(conv_shape_2d(16, 16, size, 3, 1, pad))));
}

TEST(Fp32ConvWinograd, ChannelsAndBatches) {
  for (int64_t ic : {16, 48, 272})
    for (int64_t oc : {16, 48}) {
      ConvShape s = conv_shape_2d(ic, oc, 6, 3, 1, 1);
      s.batch = 3;
      ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(ConvLayer(s)));
    }
}

TEST(Fp32ConvWinograd, ImagesFarFromZero) {
  // Transforms subtract large neighbours from each other.
  ConvLayer layer(conv_shape_2d(64, 32, 9, 3, 1, 1));
  for (int64_t i = 0; i < layer.x.size(); ++i) layer.x[i] = 100.0f + layer.x[i];
  ASSERT_NO_FATAL_FAILURE(expect_conv_within_bound(layer));
}

TEST(Fp32ConvWinograd, ChunksOfTiles) {
  // Enough tiles and channels for more than one chunk of F(4x4): only compared with the direct kernel.
  ConvShape s = conv_shape_2d(256, 256, 25, 3, 1, 1);
  s.batch = 2;
  const ConvLayer layer(s);
  std::vector<float> direct;
  for (const Fp32ConvKernel& kernel : testing::runnable(fp32_conv_kernels()))
    if (kernel.algorithm == ConvAlgorithm::kGemm && direct.empty()) direct = layer.floats(kernel);
  for (const Fp32ConvKernel& kernel : testing::runnable(fp32_conv_kernels())) {
    if (winograd_outputs(kernel.algorithm) == 0) continue;
    const std::vector<float> y = layer.floats(kernel);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], direct[i], 1e-3) << kernel.name << " " << i;
  }
}

TEST(Fp32ConvWinograd, TheErrorIsSmallBesideTheOutput) {
  // What users see: the error relative to the spread of the outputs (48 = sqrt(9 · 256)).
  const ConvShape s = conv_shape_2d(256, 16, 8, 3, 1, 1);
  const ConvLayer layer(s);
  for (const Fp32ConvKernel& kernel : conv_test_kernels(s)) {
    const std::vector<float> y = layer.floats(kernel);
    double largest = 0;
    size_t at = 0;
    for (int64_t row = 0; row < 8; ++row)
      for (int64_t column = 0; column < 8; ++column)
        for (int64_t channel = 0; channel < 16; ++channel, ++at)
          largest = std::max(largest,
                             std::abs(y[at] - testing::ConvExact(layer, 0, {0, row, column}, channel).sum));
    const int m = winograd_outputs(kernel.algorithm);
    EXPECT_LE(largest / 48, m == 4 ? 1e-5 : 4e-6) << kernel.name;
  }
}

}  // namespace
}  // namespace halftone::kernels
