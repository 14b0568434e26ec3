// The vocab.txt of uncased BERT models.
#include <algorithm>

#include "base/errors.h"
#include "halftone/cli/text_file.h"
#include "halftone/text/tokenizer.h"

namespace halftone {
namespace {

constexpr size_t kLargestVocabularyFile = size_t{64} << 20;

std::vector<VocabularyToken> vocabulary_lines(std::string_view text) {
  std::vector<VocabularyToken> tokens;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    tokens.push_back({std::string(line), static_cast<int64_t>(tokens.size()), 0});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return tokens;
}

/// One of the tokens that every such vocabulary has, as a special one.
int64_t add_special(std::string_view content, TokenizerSpec& spec) {
  const auto& tokens = spec.model.vocabulary;
  const auto found =
      std::find_if(tokens.begin(), tokens.end(), [&](const auto& token) { return token.text == content; });
  if (found == tokens.end()) fail(ErrorCode::kCorruptFile, "{}: token {} is missing", spec.name, content);
  spec.added_tokens.push_back({.content = std::string(content), .id = found->id, .special = true});
  return found->id;
}

}  // namespace

Tokenizer Tokenizer::from_bert_vocabulary(const std::string& path) {
  TokenizerSpec spec;
  spec.name = path;
  spec.model.kind = TokenizerModelKind::kWordPiece;
  spec.model.vocabulary = vocabulary_lines(read_text_file(path, kLargestVocabularyFile));
  spec.pad_id = add_special("[PAD]", spec);
  spec.model.unknown_id = add_special("[UNK]", spec);
  spec.prefix = {add_special("[CLS]", spec)};
  spec.suffix = {add_special("[SEP]", spec)};
  spec.normalizers.resize(1);
  spec.normalizers[0].kind = NormalizerKind::kBert;
  spec.pre_tokenizers.resize(1);
  spec.pre_tokenizers[0].kind = PreTokenizerKind::kBert;
  spec.decoders.resize(1);
  spec.decoders[0].kind = DecoderKind::kWordPiece;
  spec.decoders[0].pattern = "##";
  return Tokenizer(std::move(spec));
}

}  // namespace halftone
