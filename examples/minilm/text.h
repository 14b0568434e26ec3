// BERT's text cleaning and word splitting, for uncased models: UTF-8 in, code points out. Knows no torch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace minilm {

/// UTF-8 to code points. A byte that is not part of a valid sequence gives U+FFFD.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view text);

/// What the tokenizer sees as words, in order: the text without control characters, without accents
/// (decomposed, non-spacing marks dropped), in lower case, split at white space; each punctuation mark and
/// each Chinese character is a word by itself.
std::vector<std::u32string> split_words(std::string_view text);

}  // namespace minilm
