#include "text/pre_tokenizers.h"

#include <functional>

#include "text/split_patterns.h"
#include "text/unicode.h"

namespace halftone {
namespace {

using Word = SplitText::Word;

/// Takes the parts of one word, matches of a delimiter and what lies between them, and makes words of them.
class DelimiterSplit {
 public:
  DelimiterSplit(SplitBehavior behavior, SplitText& split) : behavior_(behavior), words_(split.next_words) {}

  void begin_word(const Word& word) {
    first_ = words_.size();
    at_start_ = word.at_start;
    last_was_match_ = false;
  }

  void add(size_t begin, size_t end, bool is_match) {
    if (begin == end) return;
    const bool any = words_.size() > first_;
    bool joins = false;
    if (behavior_ == SplitBehavior::kMergedWithPrevious) joins = any && is_match && !last_was_match_;
    if (behavior_ == SplitBehavior::kMergedWithNext) joins = any && !is_match && last_was_match_;
    if (behavior_ == SplitBehavior::kContiguous) joins = any && is_match == last_was_match_;
    last_was_match_ = is_match;
    if (behavior_ == SplitBehavior::kRemoved && is_match) {
      at_start_ = false;
    } else if (joins) {
      words_.back().end = end;
    } else {
      words_.push_back({begin, end, at_start_});
      at_start_ = false;
    }
  }

 private:
  SplitBehavior behavior_;
  std::vector<Word>& words_;
  size_t first_ = 0;
  bool at_start_ = false, last_was_match_ = false;
};

/// `scan(word, add)` calls add(begin, end, is_match) for the parts of a word, in order.
template <typename Scan>
void split_words_by(SplitText& split, SplitBehavior behavior, Scan&& scan) {
  split.next_words.clear();
  DelimiterSplit parts(behavior, split);
  for (const Word& word : split.words) {
    parts.begin_word(word);
    scan(word, [&](size_t begin, size_t end, bool is_match) { parts.add(begin, end, is_match); });
  }
  split.words.swap(split.next_words);
}

/// Each character that `is_match` takes is a delimiter by itself.
template <typename IsMatch>
void split_at_chars(SplitText& split, SplitBehavior behavior, IsMatch&& is_match) {
  split_words_by(split, behavior, [&](const Word& word, auto&& add) {
    size_t begin = word.begin;
    for (size_t at = word.begin; at < word.end;) {
      const Char c = char_at(split.text, at);
      if (is_match(c.code)) {
        add(begin, at, false);
        add(at, at + c.length, true);
        begin = at + c.length;
      }
      at += c.length;
    }
    add(begin, word.end, false);
  });
}

void split_at_text(const PreTokenizerStep& step, SplitText& split) {
  split_words_by(split, step.behavior, [&](const Word& word, auto&& add) {
    const std::string_view text = split.text.substr(0, word.end);
    size_t at = word.begin;
    for (size_t found = 0; (found = text.find(step.pattern, at)) != std::string_view::npos;) {
      add(at, found, step.invert);
      add(found, found + step.pattern.size(), !step.invert);
      at = found + step.pattern.size();
    }
    add(at, word.end, step.invert);
  });
}

/// The matches of the known patterns lie side by side: there is nothing between them.
void split_by_pattern(SplitPattern pattern, SplitBehavior behavior, bool invert, SplitText& split) {
  split_words_by(split, behavior, [&](const Word& word, auto&& add) {
    split.ends.clear();
    scan_pattern(pattern, split.text.substr(word.begin, word.end - word.begin), split.ends);
    size_t begin = word.begin;
    for (const size_t end : split.ends) {
      add(begin, word.begin + end, !invert);
      begin = word.begin + end;
    }
  });
}

/// \w+ and [^\w\s]+, without what lies between them.
void split_whitespace_and_words(SplitText& split) {
  const uint8_t* classes = char_classes();
  const auto kind_of = [&](char32_t c) {
    if ((classes[c] & kCharWord) != 0) return 1;
    return (classes[c] & kCharSpace) != 0 ? 0 : 2;
  };
  split_words_by(split, SplitBehavior::kRemoved, [&](const Word& word, auto&& add) {
    size_t begin = word.begin;
    int kind = -1;
    for (size_t at = word.begin; at < word.end;) {
      const Char c = char_at(split.text, at);
      const int own = kind_of(c.code);
      if (own != kind && at != begin) add(begin, at, kind == 0);
      if (own != kind) begin = at;
      kind = own;
      at += c.length;
    }
    add(begin, word.end, kind == 0);
  });
}

/// Writes each word anew: `rewrite(word, storage)` appends it.
template <typename Rewrite>
void rewrite_words(SplitText& split, Rewrite&& rewrite) {
  std::string storage;
  storage.reserve(split.text.size() + split.words.size());
  for (Word& word : split.words) {
    const size_t begin = storage.size();
    rewrite(split.text.substr(word.begin, word.end - word.begin), word.at_start, storage);
    word.begin = begin;
    word.end = storage.size();
  }
  split.storage = std::move(storage);
  split.text = split.storage;
}

void apply_metaspace(const PreTokenizerStep& step, SplitText& split) {
  rewrite_words(split, [&](std::string_view word, bool at_start, std::string& out) {
    const bool prepends =
        step.prepend == PrependScheme::kAlways || (step.prepend == PrependScheme::kFirst && at_start);
    if (prepends && !word.starts_with(step.pattern) && !word.starts_with(' ')) out += step.pattern;
    for (const char c : word) {
      if (c == ' ') {
        out += step.pattern;
      } else {
        out += c;
      }
    }
  });
  if (!step.split) return;
  PreTokenizerStep at_marks;
  at_marks.pattern = step.pattern;
  at_marks.behavior = SplitBehavior::kMergedWithNext;
  split_at_text(at_marks, split);
}

void apply_byte_level(const PreTokenizerStep& step, SplitText& split) {
  if (step.add_prefix_space) {
    rewrite_words(split, [](std::string_view word, bool, std::string& out) {
      if (!word.starts_with(' ')) out += ' ';
      out += word;
    });
  }
  if (step.use_regex) split_by_pattern(SplitPattern::kGpt2, SplitBehavior::kIsolated, false, split);
}

}  // namespace

void apply_pre_tokenizer(const PreTokenizerStep& step, SplitText& split) {
  const uint8_t* classes = char_classes();
  const auto is_space = [&](char32_t c) { return (classes[c] & kCharSpace) != 0; };
  const auto is_punctuation = [&](char32_t c) { return (classes[c] & kCharPunctuation) != 0; };
  switch (step.kind) {
    case PreTokenizerKind::kByteLevel:
      return apply_byte_level(step, split);
    case PreTokenizerKind::kMetaspace:
      return apply_metaspace(step, split);
    case PreTokenizerKind::kSplit:
      return split_at_text(step, split);
    case PreTokenizerKind::kSplitRegex:
      return split_by_pattern(*find_split_pattern(step.pattern), step.behavior, step.invert, split);
    case PreTokenizerKind::kDigits:
      return split_at_chars(split,
                            step.individual_digits ? SplitBehavior::kIsolated : SplitBehavior::kContiguous,
                            [&](char32_t c) { return (classes[c] & kCharNumber) != 0; });
    case PreTokenizerKind::kBert:
      split_at_chars(split, SplitBehavior::kRemoved, is_space);
      return split_at_chars(split, SplitBehavior::kIsolated, is_punctuation);
    case PreTokenizerKind::kWhitespace:
      return split_whitespace_and_words(split);
    case PreTokenizerKind::kWhitespaceSplit:
      return split_at_chars(split, SplitBehavior::kRemoved, is_space);
    case PreTokenizerKind::kPunctuation:
      return split_at_chars(split, step.behavior, is_punctuation);
  }
}

}  // namespace halftone
