#include "backend/lifecycle/recipe_config.h"

#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "base/json.h"
#include "base/nearest.h"
#include "graph/run/graph_call.h"
#include "halftone/compile/compile.h"
#include "halftone/quant/quantize.h"
#include "quant/graph/quantized_node.h"
#include "quant/select/layer_chooser.h"

namespace halftone::lifecycle {
namespace {

bool is_quantized(const Graph& graph, const QuantConfig& config) {
  const QuantConfig linear = stored_config(config), embedding = stored_config(embedding_config(config));
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const auto& node) {
    const auto found = try_quantized_node(*node);
    return found && found->config == (found->layer.kind == "embedding" ? embedding : linear);
  });
}

}  // namespace

nlohmann::json parse_config(std::string_view type, std::string_view json,
                            std::initializer_list<std::string_view> known) {
  nlohmann::json fields;
  try {
    fields = parse_json(json, fmt::format("config of {}", type));
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidArgument, error.what());
  }
  if (!fields.is_object()) fail(ErrorCode::kInvalidArgument, "config of {}: expected a JSON object", type);
  const std::vector<std::string> names(known.begin(), known.end());
  for (const auto& [name, value] : fields.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail(ErrorCode::kInvalidArgument, "config of {}: there is no field \"{}\"{}", type, name,
           did_you_mean(name, names));
  }
  return fields;
}

namespace {

/// Samples that a file holds as shapes alone are meta tensors. Plans ask for memory and never look into it.
std::vector<c10::IValue> with_memory(std::vector<c10::IValue> inputs) {
  for (c10::IValue& input : inputs) {
    if (!input.isTensor() || !input.toTensor().is_meta()) continue;
    const at::Tensor shape = input.toTensor();
    input = at::empty_strided(shape.sizes(), shape.strides(), shape.options().device(at::kCPU));
  }
  return inputs;
}

}  // namespace

ReadyModel compiled(std::shared_ptr<GraphModule> module, const std::vector<Sample>& samples, int threads) {
  CompileOptions options;
  options.threads = threads;
  const auto model = compile(module, options);
  for (const Sample& sample : samples)
    model->warm_up(with_memory(flatten_call(module->call_spec(), sample.args, sample.kwargs)));
  return {std::move(module), model};
}

std::shared_ptr<GraphModule> quantized_copy(const GraphModule& original, const QuantConfig& config) {
  auto copy = original.clone();
  if (!is_quantized(copy->graph(), config)) quantize_(*copy, config);
  return copy;
}

}  // namespace halftone::lifecycle
