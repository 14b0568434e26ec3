#include "common/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "common/command_line.h"
#include "common/describe.h"
#include "halftone/base/error.h"
#include "halftone/graph/check_inputs.h"
#include "halftone/graph/tensor_file.h"

namespace halftone::cli {

namespace {

/// A tensor of the file as the kind of value that the model wants.
c10::IValue convert(const GraphInput& input, const at::Tensor& tensor, const std::string& file) {
  const ValueType type = input.value->type();
  // A copy: a mapped file gives any alignment, and the same numbers at another alignment change the last bits
  // of vendor kernels.
  if (type == ValueType::kTensor) return tensor.clone();
  const bool fits =
      (type == ValueType::kInt && c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/false)) ||
      (type == ValueType::kFloat && c10::isFloatingType(tensor.scalar_type())) ||
      (type == ValueType::kBool && tensor.scalar_type() == c10::ScalarType::Bool);
  if (!fits || tensor.numel() != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: input '{}' is of type {}, which the file's tensor ({} {}) cannot give", file,
                            input.target, to_string(type), dtype_name(tensor.scalar_type()),
                            describe_sizes(tensor.sizes())));
  }
  if (type == ValueType::kInt) return tensor.item().toLong();
  if (type == ValueType::kFloat) return tensor.item().toDouble();
  return tensor.item().toBool();
}

/// The array of a .npy file has no name: it is the model's only tensor.
void name_the_array(const GraphModule& module, const std::string& path, TensorMap& tensors) {
  const auto found = tensors.find("");
  if (found == tensors.end()) return;
  std::vector<std::string> wanted;
  for (const GraphInput* input : user_inputs(module))
    if (input->value->type() == ValueType::kTensor && !input->fixed) wanted.push_back(input->target);
  if (wanted.size() != 1)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: an array without a name, and the model takes {} tensors: give a .npz or "
                            ".safetensors file. It takes:{}",
                            path, wanted.size(), expected_inputs(module)));
  auto node = tensors.extract(found);
  node.key() = wanted.front();
  tensors.insert(std::move(node));
}

InputSet read_file(const GraphModule& module, const std::string& path) {
  TensorFile file = load_tensors(path);
  name_the_array(module, path, file.tensors);
  InputSet set{path, {}};
  std::vector<std::string> problems;
  size_t index = 0;
  for (const GraphInput* input : user_inputs(module)) {
    const auto found = file.tensors.find(input->target);
    if (found != file.tensors.end()) {
      set.values.push_back(convert(*input, found->second, path));
      file.tensors.erase(found);
    } else if (auto value = known_input(module, index)) {
      set.values.push_back(*std::move(value));
    } else {
      problems.push_back(fmt::format("missing '{}'", input->target));
    }
    ++index;
  }
  for (const auto& [name, tensor] : file.tensors) problems.push_back(fmt::format("unexpected '{}'", name));
  if (problems.empty()) return set;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: not the inputs of this model: {}. It takes:{}", path,
                          fmt::join(problems, ", "), expected_inputs(module)));
}

}  // namespace

std::string expected_inputs(const GraphModule& module) {
  std::string text;
  for (const GraphInput* input : user_inputs(module)) {
    text += fmt::format("\n  {}: {}", input->target, describe_value(*input->value));
  }
  return text.empty() ? " nothing" : text;
}

std::vector<const GraphInput*> user_inputs(const GraphModule& module) {
  std::vector<const GraphInput*> inputs;
  for (const GraphInput& input : module.graph().inputs()) {
    if (input.kind == InputKind::kUser) inputs.push_back(&input);
  }
  return inputs;
}

std::vector<InputSet> collect_inputs(const GraphModule& module, const std::vector<std::string>& files) {
  std::vector<InputSet> sets;
  for (const std::string& file : files) sets.push_back(read_file(module, file));
  if (!sets.empty()) return sets;
  const size_t wanted = user_inputs(module).size();
  if (module.sample_inputs.size() != wanted) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: has no sample inputs: give --inputs F.safetensors, or --shapes. It takes:{}",
                            module.name, expected_inputs(module)));
  }
  return {{"sample inputs", module.sample_inputs}};
}

std::vector<InputSet> collect_inputs(const GraphModule& module, const InputOptions& options) {
  std::vector<InputSet> sets;
  for (const std::string& shapes : options.shapes)
    sets.push_back({shapes, made_up_inputs(module, shapes, options.seed + sets.size())});
  if (options.shapes.empty()) sets = collect_inputs(module, options.files);
  for (const InputSet& set : sets) require_fitting(module, set.origin, set.values);
  return sets;
}

std::vector<c10::IValue> made_up_inputs(const GraphModule& module, const std::string& shapes, uint64_t seed) {
  try {
    return inputs_of_shapes(module, shapes, seed);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    throw UsageError(fmt::format("--shapes: {}. The model takes:{}", error.what(), expected_inputs(module)));
  }
}

void require_fitting(const GraphModule& module, const std::string& origin,
                     const std::vector<c10::IValue>& values) {
  try {
    check_inputs(module, values);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", origin, error.what()));
  }
}

Samples collect_samples(const GraphModule& module, const InputOptions& options) {
  Samples samples;
  for (const InputSet& set : collect_inputs(module, options))
    samples.calls.push_back(sample_from_flat(module, set.values));
  return samples;
}

void add_input_options(CLI::App& command, InputOptions& options, const std::string& what) {
  auto* files = command.add_option("--inputs", options.files, what)
                    ->type_name("FILE")
                    ->expected(1)
                    ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_shape_options(command, options.shapes, options.seed)->excludes(files);
}

CLI::Option* add_shape_options(CLI::App& command, std::vector<std::string>& shapes, uint64_t& seed) {
  auto* option = command
                     .add_option("--shapes", shapes,
                                 "Made-up inputs of these shapes instead: ids:1x128,mask:1x128, or\n"
                                 "1x128 where there is one input; may be repeated")
                     ->type_name("LIST")
                     ->expected(1)
                     ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--seed", seed, "Of made-up inputs (default: 0)")->type_name("N")->needs(option);
  return option;
}

std::vector<c10::IValue> copy_for_call(const GraphModule& module, const InputSet& inputs) {
  std::vector<c10::IValue> values = inputs.values;
  const std::vector<std::string> names = module.input_names();
  for (const std::string& mutated : module.mutated_input_names()) {
    const size_t index = std::find(names.begin(), names.end(), mutated) - names.begin();
    if (index < values.size() && values[index].isTensor()) values[index] = values[index].toTensor().clone();
  }
  return values;
}

}  // namespace halftone::cli
