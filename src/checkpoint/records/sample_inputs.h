// The sample inputs of a graph in .ht files: one value for each user input, none of them nested.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/json.h"
#include "checkpoint/container/ht_value.h"

namespace halftone::ht {

nlohmann::json sample_inputs_json(const std::vector<HtValue>& inputs);
/// kCorruptFile for nested values and for tensors without their content.
std::vector<HtValue> sample_inputs_of(const JsonCursor& place);

}  // namespace halftone::ht
