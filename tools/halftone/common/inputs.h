// The inputs of a model: tensors of a file by the model's own input names, or the sample inputs of the
// model.
#pragma once

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"
#include "halftone/tune/samples.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace halftone::cli {

/// Where calls come from. Empty: the model's sample inputs.
struct InputOptions {
  std::vector<std::string> files;
  std::vector<std::string> shapes;  ///< "ids:1x128,mask:1x128", a call each; made-up values
  uint64_t seed = 0;                ///< of these values
  size_t calls() const { return std::max<size_t>(1, files.size() + shapes.size()); }
};

/// Puts --inputs, --shapes and --seed on a subcommand. `what`: "Inputs of a call".
void add_input_options(CLI::App& command, InputOptions& options, const std::string& what);

/// Puts --shapes and --seed alone on a subcommand; returns --shapes.
CLI::Option* add_shape_options(CLI::App& command, std::vector<std::string>& shapes, uint64_t& seed);

/// The inputs of one call, in the model's order.
struct InputSet {
  std::string origin;  ///< for messages: the file, or "sample inputs"
  std::vector<c10::IValue> values;
};

/// The sample inputs where `files` is empty (kInvalidArgument if the model has none), else one set for
/// each file. A missing or unexpected name is kInvalidArgument, with the list of what the model takes.
/// Numbers are tensors with one element; another input may be left out if the model knows its
/// value. Files are safetensors, .npz, or .npy if the model takes one tensor.
std::vector<InputSet> collect_inputs(const GraphModule& module, const std::vector<std::string>& files);

/// The same, or calls of these shapes with made-up values. What the model does not take is refused here, by
/// the name of the file.
std::vector<InputSet> collect_inputs(const GraphModule& module, const InputOptions& options);

/// Flat inputs as inputs_of_shapes() makes them. UsageError, with what the model takes, for what is no shape
/// of an input.
std::vector<c10::IValue> made_up_inputs(const GraphModule& module, const std::string& shapes, uint64_t seed);

/// Throws where the model does not take these values; the message begins with their origin.
void require_fitting(const GraphModule& module, const std::string& origin,
                     const std::vector<c10::IValue>& values);

/// The same as calls to tune for.
Samples collect_samples(const GraphModule& module, const InputOptions& options);

/// The same values, with copies of the tensors that the model writes to, so that a call leaves `inputs` as it
/// is.
std::vector<c10::IValue> copy_for_call(const GraphModule& module, const InputSet& inputs);

/// "NAME: float32 [2, 64]" of each input, a line each.
std::string expected_inputs(const GraphModule& module);

/// The inputs that the caller gives, in order.
std::vector<const GraphInput*> user_inputs(const GraphModule& module);

}  // namespace halftone::cli
