#include "graph/run/mutation.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "base/errors.h"

namespace halftone {
namespace {

/// Batch norms whose schema shows no mutation, with the operands they write when `training` is true.
constexpr std::array kHiddenWriters = {
    std::string_view("aten::batch_norm"),
    std::string_view("aten::native_batch_norm"),
    std::string_view("aten::cudnn_batch_norm"),
    std::string_view("aten::instance_norm"),
};

bool writes_statistics(const Node& node) {
  if (std::find(kHiddenWriters.begin(), kHiddenWriters.end(), node.target()) == kHiddenWriters.end())
    return false;
  const Argument* flag = node.try_input("training");
  if (!flag) flag = node.try_input("use_input_stats");
  const bool* constant = flag ? flag->get_if<bool>() : nullptr;
  return !constant || *constant;
}

class Analysis {
 public:
  explicit Analysis(const Graph& graph) : graph_(graph), written_(graph.inputs().size(), false) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) roots_[graph.inputs()[i].value] = {i};
  }

  std::vector<bool> run() {
    for (const auto& node : graph_.nodes()) visit(*node);
    return written_;
  }

 private:
  using Roots = std::vector<size_t>;  // which inputs a value may share memory with

  void visit(const Node& node) {
    if (node.op()) {
      visit_operator(node);
    } else if (node.is("builtin::unpack") || node.is("builtin::getitem")) {
      share_with_outputs(node, node.input(0));
    } else {
      visit_subgraphs(node);
    }
  }

  void visit_operator(const Node& node) {
    const auto& schema = node.op()->schema();
    for (const c10::Argument& expected : schema.arguments()) {
      const Argument* given = node.try_input(expected.name());
      if (!given || !expected.alias_info()) continue;
      if (expected.alias_info()->isWrite()) mark_written(*given);
      share_with_outputs(node, *given);
    }
    if (writes_statistics(node)) {
      if (const Argument* mean = node.try_input("running_mean")) mark_written(*mean);
      if (const Argument* variance = node.try_input("running_var")) mark_written(*variance);
    }
  }

  // Operands reach the subgraph's inputs in order, lists flattened; its outputs may share memory with any of
  // them.
  void visit_subgraphs(const Node& node) {
    for (const NamedArgument& input : node.inputs()) {
      const auto* subgraph = input.value.get_if<std::shared_ptr<Graph>>();
      if (!subgraph) continue;
      const std::vector<bool> inner = inputs_written_in_place(**subgraph);
      bool any = false;
      for (const bool written : inner) any = any || written;
      // Which operand meets which input differs between the built-ins; a write to one is taken as a write to
      // all.
      if (any) {
        for (const NamedArgument& operand : node.inputs()) mark_written(operand.value);
      }
    }
    for (const NamedArgument& operand : node.inputs()) share_with_outputs(node, operand.value);
  }

  void mark_written(const Argument& argument) {
    if (const Value* value = argument.value()) {
      const auto roots = roots_.find(value);
      if (roots == roots_.end()) return;
      for (const size_t root : roots->second) written_[root] = true;
    }
    if (const auto* list = argument.list()) {
      for (const Argument& item : *list) mark_written(item);
    }
  }

  void share_with_outputs(const Node& node, const Argument& argument) {
    if (const Value* value = argument.value()) {
      const auto found = roots_.find(value);
      if (found == roots_.end()) return;  // most values share no input's memory
      const Roots roots = found->second;
      for (const Value* output : node.outputs()) {
        Roots& all = roots_[output];
        all.insert(all.end(), roots.begin(), roots.end());
      }
    }
    if (const auto* list = argument.list()) {
      for (const Argument& item : *list) share_with_outputs(node, item);
    }
  }

  const Graph& graph_;
  std::vector<bool> written_;
  std::unordered_map<const Value*, Roots> roots_;
};

size_t user_input_index(const Graph& graph, std::string_view name) {
  size_t index = 0;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind != InputKind::kUser) continue;
    if (input.target == name) break;
    ++index;
  }
  return index;
}

bool share_memory(const c10::IValue& a, const c10::IValue& b) {
  if (!a.isTensor() || !b.isTensor() || !a.toTensor().defined() || !b.toTensor().defined()) return false;
  const at::Tensor &x = a.toTensor(), &y = b.toTensor();
  return x.has_storage() && y.has_storage() && x.storage().is_alias_of(y.storage()) &&
         at::get_overlap_status(x, y) != at::MemOverlapStatus::No;
}

}  // namespace

bool has_writers(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    if (node->op() != nullptr) return node->op()->schema().is_mutable() || writes_statistics(*node);
    return std::any_of(node->inputs().begin(), node->inputs().end(), [](const NamedArgument& input) {
      const auto* subgraph = input.value.template get_if<std::shared_ptr<Graph>>();
      return subgraph != nullptr && has_writers(**subgraph);
    });
  });
}

std::vector<bool> inputs_written_in_place(const Graph& graph) {
  // Most graphs write nothing, and the question is asked after every pass.
  if (!has_writers(graph)) return std::vector<bool>(graph.inputs().size(), false);
  return Analysis(graph).run();
}

std::vector<std::string> mutated_tensor_names(const Graph& graph) {
  const std::vector<bool> written = inputs_written_in_place(graph);
  std::vector<std::string> names;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const GraphInput& input = graph.inputs()[i];
    if (input.kind != InputKind::kUser && written[i]) names.push_back(input.target);
  }
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind == OutputKind::kBufferMutation) names.push_back(output.target);
  }
  return names;
}

void check_written_inputs(const Graph& graph, const std::vector<c10::IValue>& user_inputs) {
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind != OutputKind::kInputMutation) continue;
    const size_t written = user_input_index(graph, output.target);
    for (size_t i = 0; i < user_inputs.size(); ++i) {
      if (i == written || !share_memory(user_inputs[i], user_inputs.at(written))) continue;
      fail(ErrorCode::kGuard,
           "the model writes to input \"{}\", which shares memory with input {} in this call: give each "
           "memory of its own",
           output.target, i);
    }
  }
}

std::vector<c10::IValue> apply_mutations(const Graph& graph, std::vector<c10::IValue> outputs,
                                         const std::vector<c10::IValue>& user_inputs,
                                         const TensorMap& state) {
  const auto& specs = graph.outputs();
  std::vector<c10::IValue> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (specs[i].kind == OutputKind::kUser) results.push_back(std::move(outputs[i]));
  }
  // After the user outputs are safe: an output may be a view of what is overwritten here only if eager's
  // would be too.
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (specs[i].kind == OutputKind::kBufferMutation) {
      state.find(specs[i].target)->second.copy_(outputs[i].toTensor());
    } else if (specs[i].kind == OutputKind::kInputMutation) {
      user_inputs.at(user_input_index(graph, specs[i].target)).toTensor().copy_(outputs[i].toTensor());
    }
  }
  return results;
}

}  // namespace halftone
