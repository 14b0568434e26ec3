// JSON of .ht metadata: text that may hold any bytes, lists of sizes, numbers that JSON cannot say.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "archive/bytes/dtype.h"
#include "base/json.h"

namespace halftone::ht {

/// A string, or {"hex": "…"} if the text is not UTF-8.
nlohmann::json text_json(std::string_view text);
std::string text_of(const JsonCursor& place);

/// A number, or "Infinity", "-Infinity", "NaN".
nlohmann::json double_json(double value);

/// At most 64 integers, none negative.
std::vector<int64_t> sizes_of(const JsonCursor& place);

/// The name in safetensors headers; complex128, which the format lacks, is "C128".
std::string dtype_text(DType dtype);
DType dtype_of(const JsonCursor& place);

/// Refuses (kCorruptFile) members that the format does not have: what we do not know we must not drop.
void require_known(const JsonCursor& object, std::initializer_list<std::string_view> known);
/// The elements of an array; kCorruptFile if it is none.
std::vector<JsonCursor> elements(const JsonCursor& array);

}  // namespace halftone::ht
