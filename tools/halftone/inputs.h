// What a model is called with: tensors of a file by the model's own input names, or the sample inputs of the
// model.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "halftone/graph_module.h"
#include "halftone/tune_samples.h"

namespace halftone::cli {

/// The inputs of one call, in the model's order.
struct InputSet {
  std::string origin;  ///< for messages: the file, or "sample inputs"
  std::vector<c10::IValue> values;
};

/// The sample inputs where `files` is empty (kInvalidArgument where the model has none), else one set for
/// each file. A missing or unexpected name is kInvalidArgument, with the list of what the model takes.
/// Numbers are tensors with one element; an input that is no tensor may be left out where the model knows its
/// value.
std::vector<InputSet> collect_inputs(const GraphModule& module, const std::vector<std::string>& files);

/// The same as calls to tune for.
Samples collect_samples(const GraphModule& module, const std::vector<std::string>& files);

/// The same values, with copies of the tensors that the model writes to, so that a call leaves `inputs` as it
/// is.
std::vector<c10::IValue> copy_for_call(const GraphModule& module, const InputSet& inputs);

/// The inputs that the caller gives, in order.
std::vector<const GraphInput*> user_inputs(const GraphModule& module);

}  // namespace halftone::cli
