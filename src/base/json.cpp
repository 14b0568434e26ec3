#include "base/json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/errors.h"

namespace halftone {
namespace {

using nlohmann::json;

/// Builds the document while it counts depth and values and refuses duplicate keys, which the library's own
/// builder would resolve silently in favour of the last one.
class LimitedBuilder : public nlohmann::json_sax<json> {
 public:
  LimitedBuilder(std::string_view file, const JsonLimits& limits) : file_(file), limits_(limits) {}

  json take() { return std::move(root_); }

  bool null() override { return add(nullptr), true; }
  bool boolean(bool value) override { return add(value), true; }
  bool number_integer(int64_t value) override { return add(value), true; }
  bool number_unsigned(uint64_t value) override { return add(value), true; }
  bool number_float(double value, const std::string&) override { return add(value), true; }
  bool string(std::string& value) override { return add(std::move(value)), true; }
  bool binary(json::binary_t&) override { return false; }

  bool start_object(size_t) override { return open(json::object()), true; }
  bool start_array(size_t) override { return open(json::array()), true; }
  bool end_object() override { return open_.pop_back(), true; }
  bool end_array() override { return open_.pop_back(), true; }

  bool key(std::string& name) override {
    if (open_.back()->contains(name)) fail(ErrorCode::kCorruptFile, "{}: duplicate key \"{}\"", file_, name);
    key_ = std::move(name);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& cause) override {
    // The library quotes the text it stopped at, which may be broken UTF-8 and would break the program that
    // prints the message.
    std::string reason = cause.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 1: ": the place is said already.
    if (const size_t place = reason.find(": "); reason.starts_with("[json.") && place != std::string::npos)
      reason.erase(0, place + 2);
    for (char& c : reason) c = c >= ' ' && c <= '~' ? c : '?';
    fail(ErrorCode::kCorruptFile, "{}: byte {}: {}", file_, position, reason);
  }

 private:
  json* add(json value) {
    if (++count_ > limits_.max_values)
      fail(ErrorCode::kCorruptFile, "{}: more than {} values", file_, limits_.max_values);
    if (open_.empty()) return root_ = std::move(value), &root_;
    json& parent = *open_.back();
    if (parent.is_array()) return parent.push_back(std::move(value)), &parent.back();
    return &(parent[key_] = std::move(value));
  }

  void open(json container) {
    if (std::cmp_greater_equal(open_.size(), limits_.max_depth)) {
      fail(ErrorCode::kCorruptFile, "{}: nested deeper than {}", file_, limits_.max_depth);
    }
    // Pointers into parents stay valid: only the innermost open container grows, and it moves none of its
    // parents.
    open_.push_back(add(std::move(container)));
  }

  std::string_view file_;
  const JsonLimits& limits_;
  json root_;
  std::vector<json*> open_;
  std::string key_;
  size_t count_ = 0;
};

std::string_view kind_name(const json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "a boolean";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  return value.is_array() ? "an array" : "an object";
}

}  // namespace

json parse_json(std::string_view text, std::string_view file, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    fail(ErrorCode::kCorruptFile, "{}: JSON of {} bytes, more than the limit of {}", file, text.size(),
         limits.max_bytes);
  }
  LimitedBuilder builder(file, limits);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    fail(ErrorCode::kCorruptFile, "{}: not valid JSON", file);
  }
  return builder.take();
}

void JsonCursor::fail_here(std::string_view message) const {
  fail(ErrorCode::kCorruptFile, "{}: {}", path_, message);
}

bool JsonCursor::is_null() const {
  return value_->is_null();
}

bool JsonCursor::has(std::string_view key) const {
  return value_->is_object() && value_->contains(std::string(key));
}

JsonCursor JsonCursor::at(std::string_view key) const {
  if (!value_->is_object()) fail_here(fmt::format("expected an object, found {}", kind_name(*value_)));
  const auto found = value_->find(std::string(key));
  if (found == value_->end()) fail_here(fmt::format("key \"{}\" is missing", key));
  return JsonCursor(*found, fmt::format("{}.{}", path_, key));
}

JsonCursor JsonCursor::at(size_t index) const {
  if (!value_->is_array()) fail_here(fmt::format("expected an array, found {}", kind_name(*value_)));
  if (index >= value_->size()) fail_here(fmt::format("element {} of an array of {}", index, value_->size()));
  return JsonCursor((*value_)[index], fmt::format("{}[{}]", path_, index));
}

size_t JsonCursor::size() const {
  if (!value_->is_structured())
    fail_here(fmt::format("expected an array or object, found {}", kind_name(*value_)));
  return value_->size();
}

std::vector<std::string> JsonCursor::keys() const {
  if (!value_->is_object()) fail_here(fmt::format("expected an object, found {}", kind_name(*value_)));
  std::vector<std::string> names;
  for (const auto& item : value_->items()) names.push_back(item.key());
  return names;
}

std::string JsonCursor::get_string() const {
  if (!value_->is_string()) fail_here(fmt::format("expected a string, found {}", kind_name(*value_)));
  return value_->get<std::string>();
}

int64_t JsonCursor::get_int() const {
  if (!value_->is_number_integer())
    fail_here(fmt::format("expected an integer, found {}", kind_name(*value_)));
  if (value_->is_number_unsigned() &&
      value_->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    fail_here("integer does not fit 64 signed bits");
  }
  return value_->get<int64_t>();
}

bool JsonCursor::get_bool() const {
  if (!value_->is_boolean()) fail_here(fmt::format("expected a boolean, found {}", kind_name(*value_)));
  return value_->get<bool>();
}

double JsonCursor::get_double() const {
  if (value_->is_number()) return value_->get<double>();
  if (value_->is_string()) {
    const auto& text = value_->get_ref<const std::string&>();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  fail_here(fmt::format("expected a number, found {}", kind_name(*value_)));
}

}  // namespace halftone
