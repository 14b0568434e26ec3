// The regular expressions that split text into words, as scanners written by hand.
//
// Each pattern is known by its exact text. All of them match somewhere at every place of a text, so the matches lie side by side.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

namespace halftone {

enum class SplitPattern { kGpt2, kLlama3, kQwen2 };

/// GPT-2's, which the byte-level pre-tokenizer has built in.
std::string_view pattern_text(SplitPattern pattern);
/// nullptr if none has this text.
const SplitPattern* find_split_pattern(std::string_view text);

/// Appends the ends of the matches in `text`, which is UTF-8.
void scan_pattern(SplitPattern pattern, std::string_view text, std::vector<size_t>& ends);

}  // namespace halftone
