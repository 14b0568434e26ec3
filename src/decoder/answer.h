// Draws the tokens of an answer, one after the other, until something ends it.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "decoder/sampler.h"
#include "decoder/sequence.h"
#include "decoder/stop_text.h"
#include "halftone/decoder/generate.h"

namespace halftone {

class Answer {
 public:
  /// Called when the sequence is full, with the tokens of the answer so far. It makes room and feeds the sequence with all that
  /// it is to go on from; the result is the logits. Undefined: there is no room to be made.
  using MakeRoom = std::function<at::Tensor(Sequence& sequence, std::span<const int64_t> answer)>;

  /// `end_ids`: tokens that end it. Throws kInvalidArgument for options that make no sense. The tokenizer and the options must
  /// outlive the answer.
  Answer(const Tokenizer& tokenizer, std::vector<int64_t> end_ids, const GenerateOptions& options);

  /// Feeds the sequence with what it does not have of `prompt`, and draws. A sequence that holds other tokens than the first of
  /// the prompt is cut to those that it shares with it. Once.
  GeneratedText draw(Sequence& sequence, const std::vector<int64_t>& prompt, const MakeRoom& make_room = {});

 private:
  /// Puts one token into the result. False: the answer ends with it.
  bool take(int64_t token);
  void show(const std::string& text);

  std::vector<int64_t> end_ids_;
  const GenerateOptions& options_;
  Sampler sampler_;
  StopText stop_;
  StreamDecoder decoder_;
  GeneratedText result_;
  bool cancelled_ = false;
};

/// How many of the first tokens the sequence holds already; never all of them, because the last one is fed to get logits.
size_t shared_tokens(const Sequence& sequence, std::span<const int64_t> tokens);

}  // namespace halftone
