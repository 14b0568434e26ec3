// JSON from untrusted files: parsed through nlohmann-json's SAX interface with our own limits, read through a
// cursor whose errors name file and place.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/error.h"

namespace halftone {

struct JsonLimits {
  int max_depth = 128;                   ///< nesting of arrays and objects
  size_t max_bytes = size_t{256} << 20;  ///< text length
  size_t max_values = 20'000'000;        ///< scalars, arrays and objects together
};

/// Parses one JSON document. Refuses duplicate keys, trailing bytes, invalid UTF-8 and whatever breaks the
/// limits (Error kCorruptFile; the message starts with `file`).
nlohmann::json parse_json(std::string_view text, std::string_view file, const JsonLimits& limits = {});

/// A place in a parsed document. Borrows the document, which must outlive the cursor. Every getter throws
/// kCorruptFile with "file: path: what was expected" when the value is of another kind or missing.
class JsonCursor {
 public:
  JsonCursor(const nlohmann::json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  const nlohmann::json& raw() const { return *value_; }
  const std::string& path() const { return path_; }

  bool is_null() const;
  bool has(std::string_view key) const;       ///< an object that holds `key`, even with value null
  JsonCursor at(std::string_view key) const;  ///< member of an object
  JsonCursor at(size_t index) const;          ///< element of an array
  size_t size() const;                        ///< of an array or object
  std::vector<std::string> keys() const;      ///< of an object, sorted
  std::string get_string() const;
  int64_t get_int() const;
  bool get_bool() const;
  /// Also takes the strings "Infinity", "-Infinity" and "NaN", which torch writes for what JSON cannot say.
  double get_double() const;

  /// Throws kCorruptFile with this place's name before `message`.
  [[noreturn]] void fail_here(std::string_view message) const;

 private:
  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace halftone
