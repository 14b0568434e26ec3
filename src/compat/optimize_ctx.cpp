// optimize_ctx(): quantizes a model before its first iteration, and marks it.
#include "halftone/compat/optimize_ctx.h"

#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "base/errors.h"
#include "base/nearest.h"
#include "base/scheme_table.h"
#include "compat/quantization_mark.h"

namespace halftone {
namespace {

using NamedInputs = std::map<std::string, c10::IValue>;

/// In the order of `names`; the last ones may be missing.
std::vector<c10::IValue> by_position(const NamedInputs& inputs, const std::vector<std::string>& names) {
  if (names.empty() && !inputs.empty()) {
    fail(ErrorCode::kInvalidArgument,
         "the input \"{}\" has a name, and the model is called by position: give argument_names",
         inputs.begin()->first);
  }
  for (const auto& [name, value] : inputs) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail(ErrorCode::kInvalidArgument, "the model has no argument \"{}\"{}; arguments: {}", name,
           did_you_mean(name, names), fmt::join(names, ", "));
  }
  std::vector<c10::IValue> args;
  for (const std::string& name : names) {
    const auto given = inputs.find(name);
    if (given == inputs.end()) break;
    args.push_back(given->second);
  }
  if (args.size() != inputs.size())
    fail(ErrorCode::kInvalidArgument, "argument \"{}\" is missing, and later ones are given",
         names.at(args.size()));
  return args;
}

/// What a graph takes by name stays so; its other arguments go by the names of its inputs.
Sample graph_sample(const GraphModule& graph, const NamedInputs& inputs) {
  const CallSpec& call = graph.call_spec();
  std::vector<std::string> names = graph.input_names();
  names.resize(std::min(names.size(), call.args.children.size()));
  NamedInputs positional;
  Sample sample;
  for (const auto& [name, value] : inputs) {
    const auto& keys = call.kwargs.keys;
    const bool keyword = std::find(keys.begin(), keys.end(), name) != keys.end();
    (keyword ? sample.kwargs : positional).emplace(name, value);
  }
  sample.args = by_position(positional, names);
  return sample;
}

/// One call; of a C++ module by position.
Sample sample_of(const ModelSource& model, const ExampleInputs& inputs,
                 const std::vector<std::string>& names) {
  if (const auto* tuple = std::get_if<std::vector<c10::IValue>>(&inputs)) return {*tuple, {}};
  const auto& dict = std::get<NamedInputs>(inputs);
  if (model.graph) return graph_sample(*model.graph, dict);
  return {by_position(dict, names), {}};
}

void quantize_model(const ModelSource& model, const QuantConfig& config, const OptimizeCtxOptions& options) {
  const QuantizeOptions how{.filter = options.filter};
  const QuantizeReport report =
      model.graph ? quantize_(*model.graph, config, how) : quantize_(*model.module, config, how);
  if (options.on_quantized) options.on_quantized(report);
}

void autoquantize_model(const ModelSource& model, const ExampleInputs& inputs,
                        const OptimizeCtxOptions& options) {
  AutoquantOptions how = options.autoquant;
  how.error_on_unseen = false;
  const AutoquantPlan plan =
      autoquant(model, Samples({sample_of(model, inputs, options.argument_names)}), how);
  if (options.on_autoquantized) options.on_autoquantized(plan);
}

void quantize_once(const std::string& name, const ModelSource& model, const ExampleInputs& inputs,
                   const OptimizeCtxOptions& options) {
  const auto mark = baseline::mark_of(model);
  const std::lock_guard lock(mark->mutex);
  if (!mark->name.empty()) return;
  if (name == "autoquant") {
    autoquantize_model(model, inputs, options);
  } else if (name != "noquant") {
    quantize_model(model, QuantConfig(name), options);
  }
  mark->name = name;
}

}  // namespace

const std::vector<std::string>& optimize_ctx_names() {
  static const std::vector<std::string> names = torchao_scheme_names();
  return names;
}

std::function<ModelIterFn(ModelIterFn)> optimize_ctx(std::string_view quantization,
                                                     OptimizeCtxOptions options) {
  const auto& names = optimize_ctx_names();
  if (std::find(names.begin(), names.end(), quantization) == names.end())
    fail(ErrorCode::kInvalidArgument, "optimize_ctx: unknown quantization \"{}\"{}; known: {}", quantization,
         did_you_mean(quantization, names), fmt::join(names, ", "));
  const auto shared = std::make_shared<const OptimizeCtxOptions>(std::move(options));
  return [name = std::string(quantization), shared](ModelIterFn model_iter_fn) -> ModelIterFn {
    if (!model_iter_fn) fail(ErrorCode::kInvalidArgument, "optimize_ctx: there is no function to wrap");
    return [name, shared, iterate = std::move(model_iter_fn)](const ModelSource& model,
                                                              const ExampleInputs& inputs) {
      quantize_once(name, model, inputs, *shared);
      return iterate(model, inputs);
    };
  };
}

std::optional<std::string> quantization_mark(const ModelSource& model) {
  const auto mark = baseline::mark_of(model);
  const std::lock_guard lock(mark->mutex);
  return mark->name.empty() ? std::nullopt : std::optional(mark->name);
}

c10::IValue call_model(const ModelSource& model, const ExampleInputs& example_inputs,
                       const std::vector<std::string>& argument_names) {
  const Sample call = sample_of(model, example_inputs, argument_names);
  if (model.graph) return Session(model.graph)(call.args, call.kwargs);
  if (!model.forward) fail(ErrorCode::kInvalidArgument, "the C++ module has no function that calls it");
  return model.forward(call.args);
}

}  // namespace halftone
