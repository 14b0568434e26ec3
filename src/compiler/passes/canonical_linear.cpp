// canonical_linear: addmm, mm, matmul and bmm with a weight that is a matrix become aten::linear; a bias that
// is added afterwards becomes the linear's; rows that were flattened for it, or for a quantized one, are not.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/t.h>

#include <algorithm>

#include "compiler/ops/formats.h"
#include "compiler/passes/alias.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/view_chains.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

class LinearFinder {
 public:
  explicit LinearFinder(PassContext& context)
      : context_(context), constants_(context), aliases_(context.graph) {}

  bool run() {
    size_t products = 0, biases = 0, unflattened = 0;
    for (Node* node : snapshot(context_.graph)) products += try_product(*node) ? 1 : 0;
    for (Node* node : snapshot(context_.graph)) biases += try_bias(*node) ? 1 : 0;
    for (Node* node : snapshot(context_.graph)) unflattened += try_unflatten(*node) ? 1 : 0;
    if (products + biases + unflattened == 0) return false;
    collapse_views(context_.graph);
    context_.note("{}, {} with a bias, {}", counted(products, "product"), biases,
                  counted(unflattened, "flattened input"));
    return true;
  }

 private:
  // W [n, k] where `value` is Wᵀ, perhaps repeated for a batch; nullptr if it is none.
  Value* try_transposed(Value* value) {
    if (value == nullptr || aliases_.is_written(value)) return nullptr;
    if (Node* expand = try_producer(value, {"aten::expand", "aten::expand_copy"})) {
      Value* matrix = try_tensor(*expand, "self");
      return matrix != nullptr && rank(matrix) == 2 && rank(value) == 3 ? try_transposed(matrix) : nullptr;
    }
    if (rank(value) != 2) return nullptr;
    if (Node* turn =
            try_producer(value, {"aten::t", "aten::t_copy", "aten::numpy_T", "aten::transpose.int",
                                 "aten::transpose_copy.int", "aten::permute", "aten::permute_copy"})) {
      return swaps_both(*turn) ? try_tensor(*turn, turn->inputs().front().name) : nullptr;
    }
    const at::Tensor tensor = constants_.tensor(value);
    if (!tensor.defined() || !tensor.is_floating_point()) return nullptr;
    auto& known = transposed_[value];
    if (known == nullptr) known = constants_.add(value->name() + "_t", at::t(tensor).contiguous());
    return known;
  }

  static bool swaps_both(const Node& turn) {
    if (const auto dims = try_integers(turn, "dims")) {
      return dims->size() == 2 && positive_dim((*dims)[0], 2) == 1 && positive_dim((*dims)[1], 2) == 0;
    }
    if (turn.try_input("dim0") == nullptr) return true;
    const auto a = try_number(turn, "dim0"), b = try_number(turn, "dim1");
    return a && b && positive_dim(static_cast<int64_t>(*a), 2) != positive_dim(static_cast<int64_t>(*b), 2);
  }

  // Plain or quantized.
  static bool is_any_linear(const Node& node) {
    return node.op() != nullptr && try_fused_format_of(node.target()) != nullptr;
  }

  // The operands in the schema's order, which the text form relies on.
  static std::vector<NamedArgument> with_bias(const Node& linear, Value* bias) {
    std::vector<NamedArgument> operands;
    for (const c10::Argument& each : linear.op()->schema().arguments()) {
      if (each.name() == "bias") {
        operands.push_back({"bias", bias});
      } else if (const Argument* given = linear.try_input(each.name())) {
        operands.push_back({each.name(), *given});
      }
    }
    return operands;
  }

  struct Product {
    Value *x = nullptr, *second = nullptr, *bias = nullptr;
  };

  std::optional<Product> try_parts(const Node& node) {
    if (node.is("aten::addmm")) {
      Product product{try_tensor(node, "mat1"), try_tensor(node, "mat2"), try_tensor(node, "self")};
      if (product.bias == nullptr || rank(product.bias) != 1 || product.x == nullptr ||
          product.second == nullptr || try_number(node, "alpha") != 1.0 || try_number(node, "beta") != 1.0) {
        context_.note("%{} keeps addmm: its bias is no row, or it is scaled", node.output()->name());
        return std::nullopt;
      }
      const auto& sizes = product.second->meta();
      const bool fits = sizes && same(sizes->sizes.back(), product.bias->meta()->sizes[0]);
      return fits ? std::optional(product) : std::nullopt;
    }
    if (node.is("aten::mm") || node.is("aten::bmm"))
      return Product{try_tensor(node, "self"), try_tensor(node, "mat2")};
    if (node.is("aten::matmul")) {
      const Product product{try_tensor(node, "self"), try_tensor(node, "other")};
      if (product.x != nullptr && product.second != nullptr && rank(product.x) >= 2 &&
          rank(product.second) == 2)
        return product;
    }
    return std::nullopt;
  }

  bool try_product(Node& node) {
    if (node.outputs().size() != 1 || !node.output()->meta()) return false;
    const auto product = try_parts(node);
    if (!product || product->x == nullptr || product->second == nullptr) return false;
    if (!product->x->meta() || !c10::isFloatingType(product->x->meta()->dtype) ||
        aliases_.is_written(product->x))
      return false;
    Value* weight = try_transposed(product->second);
    if (weight == nullptr || rank(weight) != 2) return false;
    replace_value(node.output(), &node, "aten::linear",
                  {{"input", product->x}, {"weight", weight}, {"bias", optional_tensor(product->bias)}}, {},
                  node.source());
    return true;
  }

  bool try_bias(Node& node) {
    if (!node.is("aten::add.Tensor") || try_number(node, "alpha") != 1.0) return false;
    for (const auto& [mine, other] : {std::pair("self", "other"), std::pair("other", "self")}) {
      Value *y = try_tensor(node, mine), *bias = try_tensor(node, other);
      Node* linear = y != nullptr ? y->producer() : nullptr;
      if (linear == nullptr || !is_any_linear(*linear) || bias == nullptr || !is_absent(*linear, "bias") ||
          only_user(y) != &node)
        continue;
      const bool fits = rank(bias) == 1 && bias->meta()->dtype == y->meta()->dtype &&
                        same_sizes(y, node.output()) && same(bias->meta()->sizes[0], y->meta()->sizes.back());
      if (!fits || aliases_.is_written(bias) || aliases_.is_written(y)) continue;
      replace_value(node.output(), &node, linear->target(), with_bias(*linear, bias), {}, linear->source());
      return true;
    }
    return false;
  }

  // linear(flatten(x)) → flatten(linear(x)): what unflattens the result then meets the flattening, and both
  // go. Quantized linears work row by row as well.
  bool try_unflatten(Node& node) {
    if (!is_any_linear(node) || node.output()->users().empty()) return false;
    Value* flat = try_tensor(node, node.inputs().front().name);
    Node* view =
        try_producer(flat, {"aten::view", "aten::_unsafe_view", "aten::reshape", "aten::flatten.using_ints"});
    Value* x = view != nullptr ? try_tensor(*view, "self") : nullptr;
    if (x == nullptr || rank(flat) != 2 || rank(x) < 3 || aliases_.is_written(x)) return false;
    if (!same(x->meta()->sizes.back(), flat->meta()->sizes.back()) || !is_contiguous(node.output()))
      return false;
    const auto outputs = node.output()->meta()->sizes.back().as_constant();
    if (!outputs || *outputs == 0) return false;
    std::vector<SymExpr> sizes = x->meta()->sizes;
    sizes.back() = *outputs;
    std::vector<NamedArgument> operands = node.inputs();
    operands.front().value = x;
    Node* linear = context_.graph.insert(&node, node.target(), std::move(operands),
                                         {{node.output()->name() + "_rows", ValueType::kTensor,
                                           contiguous_meta(node.output()->meta()->dtype, sizes)}},
                                         node.source());
    replace_value(node.output(), &node, "aten::view",
                  {{"self", linear->output()}, {"size", Argument::List{int64_t{-1}, *outputs}}}, {},
                  node.source());
    return true;
  }

  PassContext& context_;
  Constants constants_;
  AliasSets aliases_;
  std::map<const Value*, Value*> transposed_;
};

}  // namespace

bool rewrite_canonical_linear(PassContext& context) {
  return LinearFinder(context).run();
}

}  // namespace halftone::compiler
