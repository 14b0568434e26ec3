#include "text/decoders.h"

#include <algorithm>

#include "archive/bytes/text.h"
#include "text/byte_alphabet.h"
#include "text/normalizers.h"
#include "text/token_table.h"
#include "text/unicode.h"

namespace halftone {
namespace {

constexpr std::string_view kReplacementText = "\uFFFD";

/// As in BERT's own code; the order matters.
std::string cleaned_up(std::string text) {
  static constexpr std::string_view kRules[][2] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [pattern, content] : kRules) text = replaced(text, pattern, content);
  return text;
}

std::string word_piece_text(const DecoderStep& step, std::string_view token, bool first) {
  std::string text;
  if (!first && !token.starts_with(step.pattern)) text += ' ';
  if (!first && token.starts_with(step.pattern)) token.remove_prefix(step.pattern.size());
  text += token;
  return step.cleanup ? cleaned_up(std::move(text)) : text;
}

/// The end of the text that is whole characters or broken for good; behind it a character has begun.
size_t settled_end(std::string_view text) {
  const size_t from = text.size() < 4 ? 0 : text.size() - 4;
  for (size_t at = text.size(); at > from; --at) {
    const auto byte = static_cast<unsigned char>(text[at - 1]);
    if ((byte & 0xC0) == 0x80) continue;
    const bool cut = byte >= 0x80 && next_utf8(text.substr(at - 1)).state == Utf8Unit::State::kCut &&
                     next_utf8(text.substr(at - 1)).length == text.size() - (at - 1);
    return cut ? at - 1 : text.size();
  }
  return text.size();
}

/// Takes at most `most` characters from the end.
std::string_view without_end(std::string_view text, std::string_view character, int64_t most) {
  for (; most > 0 && text.ends_with(character); --most) text.remove_suffix(character.size());
  return text;
}

}  // namespace

DecoderChain::DecoderChain(const std::vector<DecoderStep>& steps) {
  for (const DecoderStep& step : steps) stages_.push_back({.step = &step});
  if (stages_.empty()) stages_.push_back({.step = nullptr});
  // From the end: parts of a token may go on if all that follows takes characters from its start only.
  bool may_pass_on = true;
  for (size_t i = stages_.size(); i > 0 && stages_[i - 1].step != nullptr; --i) {
    Stage& stage = stages_[i - 1];
    const bool is_strip = stage.step->kind == DecoderKind::kStrip && stage.step->stop == 0;
    if (stage.step->kind == DecoderKind::kFuse || stage.step->kind == DecoderKind::kByteLevel) {
      stage.passes_on = may_pass_on;
      for (size_t later = i; may_pass_on && later < stages_.size(); ++later)
        stages_[later].within_token = true;
    }
    may_pass_on = may_pass_on && is_strip;
  }
}

void DecoderChain::push(std::string_view token, std::string& out) {
  push_to(0, token, out);
}

void DecoderChain::finish(std::string& out) {
  for (size_t i = 0; i < stages_.size(); ++i) finish_stage(i, out);
}

void DecoderChain::push_to(size_t index, std::string_view token, std::string& out) {
  if (index == stages_.size()) {
    out += token;
    return;
  }
  Stage& stage = stages_[index];
  const bool first = stage.first;
  stage.first = false;
  if (stage.step == nullptr) {
    if (!first) out += ' ';
    out += token;
    return;
  }
  const DecoderStep& step = *stage.step;
  switch (step.kind) {
    case DecoderKind::kByteLevel: {
      stage.held += bytes_of_token(token).value_or(std::string(token));
      if (!stage.passes_on) return;
      const size_t end = settled_end(stage.held);
      std::string text;
      append_repaired(std::string_view(stage.held).substr(0, end), text);
      stage.held.erase(0, end);
      return push_to(index + 1, text, out);
    }
    case DecoderKind::kFuse:
      if (stage.passes_on) return push_to(index + 1, token, out);
      stage.held += token;
      return;
    case DecoderKind::kMetaspace: {
      const bool drops = first && step.prepend != PrependScheme::kNever;
      return push_to(index + 1, replaced(token, step.pattern, drops ? "" : " "), out);
    }
    case DecoderKind::kWordPiece:
      return push_to(index + 1, word_piece_text(step, token, first), out);
    case DecoderKind::kReplace:
      return push_to(index + 1, replaced(token, step.pattern, step.content), out);
    case DecoderKind::kByteFallback:
      return push_byte(index, token, out);
    case DecoderKind::kStrip:
      return push_strip(index, token, out);
  }
}

void DecoderChain::push_byte(size_t index, std::string_view token, std::string& out) {
  if (const auto byte = byte_of_token(token)) {
    stages_[index].held += static_cast<char>(*byte);
    return;
  }
  end_bytes(index, out);
  push_to(index + 1, token, out);
}

/// A run of bytes is text as a whole, or each of them is a replacement character.
void DecoderChain::end_bytes(size_t index, std::string& out) {
  const std::string bytes = std::move(stages_[index].held);
  stages_[index].held.clear();
  if (bytes.empty()) return;
  if (is_utf8(bytes)) return push_to(index + 1, bytes, out);
  for (size_t i = 0; i < bytes.size(); ++i) push_to(index + 1, kReplacementText, out);
}

void DecoderChain::push_strip(size_t index, std::string_view token, std::string& out) {
  Stage& stage = stages_[index];
  if (!stage.within_token) {
    stage.stripped = 0;
    stage.strips = true;
  }
  const DecoderStep& step = *stage.step;
  while (stage.strips && stage.stripped < step.start && token.starts_with(step.pattern)) {
    token.remove_prefix(step.pattern.size());
    ++stage.stripped;
  }
  if (!token.empty()) stage.strips = false;
  push_to(index + 1, without_end(token, step.pattern, step.stop), out);
}

void DecoderChain::finish_stage(size_t index, std::string& out) {
  Stage& stage = stages_[index];
  const bool any = !stage.first;
  const DecoderKind kind = stage.step == nullptr ? DecoderKind::kReplace : stage.step->kind;
  if (kind == DecoderKind::kByteFallback) end_bytes(index, out);
  const bool is_whole = kind == DecoderKind::kFuse || kind == DecoderKind::kByteLevel;
  if (is_whole && any && !(stage.passes_on && stage.held.empty())) {
    std::string text;
    append_repaired(stage.held, text);
    push_to(index + 1, text, out);
  }
  stage.held.clear();
  stage.first = true;
  stage.stripped = 0;
  stage.strips = true;
}

}  // namespace halftone
