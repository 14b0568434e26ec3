// How well a decoder predicts a text, and how far it is from another one: perplexity, KL divergence, same first choice.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "halftone/base/api.h"
#include "halftone/base/progress.h"
#include "halftone/decoder/generate.h"

namespace halftone {

struct EvaluateOptions {
  /// The text is cut into windows of so many tokens, as llama.cpp does it: the first half of a window is only read, the
  /// tokens of the second half are counted. 0: 512, or the model's context if that is smaller.
  int64_t window = 0;
  int64_t max_windows = 0;  ///< 0: as many as the text has
  /// Windows done and windows in all.
  ProgressCallback progress;
};

/// A mean over tokens, and its 95 % interval from their spread. Tokens that follow each other are not independent, so
/// the interval is for comparing schemes on one text, not a statement about all texts.
struct TokenMean {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// Beside a reference, token by token.
struct Divergence {
  TokenMean kl;          ///< of the reference's distribution from the model's, in nats
  double max_kl = 0;     ///< of a single token
  TokenMean same_first;  ///< share of tokens for which both have the same most probable one
  TokenMean perplexity;  ///< the reference's own
};

struct Evaluation {
  int64_t windows = 0;
  int64_t counted_tokens = 0;
  TokenMean perplexity;  ///< exp of the mean negative log-probability
  std::optional<Divergence> reference;
};

/// kInvalidArgument if the text is shorter than one window, if a window does not fit into the context of one of the
/// models, if the reference makes other tokens of the text, or if a model gives NaN.
HALFTONE_API Evaluation evaluate(const Generator& model, std::string_view text,
                                 const EvaluateOptions& options = {}, const Generator* reference = nullptr);

}  // namespace halftone
