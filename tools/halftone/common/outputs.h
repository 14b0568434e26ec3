// The results of a call: written to a safetensors file, or summarized as text and JSON.
#pragma once

#include <ATen/core/ivalue.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"

namespace halftone::cli {

/// One leaf of the result. A mutated input is listed after the leaves, without a path.
struct Output {
  std::string name;  ///< "output_0", "mutated_input_cache": the tensor's name in a file
  std::string path;  ///< place in the nested result: "[0]['logits']"
  c10::IValue value;
};

/// The leaves of a call's flat result, then the inputs that the call wrote to. `inputs`: the values of that
/// call.
std::vector<Output> name_outputs(const GraphModule& module, const std::vector<c10::IValue>& inputs,
                                 std::vector<c10::IValue> results);

/// What a file can hold of a value: a tensor as it is, a number as a 0-d tensor; an undefined tensor for
/// strings and None.
at::Tensor tensor_of(const c10::IValue& value);

/// A safetensors file with what is a tensor or a number (numbers as 0-d tensors) and, as its metadata
/// "structure", a JSON list with name, path, kind of every leaf, and the value of strings.
void save_outputs(const std::string& path, const std::vector<Output>& outputs);

/// A table with dtype, shape, minimum, mean and maximum.
std::string outputs_table(const std::vector<Output>& outputs);
/// The same as a JSON list.
nlohmann::ordered_json outputs_json(const std::vector<Output>& outputs);

}  // namespace halftone::cli
