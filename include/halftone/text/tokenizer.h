// Text to token ids and back, as the tokenizer.json of a model says; the same ids as Hugging Face's `tokenizers` gives.
//
//   const auto tokenizer = halftone::Tokenizer::from_file("tokenizer.json");
//   const std::vector<int64_t> ids = tokenizer.encode("Hello, world");
//   std::cout << tokenizer.decode(ids) << "\n";
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/text/tokenizer_spec.h"

namespace halftone {

class TokenizerPipeline;
class DecoderChain;

struct EncodeOptions {
  bool add_special = true;  ///< what the model expects around a text, such as "<s>"
  bool parse_special =
      true;  ///< special tokens in the text become themselves; false: their names are ordinary text
};

/// Immutable, so one tokenizer serves many threads. Copies share their tables.
class HALFTONE_API Tokenizer {
 public:
  /// Reads a tokenizer.json. Throws halftone::Error, naming the file and the place in it: kNotFound or kIo if it cannot be read,
  /// kCorruptFile if it breaks the format, kUnsupported with the name of a part that is not known.
  static Tokenizer from_file(const std::string& path);
  /// The same for its text; `name` stands for the file in errors.
  static Tokenizer from_json(std::string_view text, const std::string& name = "tokenizer.json");
  /// One token a line, its id the line number from 0: the vocab.txt of uncased BERT models.
  static Tokenizer from_bert_vocabulary(const std::string& path);
  explicit Tokenizer(TokenizerSpec spec);

  /// UTF-8 in. Bytes that are no UTF-8 count as U+FFFD, one for each broken sequence. Time is n log n in the length.
  /// Throws kInvalidArgument if nothing covers a character and there is no unknown token.
  std::vector<int64_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// Always UTF-8. Ids that are no token give no text.
  std::string decode(std::span<const int64_t> ids, bool skip_special = true) const;

  /// The bytes by which a token continues a text: part of a character, maybe. Throws kInvalidArgument if `id` is no token.
  std::string token_bytes(int64_t id) const;
  /// The token as the file writes it. Throws kInvalidArgument if `id` is no token.
  std::string token(int64_t id) const;
  std::optional<int64_t> id_of(std::string_view token) const;
  bool is_token(int64_t id) const;
  bool is_special(int64_t id) const;

  int64_t vocabulary_size() const;  ///< tokens, added ones included
  int64_t id_bound() const;         ///< larger than every id

  std::optional<int64_t> bos_id() const;
  std::optional<int64_t> eos_id() const;
  std::optional<int64_t> pad_id() const;

 private:
  friend class StreamDecoder;
  std::shared_ptr<const TokenizerPipeline> pipeline_;
};

/// Ids one by one to text: all texts together are what decode() gives for all ids, and none of them ends within a character.
/// Text that later tokens can still change is held back: an unfinished character, a run of byte tokens.
class HALFTONE_API StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true);
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;

  std::string push(int64_t id);
  std::string finish();  ///< what was held back; the next push() begins a new text

 private:
  std::shared_ptr<const TokenizerPipeline> pipeline_;
  std::unique_ptr<DecoderChain> chain_;
  bool skip_special_;
};

}  // namespace halftone
