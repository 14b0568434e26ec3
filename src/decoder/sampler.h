// Drawing the next token from logits. No torch; the same numbers on every machine and number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "halftone/decoder/generate.h"

namespace halftone {

/// Of one sequence: keeps its random state.
class Sampler {
 public:
  /// kInvalidArgument, naming the option, for values that make no sense.
  explicit Sampler(const SamplingOptions& options);

  /// `before`: the tokens of the sequence so far, for repeat_penalty. kInvalidArgument if a logit is NaN, or none is
  /// above minus infinity.
  int64_t draw(std::span<const float> logits, std::span<const int64_t> before);

 private:
  struct Candidate {
    int64_t token;
    double logit;
  };
  void penalize(std::span<const int64_t> before);
  void keep_best();
  double uniform();

  SamplingOptions options_;
  uint64_t random_;
  std::vector<double> logits_;
  std::vector<Candidate> candidates_;  ///< best first
};

/// Natural logarithm of the probability of `token`.
float log_probability(std::span<const float> logits, int64_t token);

}  // namespace halftone
