#include "decoder/answer.h"

#include <algorithm>
#include <chrono>

#include "base/errors.h"

namespace halftone {

namespace {

class Clock {
 public:
  /// Seconds since the last call, or since this was made.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = now - last_;
    last_ = now;
    return passed.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

Answer::Answer(const Tokenizer& tokenizer, std::vector<int64_t> end_ids, const GenerateOptions& options)
    : end_ids_(std::move(end_ids)),
      options_(options),
      sampler_(options.sampling),
      stop_(options.stop),
      decoder_(tokenizer) {
  if (options.max_tokens < 0)
    fail(ErrorCode::kInvalidArgument, "max_tokens is {}, it must be 0 or more", options.max_tokens);
}

GeneratedText Answer::draw(Sequence& sequence, const std::vector<int64_t>& prompt,
                           const MakeRoom& make_room) {
  Clock clock;
  const size_t reused = shared_tokens(sequence, prompt);
  sequence.truncate(static_cast<int64_t>(reused));
  at::Tensor logits = sequence.feed(std::span(prompt).subspan(reused));
  result_.prompt_tokens = static_cast<int64_t>(prompt.size());
  result_.reused_tokens = static_cast<int64_t>(reused);
  result_.prompt_seconds = clock.lap();
  result_.stop_reason = StopReason::kMaxTokens;
  std::vector<int64_t> tokens = prompt;
  while (std::cmp_less(result_.tokens.size(), options_.max_tokens)) {
    const std::span<const float> row(logits.const_data_ptr<float>(), static_cast<size_t>(logits.numel()));
    const int64_t token = sampler_.draw(row, tokens);
    tokens.push_back(token);
    if (options_.logprobs) result_.logprobs.push_back(log_probability(row, token));
    if (!take(token) || std::cmp_equal(result_.tokens.size(), options_.max_tokens)) break;
    if (sequence.room() > 0) {
      logits = sequence.feed({&token, 1});
      continue;
    }
    logits = make_room ? make_room(sequence, result_.tokens) : at::Tensor();
    if (!logits.defined()) {
      result_.stop_reason = StopReason::kContextFull;
      break;
    }
  }
  if (!stop_.found()) {
    std::string rest = stop_.push(decoder_.finish());
    if (!stop_.found()) rest += stop_.finish();
    show(rest);
  }
  result_.answer_seconds = clock.lap();
  return std::move(result_);
}

bool Answer::take(int64_t token) {
  result_.tokens.push_back(token);
  if (std::find(end_ids_.begin(), end_ids_.end(), token) != end_ids_.end()) {
    result_.stop_reason = StopReason::kEndOfText;
    return false;
  }
  show(stop_.push(decoder_.push(token)));
  if (!stop_.found() && !cancelled_) return true;
  result_.stop_reason = cancelled_ ? StopReason::kCancelled : StopReason::kStopText;
  return false;
}

void Answer::show(const std::string& text) {
  result_.text += text;
  if (!text.empty() && options_.on_text && !options_.on_text(text)) cancelled_ = true;
}

size_t shared_tokens(const Sequence& sequence, std::span<const int64_t> tokens) {
  const std::vector<int64_t>& held = sequence.tokens();
  const auto end = std::mismatch(held.begin(), held.end(), tokens.begin(), tokens.end()).first;
  const auto shared = static_cast<size_t>(end - held.begin());
  return shared == tokens.size() && shared > 0 ? shared - 1 : shared;
}

}  // namespace halftone
