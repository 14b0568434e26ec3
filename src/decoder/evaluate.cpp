#include "halftone/decoder/evaluate.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "decoder/token_statistics.h"

namespace halftone {

namespace {

constexpr int64_t kDefaultWindow = 512;

/// Means of negative log-probabilities as perplexities.
TokenMean as_perplexity(const TokenMean& loss) {
  return {std::exp(loss.value), std::exp(loss.low), std::exp(loss.high)};
}

int64_t first_of(const std::vector<double>& log_probabilities) {
  return std::max_element(log_probabilities.begin(), log_probabilities.end()) - log_probabilities.begin();
}

void require_same_vocabulary(const Generator& model, const Generator& reference, std::string_view text) {
  if (model.info().vocabulary != reference.info().vocabulary) {
    fail(ErrorCode::kInvalidArgument,
         "the reference has {} tokens, the model {}: they cannot be compared token by token",
         reference.info().vocabulary, model.info().vocabulary);
  }
  const EncodeOptions plain{.add_special = false, .parse_special = false};
  if (model.tokenizer().encode(text, plain) != reference.tokenizer().encode(text, plain))
    fail(ErrorCode::kInvalidArgument,
         "the reference makes other tokens of this text than the model: they cannot be compared");
}

int64_t window_of(const Generator& model, const Generator* reference, int64_t wanted) {
  const int64_t room =
      std::min(model.info().context, reference ? reference->info().context : model.info().context);
  const int64_t window = wanted == 0 ? std::min(kDefaultWindow, room) : wanted;
  if (window < 4) fail(ErrorCode::kInvalidArgument, "a window of {} tokens is too short: 4 at least", window);
  if (window > room)
    fail(ErrorCode::kInvalidArgument, "a window of {} tokens does not fit into a context of {}", window,
         room);
  return window;
}

/// What stands at the head of each window: the begin of text, where the model wants one.
std::vector<int64_t> head_of(const Tokenizer& tokenizer) {
  const std::vector<int64_t> special = tokenizer.encode("");
  if (special.empty() || special.front() != tokenizer.bos_id()) return {};
  return {special.front()};
}

/// What all windows add up to.
class Totals {
 public:
  /// `model` and `reference` [counted][vocabulary]; tokens[i] is what comes after row i.
  void add(std::span<const std::vector<float>> model, std::span<const std::vector<float>> reference,
           std::span<const int64_t> tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto token = static_cast<size_t>(tokens[i]);
      const std::vector<double> q = log_softmax(model[i]);
      loss_.add(-q[token]);
      if (reference.empty()) continue;
      const std::vector<double> p = log_softmax(reference[i]);
      reference_loss_.add(-p[token]);
      const double kl = kl_divergence(p, q);
      kl_.add(kl);
      max_kl_ = std::max(max_kl_, kl);
      same_.add(first_of(p) == first_of(q) ? 1 : 0);
    }
  }

  TokenMean perplexity() const { return as_perplexity(loss_.mean()); }
  Divergence divergence() const {
    TokenMean same = same_.mean();
    same.low = std::max(same.low, 0.0);
    same.high = std::min(same.high, 1.0);
    return {kl_.mean(), max_kl_, same, as_perplexity(reference_loss_.mean())};
  }

 private:
  MeanOfTokens loss_, reference_loss_, kl_, same_;
  double max_kl_ = 0;
};

}  // namespace

Evaluation evaluate(const Generator& model, std::string_view text, const EvaluateOptions& options,
                    const Generator* reference) {
  if (options.max_windows < 0)
    fail(ErrorCode::kInvalidArgument, "max_windows is {}, it must be 0 or more", options.max_windows);
  const int64_t window = window_of(model, reference, options.window);
  if (reference) require_same_vocabulary(model, *reference, text);
  const std::vector<int64_t> all =
      model.tokenizer().encode(text, {.add_special = false, .parse_special = false});
  const std::vector<int64_t> head = head_of(model.tokenizer());
  const int64_t own = window - static_cast<int64_t>(head.size());  // tokens of the text in a window
  const auto count = static_cast<int64_t>(all.size());
  if (own < 4 || count < own) {
    fail(ErrorCode::kInvalidArgument,
         "the text has {} tokens, a window takes {}: give a longer text or a smaller window", count,
         std::max<int64_t>(own, 4));
  }
  Evaluation result;
  result.windows = count / own;
  if (options.max_windows > 0) result.windows = std::min(result.windows, options.max_windows);
  Totals totals;
  for (int64_t i = 0; i < result.windows; ++i) {
    std::vector<int64_t> tokens = head;
    tokens.insert(tokens.end(), all.begin() + i * own, all.begin() + (i + 1) * own);
    const std::span<const int64_t> targets = std::span(tokens).subspan(static_cast<size_t>(window / 2));
    const int64_t first = window / 2 - 1;  // the row that predicts the first of them
    tokens.pop_back();                     // nothing is asked of what comes after the last one
    const auto rows = model.logits(std::span(tokens), first);
    const auto wanted =
        reference ? reference->logits(std::span(tokens), first) : std::vector<std::vector<float>>();
    totals.add(rows, wanted, targets);
    result.counted_tokens += static_cast<int64_t>(targets.size());
    if (options.progress) options.progress(i + 1, result.windows, "");
  }
  result.perplexity = totals.perplexity();
  if (reference) result.reference = totals.divergence();
  return result;
}

}  // namespace halftone
