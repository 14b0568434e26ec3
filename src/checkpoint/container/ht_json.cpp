#include "checkpoint/container/ht_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "archive/bytes/text.h"
#include "base/errors.h"

namespace halftone::ht {
namespace {

constexpr size_t kHighestRank = 64;
constexpr std::string_view kComplex128 = "C128";
constexpr std::string_view kHex = "hex";

int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

}  // namespace

nlohmann::json text_json(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string digits;
  for (const char letter : text) digits += fmt::format("{:02x}", static_cast<unsigned char>(letter));
  return {{kHex, digits}};
}

std::string text_of(const JsonCursor& place) {
  if (!place.has(kHex)) return place.get_string();
  require_known(place, {kHex});
  const std::string digits = place.at(kHex).get_string();
  std::string text;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    const int high = digit_of(digits[i]);
    const int low = digit_of(digits[i + 1]);
    if (high < 0 || low < 0) place.fail_here("not lower-case hexadecimal digits");
    text += static_cast<char>(high * 16 + low);
  }
  if (digits.size() % 2 != 0) place.fail_here("an odd number of hexadecimal digits");
  return text;
}

nlohmann::json double_json(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

std::vector<int64_t> sizes_of(const JsonCursor& place) {
  std::vector<int64_t> sizes;
  const auto items = elements(place);
  if (items.size() > kHighestRank)
    place.fail_here(fmt::format("rank {} is more than {}", items.size(), kHighestRank));
  for (const JsonCursor& item : items) {
    sizes.push_back(item.get_int());
    if (sizes.back() < 0) item.fail_here("is negative");
  }
  return sizes;
}

std::string dtype_text(DType dtype) {
  return std::string(dtype == DType::kComplex128 ? kComplex128 : safetensors_name(dtype));
}

DType dtype_of(const JsonCursor& place) {
  const std::string name = place.get_string();
  if (name == kComplex128) return DType::kComplex128;
  const auto dtype = dtype_from_safetensors(name);
  if (!dtype) place.fail_here(fmt::format("{} is no element type", quote_text(name)));
  return *dtype;
}

void require_known(const JsonCursor& object, std::initializer_list<std::string_view> known) {
  for (const std::string& key : object.keys()) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      object.fail_here(fmt::format("the format has no member {}", quote_text(key)));
  }
}

std::vector<JsonCursor> elements(const JsonCursor& array) {
  if (!array.raw().is_array()) array.fail_here("expected an array");
  std::vector<JsonCursor> items;
  items.reserve(array.size());
  for (size_t i = 0; i < array.size(); ++i) items.push_back(array.at(i));
  return items;
}

}  // namespace halftone::ht
