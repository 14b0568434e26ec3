// partition_tool JOINT.txt INPUTS.safetensors PRIMALS RESULTS FIRST_BACKWARD: partitions a joint graph in
// every way, runs both parts on the inputs ("0", "1", …) and prints, as JSON, what each way saves, which
// operators its graphs hold, and whether they give the bits that the joint graph gives. For tests that
// compare with torch's own partitioners.
#include <ATen/Context.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "autograd/partition/test_support.h"
#include "halftone/tensor_file.h"

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

void run(char** argv) {
  std::ifstream file(argv[1]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const JointGraph joint = joint_from_text(text, std::stoul(argv[3]), std::stoul(argv[4]), argv[5]);
  const TensorMap tensors = load_tensors(argv[2]).tensors;
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
  std::puts(report.dump().c_str());
}

}  // namespace
}  // namespace halftone::partition

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr,
                 "usage: partition_tool JOINT.txt INPUTS.safetensors PRIMALS RESULTS FIRST_BACKWARD\n");
    return 2;
  }
  try {
    halftone::partition::run(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "partition_tool: %s\n", error.what());
    return 1;
  }
  return 0;
}
