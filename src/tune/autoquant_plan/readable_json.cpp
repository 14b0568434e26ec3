#include "tune/autoquant_plan/readable_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace halftone {
namespace {

using LaidOut = nlohmann::ordered_json;
constexpr size_t kLineWidth = 140;  // a candidate with its numbers in full is about 110
constexpr size_t kStep = 2;

std::string key_text(const std::string& key) {
  return LaidOut(key).dump() + ": ";
}

/// How deep lists and objects are nested: 0 for a number.
int nesting(const LaidOut& json) {
  if (!json.is_structured()) return 0;
  int deepest = 0;
  for (const LaidOut& member : json) deepest = std::max(deepest, nesting(member));
  return deepest + 1;
}

std::string on_one_line(const LaidOut& json) {
  if (!json.is_structured()) return json.dump();
  std::string text;
  for (const auto& [key, value] : json.items()) {
    if (!text.empty()) text += ", ";
    text += (json.is_object() ? key_text(key) : "") + on_one_line(value);
  }
  return json.is_object() ? "{" + text + "}" : "[" + text + "]";
}

void write_laid_out(const LaidOut& json, size_t indent, std::string& text) {
  // Two levels: {"sizes": [8, 128], …} is one thing to read.
  const int depth = nesting(json);
  if (depth == 0 || json.empty()) {
    text += json.dump();
    return;
  }
  if (depth == 1 || (depth == 2 && json.is_object())) {
    const std::string line = on_one_line(json);
    if (indent + line.size() <= kLineWidth) {
      text += line;
      return;
    }
  }
  text += json.is_object() ? "{" : "[";
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    text += first ? "\n" : ",\n";
    first = false;
    text.append(indent + kStep, ' ');
    if (json.is_object()) text += key_text(key);
    write_laid_out(value, indent + kStep, text);
  }
  text += "\n" + std::string(indent, ' ') + (json.is_object() ? "}" : "]");
}

}  // namespace

std::string readable_json(const nlohmann::ordered_json& json) {
  std::string text;
  write_laid_out(json, 0, text);
  return text;
}

}  // namespace halftone
