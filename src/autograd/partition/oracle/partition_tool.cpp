// partition_tool FOLDER…: partitions the joint graph of each folder in every way, runs both parts on its
// inputs and prints one line of JSON: what each way saves, which operators its graphs hold, and whether they
// give the bits that the joint graph gives; or {"error": …}. For tests that compare with torch's own
// partitioners. A folder holds joint.txt, joint.json (primals, results, first_backward) and
// inputs.safetensors ("0", "1", …).
#include <ATen/Context.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "autograd/partition/test_support.h"
#include "halftone/graph/tensor_file.h"

namespace halftone::partition {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kSeed = 11;

Json operators_of(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const auto& node : graph.nodes()) ++counts[node->target()];
  return counts;
}

Json describe(const JointGraph& joint, const PartitionedGraphs& graphs,
              const std::vector<c10::IValue>& inputs, const std::vector<c10::IValue>& expected) {
  std::vector<std::string> saved;
  for (size_t i = 0; i < graphs.saved; ++i) saved.push_back(graphs.backward->inputs()[i].value->name());
  at::manual_seed(kSeed);
  const std::vector<c10::IValue> outputs = run_parts(graphs, joint.primals, inputs);
  return {{"saved", saved},
          {"saved_bytes", saved_bytes(graphs)},
          {"forward", operators_of(*graphs.forward)},
          {"backward", operators_of(*graphs.backward)},
          {"forward_text", print_graph(*graphs.forward)},
          {"backward_text", print_graph(*graphs.backward)},
          {"same_bits", same_bits(outputs, expected)}};
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json report_on(const std::string& folder) {
  const Json about = Json::parse(text_of(folder + "/joint.json"));
  const JointGraph joint = joint_from_text(text_of(folder + "/joint.txt"), about.at("primals"),
                                           about.at("results"), about.at("first_backward"));
  const TensorMap tensors = load_tensors(folder + "/inputs.safetensors").tensors;
  std::vector<c10::IValue> inputs;
  for (size_t i = 0; i < joint.graph->inputs().size(); ++i)
    inputs.emplace_back(tensors.at(std::to_string(i)));
  at::manual_seed(kSeed);
  const std::vector<c10::IValue> expected = run_graph(*joint.graph, inputs);
  Json report;
  report["default"] = describe(joint, default_partition(joint), inputs, expected);
  report["min_cut"] = describe(joint, min_cut_rematerialization_partition(joint), inputs, expected);
  for (const double budget : {0.0, 0.25, 0.5, 0.75}) {
    report["budgets"].push_back(
        describe(joint, min_cut_rematerialization_partition(joint, {budget}), inputs, expected));
  }
  return report;
}

}  // namespace
}  // namespace halftone::partition

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    nlohmann::json report;
    try {
      report = halftone::partition::report_on(argv[i]);
    } catch (const std::exception& error) {
      report["error"] = error.what();
    }
    std::puts(report.dump().c_str());
  }
  return 0;
}
