#include "graph/run/interpreter.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <chrono>
#include <unordered_map>

#include "base/errors.h"
#include "graph/aten/torch_errors.h"
#include "graph/operators/operand_guards.h"
#include "graph/operators/operands.h"
#include "graph/operators/sym_ops.h"
#include "graph/run/subgraph_ops.h"
#include "halftone/cli/message.h"

namespace halftone {

/// A constant, a register, or a list of operands.
struct Interpreter::Operand {
  enum class Kind { kConstant, kRegister, kLastUse, kList };
  Kind kind = Kind::kConstant;
  size_t slot = 0;             // of kRegister and kLastUse
  bool as_tensor = false;      // of kRegister and kLastUse: a number that the operator wants as a tensor
  c10::IValue constant;        // of kConstant
  c10::TypePtr type;           // of kList: the schema's list type, nullptr for built-ins
  std::vector<Operand> items;  // of kList
};

struct Interpreter::Instruction {
  const Node* node = nullptr;
  std::vector<Operand> operands;
  std::vector<size_t> outputs;
  std::vector<size_t> freed;  // registers whose last use is here but not as an operand that can be moved from
  OperandGuard guard = nullptr;  // of operators
  SymFunction sym = nullptr;
  SubgraphFunction subgraph_function = nullptr;
  std::vector<std::unique_ptr<Interpreter>> graphs;
};

/// Translates one graph.
class Interpreter::Builder {
 public:
  explicit Builder(Interpreter& target) : target_(target) {}

  void build() {
    const Graph& graph = *target_.graph_;
    for (const GraphInput& input : graph.inputs()) new_register(input.value);
    for (const auto& node : graph.nodes()) target_.instructions_.push_back(translate(*node));
    for (const NamedArgument& result : graph.return_node().inputs()) {
      target_.results_.push_back(operand_of(result.value, nullptr));
    }
    mark_last_uses();
    target_.register_count_ = registers_.size();
  }

 private:
  size_t new_register(const Value* value) {
    const size_t slot = registers_.size();
    registers_.emplace(value, slot);
    return slot;
  }

  Instruction translate(const Node& node) {
    Instruction instruction;
    instruction.node = &node;
    try {
      if (node.op()) {
        instruction.operands = operands_of(node);
        instruction.guard = try_operand_guard(*node.op());
      } else {
        instruction.sym = try_sym_function(node.target());
        instruction.subgraph_function = try_subgraph_function(node.target());
        add_builtin_operands(node, instruction);
      }
    } catch (const Error& error) {
      throw error.with_context(fmt::format("{} (layer \"{}\")", node.target(), node.source().layer));
    }
    for (const Value* output : node.outputs()) instruction.outputs.push_back(new_register(output));
    return instruction;
  }

  /// One operand for each argument of the schema, defaults filled in.
  std::vector<Operand> operands_of(const Node& node) {
    return schema_operands<Operand>(
        node, [&](const Argument& given, const c10::TypePtr& type) { return operand_of(given, type); },
        [](const c10::IValue& constant, const c10::TypePtr&) { return Operand{.constant = constant}; });
  }

  void add_builtin_operands(const Node& node, Instruction& instruction) {
    for (const NamedArgument& input : node.inputs()) {
      if (const auto* graph = input.value.get_if<std::shared_ptr<Graph>>()) {
        instruction.graphs.push_back(std::make_unique<Interpreter>(*graph));
      } else {
        instruction.operands.push_back(operand_of(input.value, nullptr));
      }
    }
  }

  Operand operand_of(const Argument& argument, const c10::TypePtr& type) {
    if (const Value* value = argument.value()) {
      const auto found = registers_.find(value);
      if (found == registers_.end())
        fail(ErrorCode::kInvalidArgument, "%{} is used before it is defined", value->name());
      const bool as_tensor = type && type->kind() == c10::TypeKind::TensorType && is_number(value->type());
      return {.kind = Operand::Kind::kRegister, .slot = found->second, .as_tensor = as_tensor};
    }
    const Argument::List* list = argument.list();
    if (!list) return {.constant = constant_to_ivalue(argument, type)};
    Operand operand{.kind = Operand::Kind::kList, .type = type};
    bool constant = true;
    for (const Argument& item : *list) {
      operand.items.push_back(operand_of(item, element_type(type)));
      constant = constant && operand.items.back().kind == Operand::Kind::kConstant;
    }
    return constant ? fold(operand) : operand;
  }

  static bool is_number(ValueType type) {
    return type == ValueType::kInt || type == ValueType::kFloat || type == ValueType::kBool;
  }

  static Operand fold(const Operand& list) {
    std::vector<c10::IValue> items;
    for (const Operand& item : list.items) items.push_back(item.constant);
    return {.constant = list_to_ivalue(std::move(items), list.type)};
  }

  // Walks backwards: the first use met of a register is its last.
  void mark_last_uses() {
    std::vector<bool> seen(registers_.size(), false);
    for (Operand& result : target_.results_) note_uses(result, seen);
    for (auto it = target_.instructions_.rbegin(); it != target_.instructions_.rend(); ++it) {
      for (const size_t output : it->outputs) {
        if (!seen[output]) it->freed.push_back(output);
      }
      for (auto operand = it->operands.rbegin(); operand != it->operands.rend(); ++operand)
        mark(*operand, seen);
    }
    for (size_t i = 0; i < target_.graph_->inputs().size(); ++i) target_.input_is_used_.push_back(seen[i]);
  }

  static void note_uses(const Operand& operand, std::vector<bool>& seen) {
    if (operand.kind == Operand::Kind::kRegister) seen[operand.slot] = true;
    for (const Operand& item : operand.items) note_uses(item, seen);
  }

  static void mark(Operand& operand, std::vector<bool>& seen) {
    if (operand.kind == Operand::Kind::kRegister && !seen[operand.slot]) {
      operand.kind = Operand::Kind::kLastUse;
      seen[operand.slot] = true;
    }
    for (auto item = operand.items.rbegin(); item != operand.items.rend(); ++item) mark(*item, seen);
  }

  Interpreter& target_;
  std::unordered_map<const Value*, size_t> registers_;
};

/// The state of one run.
class Interpreter::Frame {
 public:
  Frame(size_t registers, std::vector<c10::IValue> inputs, const std::vector<bool>& used)
      : registers_(std::move(inputs)) {
    registers_.resize(registers);
    for (size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) registers_[i] = c10::IValue();
    }
  }

  c10::IValue take(const Operand& operand) {
    if (operand.as_tensor) return number_to_tensor(registers_[operand.slot]);
    switch (operand.kind) {
      case Operand::Kind::kConstant:
        return operand.constant;
      case Operand::Kind::kRegister:
        return registers_[operand.slot];
      case Operand::Kind::kLastUse:
        return std::move(registers_[operand.slot]);
      case Operand::Kind::kList:
        break;
    }
    std::vector<c10::IValue> items;
    items.reserve(operand.items.size());
    for (const Operand& item : operand.items) items.push_back(take(item));
    return list_to_ivalue(std::move(items), operand.type);
  }

  void execute(const Instruction& instruction) {
    stack_.clear();
    for (const Operand& operand : instruction.operands) stack_.push_back(take(operand));
    if (const c10::OperatorHandle* op = instruction.node->op()) {
      if (instruction.guard) instruction.guard(stack_);
      op->callBoxed(stack_);
    } else if (instruction.sym) {
      c10::IValue result = instruction.sym(stack_);
      stack_.clear();
      stack_.push_back(std::move(result));
    } else if (instruction.subgraph_function) {
      SubgraphCall call;
      for (const auto& graph : instruction.graphs) call.graphs.push_back(graph.get());
      call.operands = std::move(stack_);
      stack_ = instruction.subgraph_function(call);
    } else {
      run_list_builtin(*instruction.node);
    }
    store(instruction);
  }

  const std::vector<c10::IValue>& outputs() const { return hook_outputs_; }
  void keep_outputs() { keep_outputs_ = true; }

 private:
  /// builtin::unpack and builtin::getitem
  void run_list_builtin(const Node& node) {
    const c10::IValue sequence = std::move(stack_[0]);
    std::vector<c10::IValue> items;
    if (sequence.isTuple()) {
      items = sequence.toTupleRef().elements().vec();
    } else {
      const auto list = sequence.toList();
      for (size_t i = 0; i < list.size(); ++i) items.push_back(list.get(i));
    }
    if (node.is("builtin::unpack")) {
      stack_ = std::move(items);
      return;
    }
    int64_t index = stack_.at(1).toInt();
    if (index < 0) index += static_cast<int64_t>(items.size());
    if (index < 0 || std::cmp_greater_equal(index, items.size())) {
      fail(ErrorCode::kInvalidArgument, "element {} of a list of {}", index, items.size());
    }
    stack_ = {items[static_cast<size_t>(index)]};
  }

  void store(const Instruction& instruction) {
    if (stack_.size() != instruction.outputs.size()) {
      fail(ErrorCode::kInvalidArgument, "gave {} values where the graph expects {}", stack_.size(),
           instruction.outputs.size());
    }
    if (keep_outputs_) hook_outputs_ = stack_;
    for (size_t i = 0; i < stack_.size(); ++i) registers_[instruction.outputs[i]] = std::move(stack_[i]);
    for (const size_t slot : instruction.freed) registers_[slot] = c10::IValue();
  }

  std::vector<c10::IValue> registers_;
  std::vector<c10::IValue> stack_;
  std::vector<c10::IValue> hook_outputs_;
  bool keep_outputs_ = false;
};

Interpreter::Interpreter(std::shared_ptr<const Graph> graph) : graph_(std::move(graph)) {
  Builder(*this).build();
}
Interpreter::~Interpreter() = default;

std::vector<c10::IValue> Interpreter::run(std::vector<c10::IValue> inputs, const NodeHook* hook) const {
  if (inputs.size() != graph_->inputs().size()) {
    fail(ErrorCode::kInvalidArgument, "the graph takes {}, not {}", counted(graph_->inputs().size(), "input"),
         inputs.size());
  }
  Frame frame(register_count_, std::move(inputs), input_is_used_);
  if (hook) frame.keep_outputs();
  for (const Instruction& instruction : instructions_) {
    try {
      if (!hook) {
        frame.execute(instruction);
        continue;
      }
      const auto start = std::chrono::steady_clock::now();
      frame.execute(instruction);
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      (*hook)(*instruction.node, frame.outputs(), elapsed.count());
    } catch (const std::exception&) {  // ATen throws a few of its own, too: of overflow, of memory
      rethrow_at(place_of_node(*instruction.node), ErrorCode::kInvalidArgument);
    }
  }
  std::vector<c10::IValue> results;
  results.reserve(results_.size());
  for (const Operand& result : results_) results.push_back(frame.take(result));
  return results;
}

std::vector<c10::IValue> collect_graph_inputs(const Graph& graph, const ExecutorCall& call) {
  std::vector<c10::IValue> inputs;
  inputs.reserve(graph.inputs().size());
  size_t next_user_input = 0;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind == InputKind::kUser) {
      inputs.push_back(call.inputs[next_user_input++]);
    } else if (const auto own = call.state.find(input.target); own != call.state.end()) {
      inputs.emplace_back(own->second);
    } else if (const auto shared = call.tensors.find(input.target); shared != call.tensors.end()) {
      inputs.emplace_back(shared->second);
    } else {
      fail(ErrorCode::kNotFound, "the model has no tensor \"{}\"", input.target);
    }
  }
  return inputs;
}

std::vector<c10::IValue> InterpretedGraph::run(const ExecutorCall& call) const {
  return interpreter_.run(collect_graph_inputs(interpreter_.graph(), call), call.hook);
}

}  // namespace halftone
