// libFuzzer target: any bytes as JSON give a document or a halftone::Error.
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace {

/// Reads every value through the cursor, as users of a document do.
void walk(const halftone::JsonCursor& place) {
  const nlohmann::json& value = place.raw();
  if (value.is_object()) {
    for (const std::string& key : place.keys()) walk(place.at(key));
  } else if (value.is_array()) {
    for (size_t i = 0; i < place.size(); ++i) walk(place.at(i));
  } else if (value.is_string()) {
    place.get_string();
  } else if (value.is_number_integer()) {
    place.get_int();
  } else if (value.is_number()) {
    place.get_double();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto document =
        halftone::parse_json({reinterpret_cast<const char*>(data), size}, "fuzz.json", {.max_depth = 32});
    walk(halftone::JsonCursor(document, "fuzz.json"));
  } catch (const halftone::Error&) {
  }
  return 0;
}
