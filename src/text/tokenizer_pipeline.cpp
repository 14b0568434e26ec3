#include "text/tokenizer_pipeline.h"

#include "base/errors.h"
#include "text/byte_alphabet.h"
#include "text/check_spec.h"
#include "text/normalizers.h"
#include "text/pre_tokenizers.h"
#include "text/unicode.h"

namespace halftone {
namespace {

constexpr size_t kLongestText = size_t{1} << 30;  // places in a text are numbers of 32 bits

std::unique_ptr<WordModel> make_model(const TokenizerSpec& spec, const TokenTable& tokens) {
  switch (spec.model.kind) {
    case TokenizerModelKind::kBpe:
      return make_bpe(spec, tokens, is_byte_level(spec));
    case TokenizerModelKind::kUnigram:
      return make_unigram(spec, tokens);
    case TokenizerModelKind::kWordPiece:
      return make_word_piece(spec, tokens);
  }
  fail(ErrorCode::kInvalidArgument, "{}: unknown kind of model", spec.name);
}

}  // namespace

/// What one call of encode() uses for all parts of its text.
struct TokenizerPipeline::Work {
  bool parse_special;
  std::vector<int64_t> ids;
  WordScratch scratch;
  SplitText split;
};

TokenizerPipeline::TokenizerPipeline(TokenizerSpec spec)
    : spec_(checked_spec(std::move(spec))),
      tokens_(spec_),
      added_(spec_),
      special_(static_cast<size_t>(tokens_.bound())) {
  check_ids();
  for (const AddedToken& token : spec_.added_tokens) special_[static_cast<size_t>(token.id)] = token.special;
  model_ = make_model(spec_, tokens_);
}

void TokenizerPipeline::check_ids() const {
  const auto check = [&](const std::optional<int64_t>& id, std::string_view what) {
    if (id && !tokens_.has(*id))
      fail(ErrorCode::kCorruptFile, "{}: {} {} is no token", spec_.name, what, *id);
  };
  check(spec_.model.unknown_id, "the unknown token");
  check(spec_.bos_id, "the begin-of-text token");
  check(spec_.eos_id, "the end-of-text token");
  check(spec_.pad_id, "the padding token");
  for (const int64_t id : spec_.prefix) check(id, "the token before a text");
  for (const int64_t id : spec_.suffix) check(id, "the token after a text");
}

std::vector<int64_t> TokenizerPipeline::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() > kLongestText)
    fail(ErrorCode::kInvalidArgument, "{}: a text of {} bytes; the limit is {}", spec_.name, text.size(),
         kLongestText);
  std::string repaired;
  text = repaired_utf8(text, repaired);
  Work work{.parse_special = options.parse_special, .ids = {}, .scratch = {}, .split = {}};
  if (options.add_special) work.ids = spec_.prefix;
  for (const AddedTokens::Part& part : added_.split(text, false, options.parse_special)) {
    if (part.id) {
      work.ids.push_back(*part.id);
    } else {
      encode_part(text.substr(part.begin, part.end - part.begin), part.begin == 0, work);
    }
  }
  if (options.add_special) work.ids.insert(work.ids.end(), spec_.suffix.begin(), spec_.suffix.end());
  return std::move(work.ids);
}

void TokenizerPipeline::encode_part(std::string_view text, bool at_start, Work& work) const {
  std::string normalized;
  if (!spec_.normalizers.empty()) {
    normalized = text;
    apply_normalizers(spec_.normalizers, normalized);
    text = normalized;
  }
  for (const AddedTokens::Part& part : added_.split(text, true, work.parse_special)) {
    if (part.id) {
      work.ids.push_back(*part.id);
    } else {
      encode_words(text.substr(part.begin, part.end - part.begin), at_start && part.begin == 0, work);
    }
  }
}

void TokenizerPipeline::encode_words(std::string_view text, bool at_start, Work& work) const {
  SplitText& split = work.split;
  split.text = text;
  split.words.assign(1, {0, text.size(), at_start});
  for (const PreTokenizerStep& step : spec_.pre_tokenizers) apply_pre_tokenizer(step, split);
  for (const SplitText::Word& word : split.words)
    model_->append_ids(split.text.substr(word.begin, word.end - word.begin), work.scratch, work.ids);
}

void TokenizerPipeline::decode_to(DecoderChain& chain, int64_t id, bool skip_special,
                                  std::string& out) const {
  if (!tokens_.has(id) || (skip_special && is_special(id))) return;
  chain.push(tokens_.text(id), out);
}

std::string TokenizerPipeline::token_bytes(int64_t id) const {
  std::string text = tokens_.text(id);
  if (tokens_.is_added(id)) return text;
  for (const DecoderStep& step : spec_.decoders) {
    switch (step.kind) {
      case DecoderKind::kByteLevel:
        return bytes_of_token(text).value_or(text);
      case DecoderKind::kByteFallback:
        if (const auto byte = byte_of_token(text)) return std::string(1, static_cast<char>(*byte));
        break;
      case DecoderKind::kMetaspace:
        text = replaced(text, step.pattern, " ");
        break;
      case DecoderKind::kReplace:
        text = replaced(text, step.pattern, step.content);
        break;
      case DecoderKind::kWordPiece:
        text = text.starts_with(step.pattern) ? text.substr(step.pattern.size()) : " " + text;
        break;
      case DecoderKind::kFuse:
      case DecoderKind::kStrip:
        break;
    }
  }
  return text;
}

}  // namespace halftone
