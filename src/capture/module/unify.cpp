#include "capture/module/unify.h"

#include <ATen/ops/equal.h>

#include <unordered_map>

#include "base/errors.h"
#include "capture/module/size_solver.h"
#include "graph/ir/text_names.h"

namespace halftone {
namespace {

std::string describe(const SymbolBindings& bindings) {
  std::string text;
  for (const auto& [name, value] : bindings)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::string describe(const Node& node) {
  return fmt::format("{} in layer \"{}\"", node.target(), node.source().layer);
}

struct TooFewTraces {};

class Unifier {
 public:
  Unifier(std::vector<Trace>& traces, const DynamicSizes& sizes, TraceCount count)
      : traces_(traces),
        sizes_(sizes),
        graph_(*traces[0].graph),
        solver_(sizes.bindings, count == TraceCount::kMany),
        count_(count) {}

  void run() {
    unify_inputs();
    std::vector<std::vector<Node*>> nodes(traces_.size());
    for (size_t i = 0; i < traces_.size(); ++i) {
      for (const auto& node : traces_[i].graph->nodes()) nodes[i].push_back(node.get());
    }
    check_structure(nodes);
    for (size_t k = 0; k < nodes[0].size(); ++k) {
      std::vector<Node*> same;
      for (const auto& list : nodes) same.push_back(list[k]);
      unify_node(same);
    }
    unify_results();
  }

 private:
  [[noreturn]] void fail_different(size_t trace, const std::string& first, const std::string& other) const {
    fail(ErrorCode::kUnsupported, "the model does not do the same at all sizes: with {} {}, with {} {}",
         describe(sizes_.bindings[0]), first, describe(sizes_.bindings[trace]), other);
  }

  void unify_inputs() {
    for (size_t i = 1; i < traces_.size(); ++i) {
      const auto& inputs = traces_[i].graph->inputs();
      for (size_t k = 0; k < std::max(inputs.size(), graph_.inputs().size()); ++k) {
        const bool both = k < inputs.size() && k < graph_.inputs().size();
        if (both && inputs[k].target == graph_.inputs()[k].target &&
            inputs[k].kind == graph_.inputs()[k].kind)
          continue;
        const auto name = [&](const std::vector<GraphInput>& list) {
          return k < list.size() ? fmt::format("it reads \"{}\"", list[k].target)
                                 : std::string("it does not");
        };
        fail_different(i, name(graph_.inputs()), name(inputs));
      }
      check_constants(i);
    }
    for (size_t i = 0; i < traces_.size(); ++i) {
      for (const GraphInput& input : traces_[i].graph->inputs()) number(i, input.value);
    }
    std::vector<Value*> leaves;
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind == InputKind::kUser) leaves.push_back(input.value);
    }
    for (const DynamicLeaf& dim : sizes_.dims) {
      TensorMeta meta = *leaves.at(dim.leaf)->meta();
      meta.sizes[dim.dim] = SymExpr::symbol(dim.symbol);
      leaves[dim.leaf]->set_meta(std::move(meta));
      sources_.try_emplace(dim.symbol, leaves[dim.leaf], dim.dim);
    }
    for (size_t k = 0; k < graph_.inputs().size(); ++k) {
      std::vector<Value*> same;
      for (const Trace& trace : traces_) same.push_back(trace.graph->inputs()[k].value);
      if (same[0]->meta()) unify_strides(same);
    }
  }

  void check_constants(size_t trace) const {
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind != InputKind::kConstant) continue;
      const at::Tensor& first = traces_[0].tensors.at(input.target);
      const at::Tensor& other = traces_[trace].tensors.at(input.target);
      if (first.sizes() == other.sizes() && first.scalar_type() == other.scalar_type() &&
          at::equal(first, other))
        continue;
      const std::string user = input.value->users().empty() ? "" : describe(*input.value->users()[0]);
      fail(ErrorCode::kUnsupported,
           "{} reads a tensor that C++ code filled, and its content depends on the sizes ({} and {}): make "
           "it with "
           "operators such as arange",
           user, describe(sizes_.bindings[0]), describe(sizes_.bindings[trace]));
    }
  }

  void check_structure(const std::vector<std::vector<Node*>>& nodes) const {
    for (size_t i = 1; i < nodes.size(); ++i) {
      for (size_t k = 0; k < std::max(nodes[0].size(), nodes[i].size()); ++k) {
        const auto name = [&](const std::vector<Node*>& list) {
          return k < list.size() ? fmt::format("node {} is {}", k, describe(*list[k]))
                                 : fmt::format("there are {} nodes", list.size());
        };
        const bool both = k < nodes[0].size() && k < nodes[i].size();
        if (!both || nodes[0][k]->target() != nodes[i][k]->target() ||
            nodes[0][k]->inputs().size() != nodes[i][k]->inputs().size() ||
            nodes[0][k]->outputs().size() != nodes[i][k]->outputs().size())
          fail_different(i, name(nodes[0]), name(nodes[i]));
      }
    }
  }

  void number(size_t trace, const Value* value) { ids_.emplace(value, counts_[trace]++); }

  void unify_node(const std::vector<Node*>& nodes) {
    Node& node = *nodes[0];
    // Operands first: their sizes are what the results' are made of.
    at_hand_.clear();
    for (const Value* value : node.input_values()) {
      if (!value->meta()) continue;
      for (const SymExpr& size : value->meta()->sizes) at_hand_.push_back(size);
    }
    std::vector<NamedArgument> inputs = node.inputs();
    for (size_t k = 0; k < inputs.size(); ++k) {
      std::vector<const Argument*> same;
      for (const Node* other : nodes) same.push_back(&other->inputs()[k].value);
      if (nodes[1]->inputs()[k].name != inputs[k].name)
        fail_different(1, describe(node),
                       fmt::format("its operands are others ({})", nodes[1]->inputs()[k].name));
      inputs[k].value = merge(same, node, inputs[k].name);
    }
    node.set_inputs(std::move(inputs));
    for (size_t k = 0; k < node.outputs().size(); ++k) {
      std::vector<Value*> same;
      for (size_t i = 0; i < nodes.size(); ++i) {
        same.push_back(nodes[i]->output(k));
        number(i, same.back());
      }
      unify_meta(same, node);
    }
  }

  Argument merge(const std::vector<const Argument*>& same, Node& node, const std::string& name) {
    const auto where = [&] { return fmt::format("operand \"{}\" of {}", name, describe(node)); };
    const Argument& first = *same[0];
    for (size_t i = 1; i < same.size(); ++i) {
      const bool alike = same[i]->data().index() == first.data().index() &&
                         (!first.list() || first.list()->size() == same[i]->list()->size()) &&
                         (!first.value() || ids_.at(first.value()) == ids_.at(same[i]->value()));
      if (!alike) fail_different(i, where() + " is one value", "it is another");
    }
    if (first.value()) return first;
    if (first.list()) {
      Argument::List items;
      for (size_t k = 0; k < first.list()->size(); ++k) {
        std::vector<const Argument*> elements;
        for (const Argument* argument : same) elements.push_back(&(*argument->list())[k]);
        items.push_back(merge(elements, node, name));
      }
      return items;
    }
    bool equal = true;
    for (const Argument* argument : same) equal = equal && *argument == first;
    if (equal) return first;
    if (!first.get_if<int64_t>())
      fail(ErrorCode::kUnsupported, "{} depends on the sizes in a way that no expression explains", where());
    Samples values;
    for (const Argument* argument : same) values.push_back(*argument->get_if<int64_t>());
    const auto expression = solver_.solve(values, at_hand_);
    if (!expression && count_ == TraceCount::kFew) throw TooFewTraces();
    if (!expression) {
      fail(ErrorCode::kUnsupported, "{}: {} for {}, {} for {}; no expression of the sizes explains it",
           where(), values[0], describe(sizes_.bindings[0]), values[1], describe(sizes_.bindings[1]));
    }
    return compute(*expression, node);
  }

  /// The expression's value, computed before the node.
  Argument compute(const SymExpr& expression, Node& before) {
    if (const auto constant = expression.as_constant()) return *constant;
    const std::string text = expression.to_string();
    if (const auto known = computed_.find(text); known != computed_.end()) return known->second;
    Value* value = nullptr;
    if (expression.is_symbol()) {
      const auto& [input, dim] = sources_.at(expression.symbol());
      Node* first = graph_.nodes().empty() ? &before : graph_.nodes().front().get();
      value = graph_
                  .insert(first, "aten::sym_size.int", {{"self", input}, {"dim", static_cast<int64_t>(dim)}},
                          {{expression.symbol(), ValueType::kInt, std::nullopt, expression}})
                  ->output();
    } else {
      value = compute_operation(expression, before);
    }
    return computed_[text] = value;
  }

  Value* compute_operation(const SymExpr& expression, Node& before) {
    const bool sum = expression.op() == SymExpr::Op::kAdd, product = expression.op() == SymExpr::Op::kMul;
    const char* target = sum ? "sym::add" : product ? "sym::mul" : "sym::floordiv";
    Argument left = compute(expression.operands()[0], before);
    SymExpr so_far = expression.operands()[0];
    // The return node is no place to insert before: what the results need comes at the end.
    Node* place = before.is("return") ? nullptr : &before;
    for (size_t i = 1; i < expression.operands().size(); ++i) {
      Argument right = compute(expression.operands()[i], before);
      so_far = SymExpr::make(expression.op(), {so_far, expression.operands()[i]});
      left = graph_
                 .insert(place, target, {{"", std::move(left)}, {"", std::move(right)}},
                         {{"size", ValueType::kInt, std::nullopt, so_far}}, before.source())
                 ->output();
    }
    return left.value();
  }

  void unify_meta(const std::vector<Value*>& same, const Node& node) {
    if (!same[0]->meta()) return;
    TensorMeta meta = *same[0]->meta();
    for (size_t i = 1; i < same.size(); ++i) {
      const auto& other = same[i]->meta();
      if (!other || other->sizes.size() != meta.sizes.size() || other->dtype != meta.dtype)
        fail_different(i, describe(node) + " gives one type of tensor", "it gives another");
    }
    for (size_t dim = 0; dim < meta.sizes.size(); ++dim) {
      Samples values;
      for (const Value* value : same) values.push_back(value->meta()->sizes[dim].constant());
      const auto size = solver_.solve(values, at_hand_);
      if (!size && count_ == TraceCount::kFew) throw TooFewTraces();
      if (!size) {
        fail(ErrorCode::kUnsupported,
             "{} gives size {} with {} and {} with {}; no expression of the sizes explains it",
             describe(node), values[0], describe(sizes_.bindings[0]), values[1],
             describe(sizes_.bindings[1]));
      }
      meta.sizes[dim] = *size;
    }
    same[0]->set_meta(std::move(meta));
    unify_strides(same);
  }

  /// Contiguous ones are spelled as everywhere; others are solved for, or not known.
  void unify_strides(const std::vector<Value*>& same) {
    TensorMeta meta = *same[0]->meta();
    const auto matches = [&](const std::vector<SymExpr>& strides) {
      for (size_t i = 0; i < same.size(); ++i) {
        for (size_t dim = 0; dim < strides.size(); ++dim) {
          if (strides[dim].evaluate(sizes_.bindings[i]) != same[i]->meta()->strides[dim].constant())
            return false;
        }
      }
      return true;
    };
    if (const auto plain = contiguous_strides(meta.sizes); plain && matches(*plain)) {
      meta.strides = *plain;
    } else {
      std::vector<SymExpr> strides;
      for (size_t dim = 0; dim < meta.sizes.size(); ++dim) {
        Samples values;
        for (const Value* value : same) values.push_back(value->meta()->strides[dim].constant());
        const auto stride = solver_.solve(values, meta.sizes);
        if (!stride) break;
        strides.push_back(*stride);
      }
      if (strides.size() != meta.sizes.size()) strides.clear();
      meta.strides = std::move(strides);
    }
    same[0]->set_meta(std::move(meta));
  }

  void unify_results() {
    for (size_t i = 1; i < traces_.size(); ++i) {
      if (!(traces_[i].call.result == traces_[0].call.result) ||
          traces_[i].graph->outputs() != graph_.outputs())
        fail_different(i, "the results are nested or written in one way", "in another");
    }
    Node& node = graph_.return_node();
    at_hand_.clear();
    std::vector<Argument> values;
    for (size_t k = 0; k < graph_.outputs().size(); ++k) {
      std::vector<const Argument*> same;
      for (const Trace& trace : traces_) same.push_back(&trace.graph->output_value(k));
      values.push_back(merge(same, node, fmt::format("result {}", k)));
    }
    graph_.set_outputs(std::move(values), std::vector<GraphOutput>(graph_.outputs()));
  }

  std::vector<Trace>& traces_;
  const DynamicSizes& sizes_;
  Graph& graph_;
  SizeSolver solver_;
  const TraceCount count_;
  std::vector<SymExpr> at_hand_;
  std::unordered_map<const Value*, size_t> ids_;  ///< the same for values that stand for each other
  std::map<size_t, size_t> counts_;
  std::map<std::string, std::pair<Value*, size_t>> sources_;  ///< symbol → where its value can be read
  std::map<std::string, Value*> computed_;
};

}  // namespace

bool unify(std::vector<Trace>& traces, const DynamicSizes& sizes, TraceCount count) {
  try {
    Unifier(traces, sizes, count).run();
    return true;
  } catch (const TooFewTraces&) {
    return false;
  }
}

}  // namespace halftone
