#include "decoder/sampler.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/errors.h"

namespace halftone {

namespace {

void require(bool ok, const char* option, const char* wanted) {
  if (!ok) fail(ErrorCode::kInvalidArgument, "{} must be {}", option, wanted);
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options) : options_(options), random_(options.seed) {
  require(options.temperature >= 0 && std::isfinite(options.temperature), "temperature", "0 or more");
  require(options.top_k >= 0, "top_k", "0 or more");
  require(options.top_p > 0 && options.top_p <= 1, "top_p", "above 0 and at most 1");
  require(options.min_p >= 0 && options.min_p <= 1, "min_p", "from 0 to 1");
  require(options.repeat_penalty > 0 && std::isfinite(options.repeat_penalty), "repeat_penalty", "above 0");
  require(options.repeat_last >= 0, "repeat_last", "0 or more");
}

int64_t Sampler::draw(std::span<const float> logits, std::span<const int64_t> before) {
  logits_.assign(logits.begin(), logits.end());
  if (std::any_of(logits_.begin(), logits_.end(), [](double value) { return std::isnan(value); }))
    fail(ErrorCode::kInvalidArgument, "the model's logits hold NaN: no token can be drawn");
  penalize(before);
  const auto best = std::max_element(logits_.begin(), logits_.end());
  if (best == logits_.end() || *best == -HUGE_VAL)
    fail(ErrorCode::kInvalidArgument, "the model's logits leave no token to draw");
  if (options_.temperature == 0) return best - logits_.begin();
  keep_best();
  // Relative to the best one: exponentials of large logits would overflow.
  const double largest = candidates_.front().logit;
  double sum = 0;
  std::vector<double> shares;
  for (const Candidate& each : candidates_) {
    shares.push_back(std::exp((each.logit - largest) / options_.temperature));
    sum += shares.back();
  }
  double left = uniform() * sum;
  for (size_t i = 0; i < shares.size(); ++i) {
    left -= shares[i];
    if (left < 0) return candidates_[i].token;
  }
  return candidates_.back().token;  // rounding
}

/// Each token counts once, however often it came.
void Sampler::penalize(std::span<const int64_t> before) {
  if (options_.repeat_penalty == 1) return;
  const size_t count = std::min(before.size(), static_cast<size_t>(options_.repeat_last));
  const std::set<int64_t> tokens(before.end() - static_cast<std::ptrdiff_t>(count), before.end());
  for (const int64_t token : tokens) {
    if (token < 0 || static_cast<size_t>(token) >= logits_.size()) continue;
    double& logit = logits_[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
  }
}

/// top_k, top_p and min_p, with probabilities at temperature 1.
void Sampler::keep_best() {
  candidates_.clear();
  for (size_t i = 0; i < logits_.size(); ++i) candidates_.push_back({static_cast<int64_t>(i), logits_[i]});
  // Equal logits: the lower token first, so that the order does not depend on the sort.
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  size_t kept = options_.top_k == 0 ? candidates_.size()
                                    : std::min(candidates_.size(), static_cast<size_t>(options_.top_k));
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(kept),
                    candidates_.end(), better);
  candidates_.resize(kept);
  const double largest = candidates_.front().logit;
  double sum = 0;
  for (const Candidate& each : candidates_) sum += std::exp(each.logit - largest);
  double so_far = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const double share = std::exp(candidates_[i].logit - largest);
    if (i > 0 && (so_far >= options_.top_p * sum || share < options_.min_p)) {
      candidates_.resize(i);
      return;
    }
    so_far += share;
  }
}

/// SplitMix64: one multiplication chain a number, the same on every machine.
double Sampler::uniform() {
  random_ += 0x9E3779B97F4A7C15u;
  uint64_t bits = random_;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  bits ^= bits >> 31;
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

float log_probability(std::span<const float> logits, int64_t token) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - largest));
  return static_cast<float>(logits[static_cast<size_t>(token)] - largest - std::log(sum));
}

}  // namespace halftone
