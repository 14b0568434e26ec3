#include "text/template/json_values.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace halftone::jinja {

Value json_value(Rendering& rendering, const nlohmann::ordered_json& json) {
  using Kind = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Kind::boolean:
      return json.get<bool>();
    case Kind::number_integer:
      return json.get<int64_t>();
    case Kind::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        rendering.fail_unsupported("an integer of more than 64 bits");
      return json.get<int64_t>();
    case Kind::number_float:
      return json.get<double>();
    case Kind::string:
      return rendering.text(json.get_ref<const std::string&>());
    case Kind::array: {
      std::vector<Value> items;
      for (const auto& item : json) items.push_back(json_value(rendering, item));
      return rendering.list(std::move(items));
    }
    case Kind::object: {
      std::vector<std::pair<Value, Value>> entries;
      for (const auto& [key, entry] : json.items())
        entries.emplace_back(rendering.text(key), json_value(rendering, entry));
      return rendering.dict(std::move(entries));
    }
    default:
      return None{};
  }
}

}  // namespace halftone::jinja
