// Distributions over tokens from logits, and means over tokens. No torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "halftone/decoder/evaluate.h"

namespace halftone {

/// Natural logarithms of the probabilities of all tokens. kInvalidArgument if a logit is NaN or none is above minus infinity.
std::vector<double> log_softmax(std::span<const float> logits);

/// Sum of p · (log p - log q) over all tokens. Infinite if q rules out what p does not.
double kl_divergence(std::span<const double> log_p, std::span<const double> log_q);

/// Adds up values of tokens, and gives their mean with its 95 % interval.
class MeanOfTokens {
 public:
  void add(double value);
  TokenMean mean() const;

 private:
  // Welford's: the sum of squares of large numbers would cancel.
  int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;  ///< of the distances to the mean
};

}  // namespace halftone
