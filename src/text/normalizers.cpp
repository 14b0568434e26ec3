#include "text/normalizers.h"

#include <algorithm>

#include "text/normal_form.h"
#include "text/unicode.h"

namespace halftone {
namespace {

/// The blocks that BERT's authors chose; kana and Hangul are not among them, because those scripts write longer words.
bool is_chinese(char32_t c) {
  if (c < 0x3400) return false;
  static constexpr char32_t kBlocks[][2] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                            {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                            {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks),
                     [&](const char32_t(&block)[2]) { return c >= block[0] && c <= block[1]; });
}

void erase_class(std::u32string& text, uint8_t mask) {
  const uint8_t* classes = char_classes();
  std::erase_if(text, [&](char32_t c) { return (classes[c] & mask) != 0; });
}

void to_lower(std::u32string& text) {
  std::u32string lower;
  lower.reserve(text.size());
  for (const char32_t c : text) append_lower(c, lower);
  text = std::move(lower);
}

/// Without control characters, white space as spaces. Tab and line ends are controls to Unicode, but white space here.
void clean_bert_text(std::u32string& text) {
  const uint8_t* classes = char_classes();
  const auto is_space = [&](char32_t c) {
    return c == '\t' || c == '\n' || c == '\r' || (classes[c] & kCharSpace) != 0;
  };
  std::erase_if(text, [&](char32_t c) {
    if (c == '\t' || c == '\n' || c == '\r') return false;
    return c == 0xFFFD || (classes[c] & kCharOther) != 0;
  });
  std::replace_if(text.begin(), text.end(), is_space, U' ');
}

void space_out_chinese(std::u32string& text) {
  std::u32string spaced;
  spaced.reserve(text.size());
  for (const char32_t c : text) {
    if (is_chinese(c)) {
      spaced += {U' ', c, U' '};
    } else {
      spaced += c;
    }
  }
  text = std::move(spaced);
}

std::string bert_text(const NormalizerStep& step, std::string_view text) {
  std::u32string wide = to_utf32(text);
  if (step.clean_text) clean_bert_text(wide);
  if (step.handle_chinese_chars) space_out_chinese(wide);
  if (step.strip_accents) {
    normalize(wide, NormalForm::kNfd);
    erase_class(wide, kCharNonSpacing);
  }
  if (step.lowercase) to_lower(wide);
  return to_utf8(wide);
}

std::string stripped(const NormalizerStep& step, std::string_view text) {
  const uint8_t* classes = char_classes();
  const auto is_space_at = [&](size_t at) { return (classes[char_at(text, at).code] & kCharSpace) != 0; };
  while (step.left && !text.empty() && is_space_at(0)) text.remove_prefix(char_at(text, 0).length);
  while (step.right && !text.empty()) {
    size_t last = text.size() - 1;
    while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (!is_space_at(last)) break;
    text.remove_suffix(text.size() - last);
  }
  return std::string(text);
}

/// Runs of two and more spaces by `content`.
std::string without_space_runs(std::string_view text, std::string_view content) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_not_of(' ', at), text.size());
    if (end - at >= 2) {
      out += content;
      at = end;
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::string lowered(std::string text) {
  if (is_ascii(text)) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 0x20) : c;
    return text;
  }
  std::u32string wide = to_utf32(text);
  to_lower(wide);
  return to_utf8(wide);
}

std::string without_accents(std::string text) {
  if (is_ascii(text)) return text;
  std::u32string wide = to_utf32(text);
  erase_class(wide, kCharMark);
  return to_utf8(wide);
}

std::string normalized(const NormalizerStep& step, std::string text) {
  switch (step.kind) {
    case NormalizerKind::kBert:
      return bert_text(step, text);
    case NormalizerKind::kNfc:
      return normal_form(std::move(text), NormalForm::kNfc);
    case NormalizerKind::kNfd:
      return normal_form(std::move(text), NormalForm::kNfd);
    case NormalizerKind::kNfkc:
      return normal_form(std::move(text), NormalForm::kNfkc);
    case NormalizerKind::kNfkd:
      return normal_form(std::move(text), NormalForm::kNfkd);
    case NormalizerKind::kLowercase:
      return lowered(std::move(text));
    case NormalizerKind::kStripAccents:
      return without_accents(std::move(text));
    case NormalizerKind::kStrip:
      return stripped(step, text);
    case NormalizerKind::kReplace:
      return replaced(text, step.pattern, step.content);
    case NormalizerKind::kReplaceSpaces:
      return without_space_runs(text, step.content);
    case NormalizerKind::kPrepend:
      return text.empty() ? text : step.content + text;
  }
  return text;
}

}  // namespace

std::string replaced(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  for (size_t found = 0; (found = text.find(pattern, at)) != std::string_view::npos;
       at = found + pattern.size()) {
    out += text.substr(at, found - at);
    out += content;
  }
  out += text.substr(at);
  return out;
}

void apply_normalizers(const std::vector<NormalizerStep>& steps, std::string& text) {
  for (const NormalizerStep& step : steps) text = normalized(step, std::move(text));
}

}  // namespace halftone
