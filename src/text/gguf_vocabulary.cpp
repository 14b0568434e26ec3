// The tokenizer that a GGUF file's metadata describes. Where llama.cpp only approximates the original tokenizer, the original counts.
#include <algorithm>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "halftone/text/tokenizer_spec.h"
#include "text/split_patterns.h"
#include "text/token_table.h"

namespace halftone {
namespace {

constexpr std::string_view kSpaceMark = "▁";

enum GgufTokenType : int32_t {
  kGgufNormal = 1,
  kGgufUnknown,
  kGgufControl,
  kGgufUserDefined,
  kGgufUnused,
  kGgufByte
};

/// How a value of tokenizer.ggml.pre splits words.
struct PreSplit {
  std::string_view name;
  SplitPattern pattern;
  bool individual_digits, ignore_merges, nfc, add_bos;
};

constexpr PreSplit kPreSplits[] = {
    {"gpt-2", SplitPattern::kGpt2, false, false, false, false},
    {"phi-2", SplitPattern::kGpt2, false, false, false, false},
    {"mpt", SplitPattern::kGpt2, false, false, false, false},
    {"olmo", SplitPattern::kGpt2, false, false, false, false},
    {"smollm", SplitPattern::kGpt2, true, false, false, false},
    {"starcoder", SplitPattern::kGpt2, true, false, false, false},
    {"refact", SplitPattern::kGpt2, true, false, false, false},
    {"llama-bpe", SplitPattern::kLlama3, false, true, false, true},
    {"llama-v3", SplitPattern::kLlama3, false, true, false, true},
    {"llama3", SplitPattern::kLlama3, false, true, false, true},
    {"qwen2", SplitPattern::kQwen2, false, false, true, false},
    {"deepseek-r1-qwen", SplitPattern::kQwen2, false, false, true, false},
};

int32_t type_of_token(const GgufVocabulary& vocabulary, size_t id) {
  return vocabulary.token_types.empty() ? kGgufNormal : vocabulary.token_types[id];
}

void check_lists(const GgufVocabulary& vocabulary) {
  const auto check = [&](size_t count, std::string_view key) {
    if (count != 0 && count != vocabulary.tokens.size())
      fail(ErrorCode::kCorruptFile, "{}: tokenizer.ggml.{} has {} elements, tokenizer.ggml.tokens {}",
           vocabulary.name, key, count, vocabulary.tokens.size());
  };
  check(vocabulary.scores.size(), "scores");
  check(vocabulary.token_types.size(), "token_type");
  for (size_t id = 0; id < vocabulary.token_types.size(); ++id) {
    const int32_t type = vocabulary.token_types[id];
    if (type < kGgufNormal || type > kGgufByte)
      fail(ErrorCode::kCorruptFile, "{}: tokenizer.ggml.token_type[{}]: {} is no type", vocabulary.name, id,
           type);
  }
}

/// Normal tokens become the model's vocabulary, control and user-defined ones added tokens.
void add_tokens(const GgufVocabulary& vocabulary, TokenizerSpec& spec) {
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& text = vocabulary.tokens[i];
    const auto id = static_cast<int64_t>(i);
    const int32_t type = type_of_token(vocabulary, i);
    if (type == kGgufControl || type == kGgufUnknown || type == kGgufUserDefined) {
      spec.added_tokens.push_back({.content = text, .id = id, .special = type != kGgufUserDefined});
    } else {
      const double score = vocabulary.scores.empty() ? 0 : vocabulary.scores[i];
      spec.model.vocabulary.push_back({text, id, score});
    }
    if (type == kGgufUnknown && !spec.model.unknown_id) spec.model.unknown_id = id;
  }
  if (vocabulary.unknown_id) spec.model.unknown_id = vocabulary.unknown_id;
}

void put_around(const GgufVocabulary& vocabulary, bool begin, bool end, TokenizerSpec& spec) {
  if (vocabulary.add_bos.value_or(begin) && vocabulary.bos_id) spec.prefix.push_back(*vocabulary.bos_id);
  const auto last = spec.model.kind == TokenizerModelKind::kWordPiece && vocabulary.separator_id
                        ? vocabulary.separator_id
                        : vocabulary.eos_id;
  if (vocabulary.add_eos.value_or(end) && last) spec.suffix.push_back(*last);
}

NormalizerStep normalizer(NormalizerKind kind, std::string_view pattern = "", std::string_view content = "") {
  NormalizerStep step;
  step.kind = kind;
  step.pattern = pattern;
  step.content = content;
  return step;
}

DecoderStep decoder(DecoderKind kind, std::string_view pattern = "", std::string_view content = "") {
  DecoderStep step;
  step.kind = kind;
  step.pattern = pattern;
  step.content = content;
  return step;
}

PreTokenizerStep pre_tokenizer(PreTokenizerKind kind) {
  PreTokenizerStep step;
  step.kind = kind;
  return step;
}

void make_sentence_piece(const GgufVocabulary& vocabulary, TokenizerSpec& spec) {
  if (vocabulary.scores.empty())
    fail(ErrorCode::kCorruptFile, "{}: tokenizer.ggml.scores is missing; the model llama needs it",
         vocabulary.name);
  const bool prefix = vocabulary.add_space_prefix.value_or(true);
  spec.model.merges_by_score = true;
  spec.model.byte_fallback = true;
  spec.model.fuse_unknown = true;
  if (prefix) spec.normalizers.push_back(normalizer(NormalizerKind::kPrepend, "", kSpaceMark));
  spec.normalizers.push_back(normalizer(NormalizerKind::kReplace, " ", kSpaceMark));
  spec.decoders = {decoder(DecoderKind::kReplace, kSpaceMark, " "), decoder(DecoderKind::kByteFallback),
                   decoder(DecoderKind::kFuse)};
  if (prefix) {
    spec.decoders.push_back(decoder(DecoderKind::kStrip, " "));
    spec.decoders.back().start = 1;
  }
  put_around(vocabulary, true, false, spec);
}

void add_gguf_merges(const GgufVocabulary& vocabulary, TokenizerModel& model) {
  for (size_t i = 0; i < vocabulary.merges.size(); ++i) {
    const std::string& text = vocabulary.merges[i];
    const size_t space = text.find(' ', 1);  // a token is never empty
    if (space == std::string::npos)
      fail(ErrorCode::kCorruptFile,
           "{}: tokenizer.ggml.merges[{}]: {} is not two tokens with a space between them", vocabulary.name,
           i, quote_text(text));
    model.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
}

void make_byte_level(const GgufVocabulary& vocabulary, TokenizerSpec& spec) {
  const auto* const split = std::find_if(std::begin(kPreSplits), std::end(kPreSplits),
                                         [&](const PreSplit& row) { return row.name == vocabulary.pre; });
  if (split == std::end(kPreSplits))
    fail(ErrorCode::kUnsupported, "{}: tokenizer.ggml.pre {} is not supported", vocabulary.name,
         quote_text(vocabulary.pre));
  add_gguf_merges(vocabulary, spec.model);
  spec.model.ignore_merges = split->ignore_merges;
  if (split->nfc) spec.normalizers.push_back(normalizer(NormalizerKind::kNfc));
  if (split->individual_digits) {
    spec.pre_tokenizers.push_back(pre_tokenizer(PreTokenizerKind::kDigits));
    spec.pre_tokenizers.back().individual_digits = true;
  }
  const bool is_built_in = split->pattern == SplitPattern::kGpt2;
  if (!is_built_in) {
    spec.pre_tokenizers.push_back(pre_tokenizer(PreTokenizerKind::kSplitRegex));
    spec.pre_tokenizers.back().pattern = pattern_text(split->pattern);
  }
  spec.pre_tokenizers.push_back(pre_tokenizer(PreTokenizerKind::kByteLevel));
  spec.pre_tokenizers.back().use_regex = is_built_in;
  spec.decoders = {decoder(DecoderKind::kByteLevel)};
  put_around(vocabulary, split->add_bos, false, spec);
}

/// GGUF writes "word" as "▁word" and "##piece" as "piece"; names in brackets stay.
void make_bert(const GgufVocabulary& vocabulary, TokenizerSpec& spec) {
  spec.model.kind = TokenizerModelKind::kWordPiece;
  for (VocabularyToken& token : spec.model.vocabulary) {
    if (token.text.starts_with('[') && token.text.ends_with(']')) continue;
    token.text =
        token.text.starts_with(kSpaceMark) ? token.text.substr(kSpaceMark.size()) : "##" + token.text;
  }
  spec.normalizers = {normalizer(NormalizerKind::kBert)};
  spec.pre_tokenizers = {pre_tokenizer(PreTokenizerKind::kBert)};
  spec.decoders = {decoder(DecoderKind::kWordPiece, "##")};
  put_around(vocabulary, true, true, spec);
}

}  // namespace

TokenizerSpec gguf_tokenizer_spec(const GgufVocabulary& vocabulary) {
  check_lists(vocabulary);
  TokenizerSpec spec;
  spec.name = vocabulary.name;
  add_tokens(vocabulary, spec);
  if (vocabulary.model == "llama") {
    make_sentence_piece(vocabulary, spec);
  } else if (vocabulary.model == "gpt2") {
    make_byte_level(vocabulary, spec);
  } else if (vocabulary.model == "bert") {
    make_bert(vocabulary, spec);
  } else {
    fail(ErrorCode::kUnsupported, "{}: tokenizer.ggml.model {} is not supported", vocabulary.name,
         quote_text(vocabulary.model));
  }
  spec.bos_id = vocabulary.bos_id;
  spec.eos_id = vocabulary.eos_id;
  spec.pad_id = vocabulary.padding_id;
  return spec;
}

}  // namespace halftone
