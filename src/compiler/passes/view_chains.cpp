#include "compiler/passes/view_chains.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/errors.h"
#include "compiler/passes/alias.h"
#include "compiler/passes/match.h"
#include "graph/operators/op_traits.h"
#include "graph/operators/operands.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

Value* earlier_of_same_sizes(const Value* value, const AliasSets& aliases) {
  bool pure = true;
  Value* found = nullptr;
  for (const Node* node = value->producer(); node != nullptr && has_trait(*node, OpTrait::kReshape);) {
    pure = pure && !has_trait(*node, OpTrait::kMayCopy);
    Value* x = node->input(0).value();
    if (x == nullptr || x->type() != ValueType::kTensor) break;
    if (same_sizes(x, value) && (pure || (is_contiguous(x) && !aliases.is_user_input(x)))) found = x;
    node = x->producer();
  }
  return found;
}

}  // namespace

size_t collapse_views(Graph& graph) {
  size_t collapsed = 0;
  const AliasSets aliases(graph);
  for (Node* node : snapshot(graph)) {
    if (node->op() == nullptr || !has_trait(*node, OpTrait::kReshape) || node->output()->users().empty())
      continue;
    Value* earlier = earlier_of_same_sizes(node->output(), aliases);
    if (earlier == nullptr) continue;
    graph.replace_all_uses(node->output(), earlier);
    ++collapsed;
  }
  return collapsed;
}

namespace {

// Their results have a layout of their own, whatever their operands' is.
bool ignores_layout(const Node& node) {
  constexpr std::array<std::string_view, 9> kTargets = {
      "aten::linear",  "aten::matmul",           "aten::mm",       "aten::bmm",          "aten::addmm",
      "aten::baddbmm", "halftone::fused_linear", "halftone::norm", "halftone::attention"};
  if (std::find(kTargets.begin(), kTargets.end(), node.target()) != kTargets.end()) return true;
  const Argument* format = node.try_input("memory_format");
  return node.is("aten::clone") && format != nullptr && *format == Argument(c10::MemoryFormat::Contiguous);
}

bool is_view(const Node& node) {
  if (node.op() == nullptr) return false;
  const auto& arguments = node.op()->schema().arguments();
  return !arguments.empty() && arguments[0].alias_info() != nullptr && !arguments[0].alias_info()->isWrite();
}

/// One trial with numbers for the symbols.
class Trial {
 public:
  explicit Trial(const SymbolBindings& bindings) : bindings_(bindings) {}

  std::vector<int64_t> numbers(const std::vector<SymExpr>& expressions) const {
    std::vector<int64_t> result;
    for (const SymExpr& expression : expressions) result.push_back(expression.evaluate(bindings_));
    return result;
  }

  void set(const Value* value, c10::IValue result) { results_[value] = std::move(result); }
  const c10::IValue& result(const Value* value) const { return results_.at(value); }

  /// Runs the view on meta tensors; throws if it cannot be.
  void run(const Node& node) {
    if (node.is("builtin::unpack")) {
      const auto parts = results_.at(node.input(0).value()).toTensorVector();
      for (size_t i = 0; i < node.outputs().size(); ++i) set(node.output(i), parts.at(i));
      return;
    }
    torch::jit::Stack stack;
    for (const c10::Argument& expected : node.op()->schema().arguments()) {
      const Argument* given = node.try_input(expected.name());
      stack.push_back(given != nullptr ? operand(*given, expected.real_type())
                                       : expected.default_value().value_or(c10::IValue()));
    }
    node.op()->callBoxed(stack);
    for (size_t i = 0; i < node.outputs().size(); ++i) set(node.output(i), stack.at(i));
  }

 private:
  c10::IValue operand(const Argument& argument, const c10::TypePtr& type) const {
    if (const Value* value = argument.value()) {
      if (const auto known = results_.find(value); known != results_.end()) return known->second;
      if (value->expression()) return value->expression()->evaluate(bindings_);
      if (!value->meta()) fail(ErrorCode::kInternal, "%{} has no metadata", value->name());
      return at::empty(numbers(value->meta()->sizes),
                       at::TensorOptions(value->meta()->dtype).device(at::kMeta));
    }
    if (const auto* list = argument.list()) {
      std::vector<c10::IValue> items;
      for (const Argument& item : *list) items.push_back(operand(item, element_type(type)));
      return list_to_ivalue(std::move(items), type);
    }
    return constant_to_ivalue(argument, type);
  }

  const SymbolBindings& bindings_;
  std::map<const Value*, c10::IValue> results_;
};

bool follows_layout(const Node& node) {
  return node.is("builtin::unpack") || is_view(node);
}

/// Who reads the value or a view of it, those that make views before those that read them.
class LayoutReaders {
 public:
  explicit LayoutReaders(const Value* root) {
    collect(root);
    std::reverse(nodes_.begin(), nodes_.end());
  }
  const std::vector<const Node*>& nodes() const { return nodes_; }

 private:
  void collect(const Value* value) {
    for (const Node* user : value->users()) {
      if (!seen_.insert(user).second) continue;
      if (follows_layout(*user)) {
        for (const Value* output : user->outputs()) collect(output);
      }
      nodes_.push_back(user);
    }
  }
  std::set<const Node*> seen_;
  std::vector<const Node*> nodes_;
};

/// Walks in order from a value whose strides change, as long as they differ from what was recorded.
class Walk {
 public:
  Walk(Value* root, LayoutChange change, const StridesFor& strides, const std::vector<SymbolBindings>& probes)
      : root_(root), change_(change) {
    for (const SymbolBindings& probe : probes) {
      Trial& trial = trials_.emplace_back(probe);
      const std::vector<int64_t> sizes = trial.numbers(root->meta()->sizes);
      trial.set(root, at::empty_strided(sizes, strides(sizes),
                                        at::TensorOptions(root->meta()->dtype).device(at::kMeta)));
    }
    changed_.insert(root);
  }

  /// Throws what a view throws that the strides do not allow.
  bool run() {
    const LayoutReaders readers(root_);
    return std::all_of(readers.nodes().begin(), readers.nodes().end(),
                       [&](const Node* node) { return visit(*node); });
  }

  void commit() const {
    for (Value* value : changed_) {
      if (value != root_ && value->type() == ValueType::kTensor && value->meta()) update_strides(*value);
    }
  }

 private:
  bool visit(const Node& node) {
    bool reads = false;
    for (Value* value : node.input_values()) reads = reads || changed_.contains(value);
    if (!reads) return true;
    if (node.is("return")) return false;
    if (!follows_layout(node) || !changed_.contains(node.input(0).value())) {
      if (node.op() == nullptr) return node.target().starts_with("sym::");
      return change_ == LayoutChange::kSpread || ignores_layout(node);
    }
    for (Trial& trial : trials_) trial.run(node);
    for (Value* output : node.outputs()) {
      if (output->type() != ValueType::kTensor || !has_recorded_strides(*output)) changed_.insert(output);
    }
    return true;
  }

  bool has_recorded_strides(const Value& value) const {
    if (!value.meta() || value.meta()->strides.size() != value.meta()->sizes.size()) return false;
    for (const Trial& trial : trials_) {
      if (trial.numbers(value.meta()->strides) != trial.result(&value).toTensor().strides()) return false;
    }
    return true;
  }

  void update_strides(Value& value) const {
    bool contiguous = true;
    for (const Trial& trial : trials_)
      contiguous = contiguous && trial.result(&value).toTensor().is_contiguous();
    TensorMeta meta = *value.meta();
    meta.strides = contiguous ? contiguous_meta(meta.dtype, meta.sizes).strides : std::vector<SymExpr>{};
    value.set_meta(std::move(meta));
  }

  Value* root_;
  LayoutChange change_;
  std::vector<Trial> trials_;
  std::set<Value*> changed_;
};

}  // namespace

Restrider::Restrider(const Graph& graph) : aliases_(graph) {
  std::vector<SymExpr> expressions;
  const auto collect = [&](const Value* value) {
    if (value->expression()) expressions.push_back(*value->expression());
    if (!value->meta()) return;
    expressions.insert(expressions.end(), value->meta()->sizes.begin(), value->meta()->sizes.end());
    expressions.insert(expressions.end(), value->meta()->strides.begin(), value->meta()->strides.end());
  };
  for (const GraphInput& input : graph.inputs()) collect(input.value);
  for (const auto& node : graph.nodes()) {
    for (const Value* output : node->outputs()) collect(output);
  }
  for (int probe = 0; probe < kProbes; ++probe) probes_.push_back(probe_bindings(expressions, probe));
}

bool Restrider::try_restride(Value* root, LayoutChange change, const StridesFor& strides) const {
  if (!root->meta() || aliases_.is_written(root)) return false;
  try {
    Walk walk(root, change, strides, probes_);
    if (!walk.run()) return false;
    walk.commit();
  } catch (const std::exception&) {
    return false;  // a view that these strides do not allow
  }
  return true;
}

}  // namespace halftone::compiler
