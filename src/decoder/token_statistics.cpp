#include "decoder/token_statistics.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"

namespace halftone {

std::vector<double> log_softmax(std::span<const float> logits) {
  double largest = -HUGE_VAL;
  for (const float logit : logits) {
    if (std::isnan(logit)) fail(ErrorCode::kInvalidArgument, "the model gave a logit that is NaN");
    largest = std::max(largest, static_cast<double>(logit));
  }
  if (!std::isfinite(largest))
    fail(ErrorCode::kInvalidArgument, "the model gave logits without a finite maximum ({})", largest);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  const double shift = largest + std::log(sum);
  std::vector<double> result(logits.size());
  std::transform(logits.begin(), logits.end(), result.begin(), [&](float logit) { return logit - shift; });
  return result;
}

double kl_divergence(std::span<const double> log_p, std::span<const double> log_q) {
  double sum = 0;
  for (size_t i = 0; i < log_p.size(); ++i) {
    const double p = std::exp(log_p[i]);
    if (p > 0) sum += p * (log_p[i] - log_q[i]);  // 0 · log 0 is 0
  }
  return std::max(sum, 0.0);  // rounding may give -1e-17
}

void MeanOfTokens::add(double value) {
  ++count_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (value - mean_);
}

TokenMean MeanOfTokens::mean() const {
  constexpr double kIn95Percent = 1.96;  // standard errors
  if (count_ < 2) return {mean_, mean_, mean_};
  const auto count = static_cast<double>(count_);
  const double error = kIn95Percent * std::sqrt(squares_ / (count - 1) / count);
  return {mean_, mean_ - error, mean_ + error};
}

}  // namespace halftone
