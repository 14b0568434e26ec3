// training_graphs [NAME…]: compiles the C++ models with AotAutograd, without and with decompositions, with
// both partitioners, runs each one step and prints one line of JSON for each: the operators of the forward
// and the backward graph that the compilers were given, and the bytes saved between them; or {"error": …}.
// The first line names the operators that each table takes apart.
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "halftone/autograd/aot_autograd.h"
#include "training/models.h"

namespace halftone {
namespace {

using Json = nlohmann::json;

struct Way {
  const char* table;
  const char* partitioner;
};
constexpr Way kWays[] = {{"none", "default"},    {"none", "min_cut"}, {"default", "default"},
                         {"default", "min_cut"}, {"core", "default"}, {"core", "min_cut"}};

/// The no-op compiler, which also writes down what it was given.
GraphCompiler recording(Json& report, const char* part) {
  return [&report, part, compile = nop_compiler()](const std::shared_ptr<GraphModule>& module,
                                                   const std::vector<c10::IValue>& examples,
                                                   const CompilerOptions& options) {
    Json& counts = report[part] = Json::object();
    for (const auto& node : module->graph().nodes())
      counts[node->target()] = counts.value(node->target(), 0) + 1;
    report[std::string(part) + "_text"] = print_graph(module->graph());
    return compile(module, examples, options);
  };
}

AotOptions options_of(const Way& way, Json& report) {
  AotOptions options;
  options.fw_compiler = recording(report, "forward");
  options.bw_compiler = recording(report, "backward");
  options.debug_assert = true;
  if (way.table == std::string("default")) options.decompositions = default_decompositions;
  if (way.table == std::string("core")) options.decompositions = core_decompositions;
  const bool min_cut = way.partitioner == std::string("min_cut");
  options.partition_fn = [&report, min_cut](const JointGraph& joint) {
    PartitionedGraphs graphs =
        min_cut ? min_cut_rematerialization_partition(joint) : default_partition(joint);
    report["saved_bytes"] = saved_bytes(graphs);
    return graphs;
  };
  return options;
}

void collect_tensors(const c10::IValue& value, std::vector<at::Tensor>& found) {
  if (value.isTensor()) {
    found.push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) collect_tensors(element, found);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) collect_tensors(entry.value(), found);
  }
}

/// Backward is compiled at its first use.
void step(const ForwardFunction& compiled, const TrainingModel& model) {
  std::vector<at::Tensor> results, differentiable;
  collect_tensors(compiled(model.examples), results);
  std::copy_if(results.begin(), results.end(), std::back_inserter(differentiable),
               [](const at::Tensor& result) { return result.grad_fn() != nullptr; });
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& result : differentiable) gradients.push_back(at::ones_like(result));
  torch::autograd::backward(differentiable, gradients);
}

Json report_on(const TrainingModel& model, const Way& way) {
  Json report = {{"model", model.name}, {"table", way.table}, {"partitioner", way.partitioner}};
  try {
    const AotAutograd compiler(options_of(way, report));
    step(compiler(*model.module, model.forward, model.examples), model);
  } catch (const std::exception& error) {
    report["error"] = error.what();
  }
  return report;
}

std::vector<std::string> names_of(const DecompositionTable& table) {
  std::vector<std::string> names;
  for (const auto& [name, function] : table) names.push_back(name);
  return names;
}

}  // namespace
}  // namespace halftone

int main(int argc, char** argv) {
  nlohmann::json tables = {{"default", halftone::names_of(halftone::default_decompositions())},
                           {"core", halftone::names_of(halftone::core_decompositions())}};
  std::puts(tables.dump().c_str());
  for (const halftone::TrainingModel& model : halftone::training_models()) {
    if (argc > 1 && std::find(argv + 1, argv + argc, model.name) == argv + argc) continue;
    for (const halftone::Way& way : halftone::kWays)
      std::puts(halftone::report_on(model, way).dump().c_str());
  }
  return 0;
}
