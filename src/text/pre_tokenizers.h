// The steps that split a text into words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "halftone/text/tokenizer_spec.h"

namespace halftone {

/// A text and the words in it, in order. Steps may write a new text.
struct SplitText {
  struct Word {
    size_t begin, end;
    bool at_start;  ///< begins where the whole text began
  };
  std::string_view text;
  std::string storage;  ///< what `text` shows once a step has written its own
  std::vector<Word> words;
  std::vector<Word> next_words;  ///< of the step that runs
  std::vector<size_t> ends;      ///< of one scan
};

/// `split.words` holds one word, or more, that are not empty; steps leave no empty ones.
void apply_pre_tokenizer(const PreTokenizerStep& step, SplitText& split);

}  // namespace halftone
