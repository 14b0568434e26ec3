// What a tokenizer consists of, as plain data: vocabulary, merges, added tokens, and the steps before and after the model.
// tokenizer.json and the metadata of GGUF files are read into it; a program may fill one by hand.
//
// The parts and their meaning are those of Hugging Face's `tokenizers` package. Nested sequences are flat lists here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "halftone/base/api.h"

namespace halftone {

enum class TokenizerModelKind {
  kBpe,        ///< pairs are merged, best first: GPT-2, Llama, Qwen, …
  kUnigram,    ///< the split with the best sum of scores: T5, XLM-R
  kWordPiece,  ///< the longest piece first: BERT
};

struct VocabularyToken {
  std::string text;  ///< as the file writes it: byte-level models write a space as "Ġ"
  int64_t id = 0;
  double score = 0;  ///< Unigram, and BPE with merges_by_score
};

struct TokenizerModel {
  TokenizerModelKind kind = TokenizerModelKind::kBpe;
  std::vector<VocabularyToken> vocabulary;  ///< in any order; texts and ids are unique
  std::optional<int64_t> unknown_id;        ///< stands for what no token covers
  bool byte_fallback = false;               ///< "<0x0A>" and its like before unknown_id; BPE and Unigram
  // BPE.
  std::vector<std::pair<std::string, std::string>> merges;  ///< best first
  bool merges_by_score =
      false;  ///< instead: two neighbours that make a token, higher score first, leftmost of equals
  bool fuse_unknown = false;   ///< neighbouring unknown characters are one unknown token
  bool ignore_merges = false;  ///< a word that is a token is that token
  // WordPiece.
  std::string continuing_prefix = "##";
  int64_t max_word_length = 100;  ///< characters; longer words are unknown
};

/// A token that is found in the text before the model sees it.
struct AddedToken {
  std::string content;
  int64_t id = 0;
  bool special =
      false;  ///< found with EncodeOptions::parse_special only, left out by decode(…, skip_special)
  bool single_word = false;  ///< not inside a word
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space after it
  bool normalized = false;   ///< looked for in the normalized text, itself normalized
};

enum class NormalizerKind {
  kBert,
  kNfc,
  kNfd,
  kNfkc,
  kNfkd,
  kLowercase,
  kStripAccents,
  kStrip,
  kReplace,        ///< `pattern` by `content`
  kReplaceSpaces,  ///< two and more spaces by `content`
  kPrepend,        ///< `content` before a text that is not empty
};

struct NormalizerStep {
  NormalizerKind kind = NormalizerKind::kNfc;
  std::string pattern, content;
  bool clean_text = true, handle_chinese_chars = true, strip_accents = true, lowercase = true;  ///< kBert
  bool left = true, right = true;                                                               ///< kStrip
};

enum class PreTokenizerKind {
  kByteLevel,   ///< the last step: words of bytes, split as GPT-2 does if use_regex
  kMetaspace,   ///< spaces become `pattern`
  kSplit,       ///< at `pattern`, a text
  kSplitRegex,  ///< at one of the regular expressions of known_split_patterns(), given by its exact text
  kDigits,
  kBert,
  kWhitespace,
  kWhitespaceSplit,
  kPunctuation,
};

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
enum class PrependScheme { kAlways, kFirst, kNever };

struct PreTokenizerStep {
  PreTokenizerKind kind = PreTokenizerKind::kByteLevel;
  std::string pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;  ///< kSplit, kSplitRegex, kPunctuation
  bool invert = false;             ///< kSplit, kSplitRegex: what lies between the matches is the delimiter
  bool add_prefix_space = false;   ///< kByteLevel
  bool use_regex = true;           ///< kByteLevel
  bool individual_digits = false;  ///< kDigits
  PrependScheme prepend = PrependScheme::kAlways;  ///< kMetaspace
  bool split = true;                               ///< kMetaspace
};

enum class DecoderKind { kByteLevel, kMetaspace, kWordPiece, kReplace, kByteFallback, kFuse, kStrip };

struct DecoderStep {
  DecoderKind kind = DecoderKind::kFuse;
  std::string
      pattern;  ///< kReplace; kMetaspace: the replacement; kWordPiece: the prefix; kStrip: one character
  std::string content;                             ///< kReplace
  int64_t start = 0, stop = 0;                     ///< kStrip: at most so many characters at either end
  bool cleanup = true;                             ///< kWordPiece: no space before punctuation
  PrependScheme prepend = PrependScheme::kAlways;  ///< kMetaspace
};

struct TokenizerSpec {
  std::string name = "tokenizer";  ///< stands first in errors; a file's path
  TokenizerModel model;
  std::vector<AddedToken> added_tokens;
  std::vector<NormalizerStep> normalizers;
  std::vector<PreTokenizerStep> pre_tokenizers;
  std::vector<DecoderStep> decoders;  ///< none: tokens joined by spaces
  std::vector<int64_t> prefix,
      suffix;  ///< ids that encode() puts around the text with EncodeOptions::add_special
  std::optional<int64_t> bos_id, eos_id, pad_id;  ///< what the source says, for whoever runs the model
};

/// The exact texts of the regular expressions that kSplitRegex knows: GPT-2's, Llama 3's and Qwen 2's.
HALFTONE_API const std::vector<std::string>& known_split_patterns();

/// Reads a tokenizer.json. `name` stands for the file in errors. Parts that are not known (a normalizer, a key, a
/// regular expression) are refused by name: kUnsupported; what breaks the format is kCorruptFile.
/// `truncation` and `padding` are not applied: as in transformers, the caller decides on them.
HALFTONE_API TokenizerSpec parse_tokenizer_json(std::string_view text,
                                                const std::string& name = "tokenizer.json");

/// The metadata of a GGUF file that makes a tokenizer: tokenizer.ggml.*. Absent keys are empty.
struct GgufVocabulary {
  std::string name = "GGUF";        ///< stands first in errors
  std::string model;                ///< "llama" (SentencePiece), "gpt2" (byte-level) or "bert"
  std::string pre;                  ///< "llama-bpe", "qwen2", "gpt-2", "smollm", …: how gpt2 splits words
  std::vector<std::string> tokens;  ///< the index is the id
  std::vector<float> scores;        ///< empty, or one for each token
  std::vector<int32_t>
      token_types;  ///< empty, or one for each token: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
  std::vector<std::string> merges;  ///< "left right"
  std::optional<int64_t> bos_id, eos_id, unknown_id, separator_id, padding_id;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

/// Other models and other values of `pre` are refused by name (kUnsupported).
HALFTONE_API TokenizerSpec gguf_tokenizer_spec(const GgufVocabulary& vocabulary);

}  // namespace halftone
