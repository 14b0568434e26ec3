#include "decoder/token_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/expect_error.h"

namespace halftone {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(TokenStatistics, LogSoftmaxIsRightForLargeLogits) {
  // exp(1000) has no double; differences are all that counts.
  const std::vector<float> logits = {1000, 999, -kInfinity};
  const double sum = 1 + std::exp(-1.0);
  const std::vector<double> found = log_softmax(logits);
  EXPECT_NEAR(found[0], -std::log(sum), 1e-12);
  EXPECT_NEAR(found[1], -1 - std::log(sum), 1e-12);
  EXPECT_EQ(found[2], -HUGE_VAL);
}

TEST(TokenStatistics, LogSoftmaxRefusesNanAndNoMaximum) {
  expect_error(ErrorCode::kInvalidArgument, {"NaN"}, [] {
    log_softmax(std::vector<float>{0, std::nanf("")});
  });
  expect_error(ErrorCode::kInvalidArgument, {"finite"}, [] {
    log_softmax(std::vector<float>{-kInfinity, -kInfinity});
  });
  expect_error(ErrorCode::kInvalidArgument, {"finite"}, [] {
    log_softmax(std::vector<float>{0, kInfinity});
  });
}

TEST(TokenStatistics, DivergenceOfKnownDistributions) {
  const std::vector<double> p = {std::log(0.5), std::log(0.5)}, q = {std::log(0.25), std::log(0.75)};
  EXPECT_NEAR(kl_divergence(p, q), 0.5 * std::log(2) + 0.5 * std::log(2.0 / 3), 1e-15);
  EXPECT_EQ(kl_divergence(p, p), 0);
  const std::vector<double> sure = {0, -HUGE_VAL};
  EXPECT_NEAR(kl_divergence(sure, q), std::log(4), 1e-15);  // 0 · log 0 counts as 0
  EXPECT_EQ(kl_divergence(q, sure), HUGE_VAL);
}

TEST(TokenStatistics, MeanAndIntervalDoNotCancel) {
  MeanOfTokens mean;
  for (int i = 0; i < 100; ++i) mean.add(1e9 + (i % 2));
  const TokenMean found = mean.mean();
  EXPECT_NEAR(found.value, 1e9 + 0.5, 1e-6);
  const double error = 1.96 * std::sqrt(25.0 / 99 / 100);  // the squares of the distances add up to 25
  EXPECT_NEAR(found.high - found.value, error, 1e-6);
  EXPECT_NEAR(found.value - found.low, error, 1e-6);
}

TEST(TokenStatistics, OneValueHasNoSpread) {
  MeanOfTokens mean;
  mean.add(3);
  EXPECT_EQ(mean.mean().low, 3);
  EXPECT_EQ(mean.mean().high, 3);
}

}  // namespace
}  // namespace halftone
