#include "checkpoint/records/sample_inputs.h"

#include <nlohmann/json.hpp>

#include "checkpoint/container/ht_json.h"

namespace halftone::ht {

nlohmann::json sample_inputs_json(const std::vector<HtValue>& inputs) {
  nlohmann::json json = nlohmann::json::array();
  for (const HtValue& input : inputs) json.push_back(value_json(input));
  return json;
}

std::vector<HtValue> sample_inputs_of(const JsonCursor& place) {
  std::vector<HtValue> inputs;
  for (const JsonCursor& item : elements(place)) {
    inputs.push_back(value_of(item));
    const auto& value = inputs.back().value;
    if (std::holds_alternative<HtNested>(value) || std::holds_alternative<HtShape>(value))
      item.fail_here("is no sample input");
  }
  return inputs;
}

}  // namespace halftone::ht
