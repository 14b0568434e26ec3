#include "text/check_spec.h"

#include <algorithm>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "text/split_patterns.h"
#include "text/token_table.h"

namespace halftone {
namespace {

constexpr size_t kMaxAddedIds = 1024;   // around a text
constexpr int64_t kLongestWord = 4096;  // characters, WordPiece
constexpr size_t kMaxStepsOfAKind = 64;
constexpr size_t kMaxGrowth = 64;  // of a text, by all replacements together

void check_sizes(const TokenizerSpec& spec) {
  const TokenizerModel& model = spec.model;
  if (model.vocabulary.empty()) fail(ErrorCode::kCorruptFile, "{}: the vocabulary is empty", spec.name);
  if (model.vocabulary.size() + spec.added_tokens.size() > kMaxTokens || model.merges.size() > 2 * kMaxTokens)
    fail(ErrorCode::kCorruptFile,
         "{}: {} tokens, {} added ones and {} merges; the limit is {} tokens and {} merges", spec.name,
         model.vocabulary.size(), spec.added_tokens.size(), model.merges.size(), kMaxTokens, 2 * kMaxTokens);
  if (spec.prefix.size() + spec.suffix.size() > kMaxAddedIds)
    fail(ErrorCode::kCorruptFile, "{}: more than {} tokens are put around a text", spec.name, kMaxAddedIds);
  if (model.max_word_length < 0 || model.max_word_length > kLongestWord)
    fail(ErrorCode::kCorruptFile, "{}: words of {} characters; the limit is {}", spec.name,
         model.max_word_length, kLongestWord);
  for (const size_t steps : {spec.normalizers.size(), spec.pre_tokenizers.size(), spec.decoders.size()}) {
    if (steps > kMaxStepsOfAKind)
      fail(ErrorCode::kCorruptFile, "{}: {} steps of a kind; the limit is {}", spec.name, steps,
           kMaxStepsOfAKind);
  }
}

/// Texts of a step: UTF-8, not longer than a token.
void check_texts(const TokenizerSpec& spec, std::string_view step, std::string_view pattern,
                 std::string_view content) {
  for (const std::string_view text : {pattern, content}) {
    if (text.size() > kLongestToken || !is_utf8(text))
      fail(ErrorCode::kCorruptFile, "{}: {}: {} is not UTF-8 or longer than {} bytes", spec.name, step,
           quote_text(text), kLongestToken);
  }
}

/// Replacements one after the other must not make a short text into one that fills the memory.
void check_growth(const TokenizerSpec& spec, size_t& growth, std::string_view pattern,
                  std::string_view content) {
  if (pattern.empty()) fail(ErrorCode::kCorruptFile, "{}: Replace has an empty pattern", spec.name);
  growth *= std::max<size_t>(1, (content.size() + pattern.size() - 1) / pattern.size());
  if (growth > kMaxGrowth)
    fail(ErrorCode::kCorruptFile, "{}: Replace: a text would become more than {} times as long", spec.name,
         kMaxGrowth);
}

void check_normalizers(const TokenizerSpec& spec) {
  size_t growth = 1;
  for (const NormalizerStep& step : spec.normalizers) {
    check_texts(spec, "a normalizer", step.pattern, step.content);
    if (step.kind == NormalizerKind::kReplace) check_growth(spec, growth, step.pattern, step.content);
    if (step.kind == NormalizerKind::kReplaceSpaces) check_growth(spec, growth, "  ", step.content);
  }
}

void check_pre_tokenizers(const TokenizerSpec& spec) {
  for (const PreTokenizerStep& step : spec.pre_tokenizers) {
    check_texts(spec, "a pre-tokenizer", step.pattern, "");
    if ((step.kind == PreTokenizerKind::kMetaspace || step.kind == PreTokenizerKind::kSplit) &&
        step.pattern.empty())
      fail(ErrorCode::kCorruptFile, "{}: a pre-tokenizer has an empty pattern", spec.name);
    if (step.kind == PreTokenizerKind::kSplitRegex && find_split_pattern(step.pattern) == nullptr)
      fail(ErrorCode::kUnsupported, "{}: pre-tokenizer Split: the regular expression {} is not supported",
           spec.name, quote_text(step.pattern));
    if (step.kind == PreTokenizerKind::kByteLevel && &step != &spec.pre_tokenizers.back())
      fail(ErrorCode::kUnsupported, "{}: pre-tokenizer ByteLevel is supported as the last one only",
           spec.name);
  }
  if (is_byte_level(spec) && spec.model.kind != TokenizerModelKind::kBpe)
    fail(ErrorCode::kUnsupported, "{}: pre-tokenizer ByteLevel is supported with BPE only", spec.name);
}

void check_decoders(const TokenizerSpec& spec) {
  size_t growth = 1;
  for (const DecoderStep& step : spec.decoders) {
    check_texts(spec, "a decoder", step.pattern, step.content);
    if (step.kind == DecoderKind::kReplace) check_growth(spec, growth, step.pattern, step.content);
    if ((step.kind == DecoderKind::kMetaspace || step.kind == DecoderKind::kStrip) && step.pattern.empty())
      fail(ErrorCode::kCorruptFile, "{}: a decoder has an empty pattern", spec.name);
    if (step.start < 0 || step.stop < 0)
      fail(ErrorCode::kCorruptFile, "{}: decoder Strip takes {} and {} characters", spec.name, step.start,
           step.stop);
  }
}

}  // namespace

bool is_byte_level(const TokenizerSpec& spec) {
  return !spec.pre_tokenizers.empty() && spec.pre_tokenizers.back().kind == PreTokenizerKind::kByteLevel;
}

TokenizerSpec checked_spec(TokenizerSpec spec) {
  check_sizes(spec);
  check_normalizers(spec);
  check_pre_tokenizers(spec);
  check_decoders(spec);
  return spec;
}

}  // namespace halftone
