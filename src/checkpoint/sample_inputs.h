// Sample inputs in .ht files: tensors beside the weights, everything else as JSON.
#pragma once

#include <ATen/core/ivalue.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "checkpoint/ht_file.h"

namespace halftone::ht {

/// A sample input as the file has it: a value, or the record of a tensor.
using StoredInput = std::variant<c10::IValue, HtRecord>;

/// `records`: of the tensors among the inputs, in order. kUnsupported, with the input's number, for values
/// that are neither a tensor, None, a number nor a string.
nlohmann::json sample_inputs_json(const std::vector<c10::IValue>& inputs,
                                  const std::vector<HtRecord>& records);
std::vector<StoredInput> sample_inputs_of(const JsonCursor& place);

}  // namespace halftone::ht
