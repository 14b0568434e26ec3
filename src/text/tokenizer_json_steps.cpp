// Normalizers, pre-tokenizers, decoders and post-processors of a tokenizer.json.
#include <nlohmann/json.hpp>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "text/split_patterns.h"
#include "text/tokenizer_json.h"
#include "text/unicode.h"

namespace halftone {
namespace {

constexpr size_t kMaxSteps = 64;
constexpr size_t kMaxTemplate = 64;  // pieces

std::string type_of(const JsonCursor& place) {
  return place.at("type").get_string();
}

/// Calls read(element, steps) for the elements of a Sequence.
template <typename Steps, typename Read>
void read_sequence(const JsonCursor& place, std::string_view key, Steps& steps, Read&& read) {
  check_keys(place, {"type", key});
  const JsonCursor list = place.at(key);
  if (!list.raw().is_array()) list.fail_here("expected an array");
  for (size_t i = 0; i < list.size(); ++i) {
    if (i == kMaxSteps) list.fail_here(fmt::format("more than {} elements", kMaxSteps));
    read(list.at(i), steps);
  }
}

bool flag_or(const JsonCursor& place, std::string_view key, bool fallback) {
  return place.has(key) ? place.at(key).get_bool() : fallback;
}

std::string one_character(const JsonCursor& place) {
  std::string text = place.get_string();
  if (text.empty() || char_at(text, 0).length != text.size()) place.fail_here("expected one character");
  return text;
}

/// {"String": …} or {"Regex": …}: the text, and whether it is the latter.
std::pair<std::string, bool> read_pattern(const JsonCursor& place) {
  check_keys(place, {"String", "Regex"});
  if (place.size() != 1) place.fail_here("expected one of String and Regex");
  const bool regex = place.has("Regex");
  return {place.at(regex ? "Regex" : "String").get_string(), regex};
}

SplitBehavior read_behavior(const JsonCursor& place) {
  const std::string name = place.get_string();
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  fail_unsupported(place, "the behavior", name);
}

/// Metaspace of either kind. Files of earlier versions have add_prefix_space in place of the scheme.
PrependScheme read_prepend_scheme(const JsonCursor& place) {
  if (!place.has("prepend_scheme"))
    return flag_or(place, "add_prefix_space", true) ? PrependScheme::kAlways : PrependScheme::kNever;
  const std::string name = place.at("prepend_scheme").get_string();
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  fail_unsupported(place.at("prepend_scheme"), "the scheme", name);
}

NormalizerStep read_bert_normalizer(const JsonCursor& place) {
  check_keys(place, {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  NormalizerStep step;
  step.kind = NormalizerKind::kBert;
  step.clean_text = place.at("clean_text").get_bool();
  step.handle_chinese_chars = place.at("handle_chinese_chars").get_bool();
  step.lowercase = place.at("lowercase").get_bool();
  const bool says = place.has("strip_accents") && !place.at("strip_accents").is_null();
  step.strip_accents = says ? place.at("strip_accents").get_bool() : step.lowercase;
  return step;
}

NormalizerStep read_replace(const JsonCursor& place) {
  check_keys(place, {"type", "pattern", "content"});
  const auto [pattern, regex] = read_pattern(place.at("pattern"));
  NormalizerStep step;
  step.kind = regex ? NormalizerKind::kReplaceSpaces : NormalizerKind::kReplace;
  if (regex && pattern != " {2,}") fail_unsupported(place, "the regular expression", pattern);
  step.pattern = pattern;
  step.content = place.at("content").get_string();
  return step;
}

PreTokenizerStep read_split(const JsonCursor& place) {
  check_keys(place, {"type", "pattern", "behavior", "invert"});
  const auto [pattern, regex] = read_pattern(place.at("pattern"));
  if (regex && find_split_pattern(pattern) == nullptr)
    fail_unsupported(place, "the regular expression", pattern);
  PreTokenizerStep step;
  step.kind = regex ? PreTokenizerKind::kSplitRegex : PreTokenizerKind::kSplit;
  step.pattern = pattern;
  step.behavior = read_behavior(place.at("behavior"));
  step.invert = place.at("invert").get_bool();
  return step;
}

PreTokenizerStep read_byte_level(const JsonCursor& place) {
  check_keys(place, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  PreTokenizerStep step;
  step.kind = PreTokenizerKind::kByteLevel;
  step.add_prefix_space = place.at("add_prefix_space").get_bool();
  step.use_regex = flag_or(place, "use_regex", true);
  return step;
}

PreTokenizerStep read_metaspace(const JsonCursor& place) {
  check_keys(place, {"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
  PreTokenizerStep step;
  step.kind = PreTokenizerKind::kMetaspace;
  step.pattern = one_character(place.at("replacement"));
  step.prepend = read_prepend_scheme(place);
  step.split = flag_or(place, "split", true);
  return step;
}

/// Steps without options.
PreTokenizerStep read_plain(const JsonCursor& place, PreTokenizerKind kind) {
  check_keys(place, {"type"});
  PreTokenizerStep step;
  step.kind = kind;
  return step;
}

DecoderStep read_strip_decoder(const JsonCursor& place) {
  check_keys(place, {"type", "content", "start", "stop"});
  DecoderStep step;
  step.kind = DecoderKind::kStrip;
  step.pattern = one_character(place.at("content"));
  step.start = place.at("start").get_int();
  step.stop = place.at("stop").get_int();
  return step;
}

DecoderStep read_replace_decoder(const JsonCursor& place) {
  check_keys(place, {"type", "pattern", "content"});
  const auto [pattern, regex] = read_pattern(place.at("pattern"));
  if (regex) fail_unsupported(place, "the regular expression", pattern);
  DecoderStep step;
  step.kind = DecoderKind::kReplace;
  step.pattern = pattern;
  step.content = place.at("content").get_string();
  return step;
}

DecoderStep read_metaspace_decoder(const JsonCursor& place) {
  const PreTokenizerStep same = read_metaspace(place);
  DecoderStep step;
  step.kind = DecoderKind::kMetaspace;
  step.pattern = same.pattern;
  step.prepend = same.prepend;
  return step;
}

DecoderStep read_word_piece_decoder(const JsonCursor& place) {
  check_keys(place, {"type", "prefix", "cleanup"});
  DecoderStep step;
  step.kind = DecoderKind::kWordPiece;
  step.pattern = place.at("prefix").get_string();
  step.cleanup = place.at("cleanup").get_bool();
  return step;
}

/// ["[SEP]", 102]
int64_t read_token_and_id(const JsonCursor& place) {
  if (!place.raw().is_array() || place.size() != 2) place.fail_here("expected a token and its id");
  place.at(0).get_string();
  return place.at(1).get_int();
}

void append_template_ids(const JsonCursor& specials, const std::string& name, std::vector<int64_t>& out) {
  const JsonCursor special = specials.at(name);
  check_keys(special, {"id", "ids", "tokens"});
  const JsonCursor ids = special.at("ids");
  if (!ids.raw().is_array() || ids.size() > kMaxTemplate)
    ids.fail_here(fmt::format("expected an array of at most {} ids", kMaxTemplate));
  for (size_t i = 0; i < ids.size(); ++i) out.push_back(ids.at(i).get_int());
}

/// `single`: tokens, the text, tokens. `pair` is for two texts, which encode() does not take.
void read_template(const JsonCursor& place, std::vector<int64_t>& before, std::vector<int64_t>& after) {
  check_keys(place, {"type", "single", "pair", "special_tokens"});
  const JsonCursor pieces = place.at("single");
  if (!pieces.raw().is_array() || pieces.size() > kMaxTemplate)
    pieces.fail_here(fmt::format("expected an array of at most {} pieces", kMaxTemplate));
  bool behind_text = false;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const JsonCursor piece = pieces.at(i);
    check_keys(piece, {"Sequence", "SpecialToken"});
    if (piece.size() != 1) piece.fail_here("expected one of Sequence and SpecialToken");
    if (piece.has("SpecialToken")) {
      append_template_ids(place.at("special_tokens"), piece.at("SpecialToken").at("id").get_string(),
                          behind_text ? after : before);
      continue;
    }
    if (behind_text || piece.at("Sequence").at("id").get_string() != "A")
      piece.fail_here("the template of one text must hold that text once");
    behind_text = true;
  }
  if (!behind_text) pieces.fail_here("the template of one text must hold that text once");
}

}  // namespace

void read_normalizer(const JsonCursor& place, std::vector<NormalizerStep>& steps) {
  static constexpr std::pair<std::string_view, NormalizerKind> kPlain[] = {
      {"NFC", NormalizerKind::kNfc},
      {"NFD", NormalizerKind::kNfd},
      {"NFKC", NormalizerKind::kNfkc},
      {"NFKD", NormalizerKind::kNfkd},
      {"Lowercase", NormalizerKind::kLowercase},
      {"StripAccents", NormalizerKind::kStripAccents}};
  const std::string type = type_of(place);
  if (type == "Sequence") return read_sequence(place, "normalizers", steps, read_normalizer);
  NormalizerStep step;
  if (type == "BertNormalizer") {
    step = read_bert_normalizer(place);
  } else if (type == "Replace") {
    step = read_replace(place);
  } else if (type == "Prepend") {
    check_keys(place, {"type", "prepend"});
    step.kind = NormalizerKind::kPrepend;
    step.content = place.at("prepend").get_string();
  } else if (type == "Strip") {
    check_keys(place, {"type", "strip_left", "strip_right"});
    step.kind = NormalizerKind::kStrip;
    step.left = place.at("strip_left").get_bool();
    step.right = place.at("strip_right").get_bool();
  } else {
    const auto* const found = std::find_if(std::begin(kPlain), std::end(kPlain),
                                           [&](const auto& row) { return row.first == type; });
    if (found == std::end(kPlain)) fail_unsupported(place, "the normalizer", type);
    check_keys(place, {"type"});
    step.kind = found->second;
  }
  steps.push_back(std::move(step));
}

void read_pre_tokenizer(const JsonCursor& place, std::vector<PreTokenizerStep>& steps) {
  const std::string type = type_of(place);
  if (type == "Sequence") return read_sequence(place, "pretokenizers", steps, read_pre_tokenizer);
  if (type == "ByteLevel") return steps.push_back(read_byte_level(place));
  if (type == "Metaspace") return steps.push_back(read_metaspace(place));
  if (type == "Split") return steps.push_back(read_split(place));
  if (type == "BertPreTokenizer") return steps.push_back(read_plain(place, PreTokenizerKind::kBert));
  if (type == "Whitespace") return steps.push_back(read_plain(place, PreTokenizerKind::kWhitespace));
  if (type == "WhitespaceSplit")
    return steps.push_back(read_plain(place, PreTokenizerKind::kWhitespaceSplit));
  PreTokenizerStep step;
  if (type == "Digits") {
    check_keys(place, {"type", "individual_digits"});
    step.kind = PreTokenizerKind::kDigits;
    step.individual_digits = place.at("individual_digits").get_bool();
  } else if (type == "Punctuation") {
    check_keys(place, {"type", "behavior"});
    step.kind = PreTokenizerKind::kPunctuation;
    if (place.has("behavior")) step.behavior = read_behavior(place.at("behavior"));
  } else {
    fail_unsupported(place, "the pre-tokenizer", type);
  }
  steps.push_back(std::move(step));
}

void read_decoder(const JsonCursor& place, std::vector<DecoderStep>& steps) {
  const std::string type = type_of(place);
  if (type == "Sequence") return read_sequence(place, "decoders", steps, read_decoder);
  if (type == "Metaspace") return steps.push_back(read_metaspace_decoder(place));
  if (type == "WordPiece") return steps.push_back(read_word_piece_decoder(place));
  if (type == "Replace") return steps.push_back(read_replace_decoder(place));
  if (type == "Strip") return steps.push_back(read_strip_decoder(place));
  DecoderStep step;
  if (type == "ByteLevel") {
    read_byte_level(place);  // its options have no meaning here, but must be sound
    step.kind = DecoderKind::kByteLevel;
  } else if (type == "ByteFallback" || type == "Fuse") {
    check_keys(place, {"type"});
    step.kind = type == "Fuse" ? DecoderKind::kFuse : DecoderKind::kByteFallback;
  } else {
    fail_unsupported(place, "the decoder", type);
  }
  steps.push_back(std::move(step));
}

void read_post_processor(const JsonCursor& place, TokenizerSpec& spec) {
  const std::string type = type_of(place);
  if (type == "Sequence") return read_sequence(place, "processors", spec, read_post_processor);
  std::vector<int64_t> before, after;
  if (type == "TemplateProcessing") {
    read_template(place, before, after);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    check_keys(place, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    before.push_back(read_token_and_id(place.at("cls")));
    after.push_back(read_token_and_id(place.at("sep")));
  } else if (type == "ByteLevel") {
    read_byte_level(place);  // about offsets, which encode() does not give
  } else {
    fail_unsupported(place, "the post-processor", type);
  }
  // A later processor puts its tokens around those of the earlier ones.
  spec.prefix.insert(spec.prefix.begin(), before.begin(), before.end());
  spec.suffix.insert(spec.suffix.end(), after.begin(), after.end());
}

}  // namespace halftone
