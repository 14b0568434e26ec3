// fix_strides: integers of images lie channels last, which the reference graph did not know.
#include <set>
#include <unordered_set>

#include "quant/static_int8/rewrites.h"

namespace halftone::static_int8 {
namespace {

bool writes_channels_last(const Node& node) {
  static const std::set<std::string_view> targets = {
      "halftone::int8_conv",        "halftone::int8_max_pool",
      "halftone::int8_avg_pool",    "halftone::int8_adaptive_avg_pool",
      "halftone::int8_interpolate", "halftone::int8_cat"};
  return targets.contains(node.target());
}

/// Results lie as the first operand does.
bool keeps_layout(const Node& node) {
  static const std::set<std::string_view> targets = {"halftone::int8_add", "halftone::int8_mul",
                                                     "halftone::int8_lookup", "halftone::quantize_per_tensor",
                                                     "halftone::dequantize_per_tensor"};
  return targets.contains(node.target());
}

bool is_row_major(const Node& node) {
  return node.is("halftone::int8_static_linear") || node.is("aten::linear") || node.is("aten::contiguous");
}

void set_strides(Value* value, std::vector<SymExpr> strides) {
  if (!value->meta()) return;
  TensorMeta meta = *value->meta();
  meta.strides = std::move(strides);
  value->set_meta(std::move(meta));
}

class Settler {
 public:
  explicit Settler(Graph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.return_node().inputs().size(); ++i) {
      const Value* value = graph.output_value(i).value();
      if (value != nullptr && value->meta()) wanted_[value] = value->meta()->strides;
    }
  }

  bool run() {
    for (Node* node : snapshot(graph_)) visit(*node);
    return restore_results() || changed_;
  }

 private:
  void visit(Node& node) {
    if (writes_channels_last(node)) {
      const TensorMeta& meta = *node.output()->meta();
      const bool cat = node.is("halftone::int8_cat");  // lies as its parts do, below four dimensions
      if (!cat || meta.sizes.size() > 3) return move(node.output(), channels_last_strides(meta.sizes));
    }
    bool reads_moved = false;
    for (const Value* input : node.input_values()) reads_moved = reads_moved || moved_.contains(input);
    // Quantizing gives channels last or row-major, and of three dimensions only the latter.
    const bool rows = node.is("halftone::quantize_per_tensor") && rank(node.output()) == 3;
    if (!reads_moved || is_row_major(node) || rows) return;
    if (node.is("aten::view") || node.is("aten::_unsafe_view")) {
      replace_view(node);
    } else if (keeps_layout(node)) {
      const Value* first = node.input_values().front();
      const bool same =
          first->meta() && node.output()->meta() && first->meta()->sizes == node.output()->meta()->sizes;
      move(node.output(), same ? first->meta()->strides : std::vector<SymExpr>{});
    } else {
      for (Value* output : node.outputs()) move(output, {});
    }
  }

  void move(Value* value, std::vector<SymExpr> strides) {
    if (value->type() == ValueType::kTensor && rank(value) < 2) return;
    moved_.insert(value);
    set_strides(value, std::move(strides));
    changed_ = true;
  }

  /// A view asks for strides that fit; a reshape copies where they do not.
  void replace_view(Node& node) {
    std::vector<NamedArgument> inputs = {{"self", node.input(0)}, {"shape", node.input(1)}};
    const auto wanted = wanted_.find(node.output());
    Node* reshape = insert_for(node.output(), &node, "aten::reshape", std::move(inputs),
                               node.output()->meta(), node.source());
    if (wanted != wanted_.end()) wanted_[reshape->output()] = wanted->second;
    move(reshape->output(), {});
  }

  /// Callers get the strides that the reference graph gave them.
  bool restore_results() {
    std::vector<Argument> results;
    bool restored = false;
    for (const NamedArgument& result : graph_.return_node().inputs()) {
      Value* value = result.value.value();
      const auto wanted = value != nullptr ? wanted_.find(value) : wanted_.end();
      if (wanted == wanted_.end() || !moved_.contains(value) || value->meta()->strides == wanted->second) {
        results.push_back(result.value);
        continue;
      }
      TensorMeta meta = *value->meta();
      meta.strides = wanted->second;
      Node* copy = graph_.append("aten::contiguous", {{"self", value}},
                                 {{value->name() + "_contiguous", ValueType::kTensor, meta}},
                                 value->producer()->source());
      results.emplace_back(copy->output());
      restored = true;
    }
    if (restored) graph_.set_outputs(std::move(results), graph_.outputs());
    return restored;
  }

  Graph& graph_;
  std::unordered_map<const Value*, std::vector<SymExpr>> wanted_;  ///< strides of the results
  std::unordered_set<const Value*> moved_;                         ///< no longer as the reference says
  bool changed_ = false;
};

}  // namespace

bool rewrite_fix_strides(LowerContext& context) {
  return Settler(context.graph).run();
}

}  // namespace halftone::static_int8
