// channels_last: halftone::conv gives its result with the channels last, and a copy behind it makes that
// contiguous again (fuse_conv). Here those copies move down the graph: through operators that work in either
// layout and keep it, past those that do not show it, and away where the next convolution reads. What is left
// stands before results and before operators that this pass does not know.
#include "compiler/passes/alias.h"
#include "compiler/passes/match.h"
#include "graph/operators/op_traits.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

enum class Passage {
  kPointwise,  ///< element by element, operands broadcast
  kWindow,     ///< reads its first tensor, and the result has that one's layout (in one dimension only the
               ///< executor's has; ATen's is contiguous, and as right)
  kCat,        ///< all tensors of its list
  kReduction,  ///< over all spatial dimensions: the layout is gone
};

std::optional<Passage> try_passage(const Node& node) {
  const OpTraits traits = traits_of(node.target());
  if (!traits.any_of(OpTrait::kChannelsLast)) return std::nullopt;
  if (traits.any_of(OpTrait::kElementwise)) return Passage::kPointwise;
  if (traits.any_of(OpTrait::kWindow)) return Passage::kWindow;
  if (traits.any_of(OpTrait::kConcatenates)) return Passage::kCat;
  return traits.any_of(OpTrait::kReduces) ? std::optional(Passage::kReduction) : std::nullopt;
}

/// What a copy that makes contiguous reads, where that has its channels last; nullptr for all else.
Value* try_source(const Value* value) {
  const Node* copy = try_producer(value, {"aten::contiguous"});
  if (copy == nullptr || !is_absent(*copy, "memory_format")) return nullptr;
  Value* source = try_tensor(*copy, "self");
  return source != nullptr && is_channels_last(source) ? source : nullptr;
}

/// Results of these lie in memory the same way however their operands do.
bool shows_no_strides(const Node& node) {
  return node.is("aten::layer_norm") || node.is("aten::linear") || node.is("halftone::conv");
}

class LayoutMover {
 public:
  explicit LayoutMover(PassContext& context) : context_(context), aliases_(context.graph) {}

  bool run() {
    size_t moved = 0;
    for (Node* node : snapshot(context_.graph)) moved += try_move(*node) ? 1 : 0;
    if (moved > 0) context_.note("{}", counted(moved, "operator"));
    return moved > 0;
  }

 private:
  bool try_move(Node& node) {
    if (node.is("halftone::conv")) return read_source(node, "x");
    if (node.is("aten::permute") || node.is("aten::transpose.int")) return try_permute(node);
    if (node.is("aten::flatten.using_ints") || node.is("aten::view") || node.is("aten::reshape"))
      return try_rows(node);
    if (node.is("aten::select.int")) return try_select(node);
    const auto passage = node.op() != nullptr ? try_passage(node) : std::nullopt;
    if (!passage || !is_plain(node)) return false;
    switch (*passage) {
      case Passage::kPointwise:
        return try_pointwise(node);
      case Passage::kWindow:
        return try_window(node);
      case Passage::kCat:
        return try_cat(node);
      case Passage::kReduction:
        return try_reduction(node);
    }
    return false;
  }

  /// One result that counts and is not written to, and no other effect (batch norm in training has one).
  bool is_plain(const Node& node) const {
    if (has_side_effects(node) || node.outputs().empty() || !node.output()->meta() ||
        aliases_.is_written(node.output()))
      return false;
    for (size_t i = 1; i < node.outputs().size(); ++i) {
      if (!node.output(i)->users().empty()) return false;
    }
    return node.output()->type() == ValueType::kTensor;
  }

  static bool read_source(Node& node, std::string_view name) {
    Value* source = try_source(try_tensor(node, name));
    if (source == nullptr) return false;
    set_operand(node, name, source);
    return true;
  }

  /// Whether some user would have to turn the value around again.
  static bool goes_on(const Value* value) {
    const auto& users = value->users();
    return std::any_of(users.begin(), users.end(), [](const Node* user) {
      return user->is("halftone::conv") || (user->op() != nullptr && try_passage(*user));
    });
  }

  /// A value of `like`'s sizes with its channels last: what it was copied from, or a copy.
  Argument turned(Value* value, Node& before) {
    if (Value* source = try_source(value)) return source;
    if (is_channels_last(value)) return value;
    const auto format =
        rank(value) == 4 ? c10::MemoryFormat::ChannelsLast : c10::MemoryFormat::ChannelsLast3d;
    return context_.graph
        .insert(&before, "aten::contiguous", {{"self", value}, {"memory_format", format}},
                {{value->name() + "_last", ValueType::kTensor,
                  channels_last_meta(value->meta()->dtype, value->meta()->sizes)}},
                before.source())
        ->output();
  }

  /// The node with these inputs, its result with the channels last and copied back for those who read it.
  void replace(Node& node, std::vector<NamedArgument> inputs) {
    Value* y = node.output();
    const TensorMeta& meta = *y->meta();
    std::vector<OutputSpec> outputs = {
        {y->name() + "_last", ValueType::kTensor, channels_last_meta(meta.dtype, meta.sizes)}};
    for (size_t i = 1; i < node.outputs().size(); ++i)
      outputs.push_back({node.output(i)->name(), node.output(i)->type(), node.output(i)->meta()});
    Node* moved =
        context_.graph.insert(&node, node.target(), std::move(inputs), std::move(outputs), node.source());
    replace_value(y, &node, "aten::contiguous", {{"self", moved->output()}}, {}, node.source());
  }

  bool try_pointwise(Node& node) {
    Value* y = node.output();
    if (!is_contiguous(y) || rank(y) < 3 || rank(y) > 5) return false;
    bool found = false, others = false;
    for (const NamedArgument& input : node.inputs()) {
      Value* operand = input.value.value();
      if (operand == nullptr || operand->type() != ValueType::kTensor || !operand->meta()) continue;
      if (!same_sizes(operand, y)) continue;
      (try_source(operand) != nullptr ? found : others) = true;
    }
    if (!found || (others && (rank(y) == 3 || !goes_on(y)))) return false;
    std::vector<NamedArgument> inputs = node.inputs();
    for (NamedArgument& input : inputs) {
      Value* operand = input.value.value();
      if (operand == nullptr || operand->type() != ValueType::kTensor || !operand->meta()) continue;
      if (same_sizes(operand, y)) input.value = turned(operand, node);
    }
    replace(node, std::move(inputs));
    return true;
  }

  bool try_window(Node& node) {
    std::vector<NamedArgument> inputs = node.inputs();
    Value* source = try_source(inputs.front().value.value());
    if (source == nullptr || !is_contiguous(node.output()) || rank(source) != rank(node.output()))
      return false;
    inputs.front().value = source;
    replace(node, std::move(inputs));
    return true;
  }

  bool try_cat(Node& node) {
    const Argument::List* list = node.input(0).list();
    if (list == nullptr || !is_contiguous(node.output()) || rank(node.output()) < 4) return false;
    size_t found = 0;
    for (const Argument& item : *list) {
      if (item.value() == nullptr || rank(item.value()) != rank(node.output())) return false;
      found += try_source(item.value()) != nullptr ? 1 : 0;
    }
    if (found == 0 || (found < list->size() && !goes_on(node.output()))) return false;
    Argument::List parts;
    for (const Argument& item : *list) parts.push_back(turned(item.value(), node));
    std::vector<NamedArgument> inputs = node.inputs();
    inputs.front().value = std::move(parts);
    replace(node, std::move(inputs));
    return true;
  }

  static bool try_reduction(Node& node) {
    const Value* x = try_tensor(node, "self");
    const auto dims = try_integers(node, "dim");
    if (x == nullptr || !dims || try_source(x) == nullptr || !is_contiguous(node.output())) return false;
    std::vector<bool> reduced(rank(x), false);
    for (const int64_t dim : *dims) reduced[static_cast<size_t>(positive_dim(dim, rank(x)))] = true;
    if (reduced[0] || reduced[1] || std::count(reduced.begin() + 2, reduced.end(), false) != 0) return false;
    return read_source(node, "self");
  }

  static bool strides_are_not_shown(const Value* value) {
    const auto& users = value->users();
    return std::all_of(users.begin(), users.end(), [](const Node* user) { return shows_no_strides(*user); });
  }

  static std::vector<size_t> order_of(const Node& node, size_t rank) {
    std::vector<size_t> order(rank);
    for (size_t i = 0; i < rank; ++i) order[i] = i;
    if (node.is("aten::permute")) {
      const auto dims = try_integers(node, "dims");
      if (!dims || dims->size() != rank) return {};
      for (size_t i = 0; i < rank; ++i) order[i] = static_cast<size_t>(positive_dim((*dims)[i], rank));
      return order;
    }
    const auto a = try_number(node, "dim0"), b = try_number(node, "dim1");
    if (!a || !b) return {};
    std::swap(order[static_cast<size_t>(positive_dim(static_cast<int64_t>(*a), rank))],
              order[static_cast<size_t>(positive_dim(static_cast<int64_t>(*b), rank))]);
    return order;
  }

  /// A view of the source of the copy has other strides: only if no reader depends on them.
  bool try_permute(Node& node) {
    Value* source = try_source(try_tensor(node, "self"));
    if (source == nullptr || aliases_.is_written(node.output()) || !strides_are_not_shown(node.output()))
      return false;
    const std::vector<size_t> order = order_of(node, rank(source));
    if (order.empty()) return false;
    TensorMeta meta = *node.output()->meta();
    meta.strides.clear();
    for (const size_t i : order) meta.strides.push_back(source->meta()->strides[i]);
    set_operand(node, "self", source);
    node.output()->set_meta(std::move(meta));
    return true;
  }

  /// [n, c, h, w] → [n, c, h·w] → [n, h·w, c]: the first is a view in this layout too, the second contiguous.
  bool try_rows(Node& node) {
    Value* source = try_source(try_tensor(node, "self"));
    Value* flat = node.output();
    if (source == nullptr || rank(flat) != 3 || aliases_.is_written(flat)) return false;
    const auto &before = source->meta()->sizes, &after = flat->meta()->sizes;
    if (!same(before[0], after[0]) || !same(before[1], after[1])) return false;
    for (const Node* user : flat->users()) {
      const bool turns = user->is("aten::permute") || user->is("aten::transpose.int");
      if (!turns || order_of(*user, 3) != std::vector<size_t>{0, 2, 1}) return false;
      if (aliases_.is_written(user->output()) || !strides_are_not_shown(user->output())) return false;
    }
    Node* moved = replace_value(flat, &node, "aten::flatten.using_ints", {{"self", source}, {"start_dim", 2}},
                                {}, node.source());
    moved->output()->set_meta(channels_last_meta(source->meta()->dtype, moved->output()->meta()->sizes));
    for (Node* user : moved->output()->users())
      user->output()->set_meta(contiguous_meta(source->meta()->dtype, user->output()->meta()->sizes));
    return true;
  }

  bool try_select(Node& node) {
    Value* source = try_source(try_tensor(node, "self"));
    const auto dim = try_number(node, "dim");
    if (source == nullptr || !dim || aliases_.is_written(node.output()) ||
        !strides_are_not_shown(node.output()))
      return false;
    TensorMeta meta = *node.output()->meta();
    meta.strides = source->meta()->strides;
    meta.strides.erase(meta.strides.begin() + positive_dim(static_cast<int64_t>(*dim), rank(source)));
    set_operand(node, "self", source);
    node.output()->set_meta(std::move(meta));
    return true;
  }

  PassContext& context_;
  AliasSets aliases_;
};

}  // namespace

bool rewrite_channels_last(PassContext& context) {
  return LayoutMover(context).run();
}

}  // namespace halftone::compiler
