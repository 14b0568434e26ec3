// Which nodes the compiler fuses with a site's linears. compiler/passes decides; this follows it.
#include <algorithm>
#include <set>

#include "compiler/passes/match.h"
#include "graph/operators/op_traits.h"
#include "tune/autoquant/problem.h"

namespace halftone::aq {
namespace {

class NeighbourFinder {
 public:
  NeighbourFinder(const Graph& graph, const Site& site) : graph_(graph), site_(site) {}

  Neighbourhood run() {
    take_before();
    for (const Node* linear : site_.linears) {
      take_reshapes_between(*linear);
      found_.insert(linear);
      ends_.push_back(take_activation(linear->output()));
    }
    take_gate();
    for (const Value* end : ends_) take_residual(end);
    Neighbourhood part;
    for (const auto& node : graph_.nodes()) {
      if (found_.contains(node.get())) part.nodes.push_back(node.get());
    }
    part.joined = can_join();
    part.maker = maker_;
    return part;
  }

 private:
  /// Whether a linear makes it, which takes the sum as its residual.
  static bool is_product(const Value* value) {
    const Node* maker = before_reshapes(value)->producer();
    return maker != nullptr && has_trait(*maker, OpTrait::kProduct);
  }

  /// A linear behind which these stand, with its activation.
  void take_maker() {
    const Node* activation = site_.x->producer();
    const bool is_activation = activation != nullptr && has_trait(*activation, OpTrait::kActivation);
    const Value* made = is_activation ? activation->input(0).value() : site_.x;
    if (made == nullptr || !is_product(made)) return;
    maker_ = before_reshapes(made)->producer();
    if (is_activation) found_.insert(activation);
  }

  /// The norm, which quantizes for the linears behind it, and the sum that it takes.
  void take_before() {
    const Node* norm = site_.x->producer();
    if (norm == nullptr || !has_trait(*norm, OpTrait::kNorm)) return take_maker();
    found_.insert(norm);
    const Value* x = try_tensor(*norm, "input");
    const Node* sum = x != nullptr ? try_producer(x, {"aten::add.Tensor"}) : nullptr;
    if (sum == nullptr) return;
    const Value *a = try_tensor(*sum, "self"), *b = try_tensor(*sum, "other");
    if (a != nullptr && b != nullptr && !is_product(a) && !is_product(b)) found_.insert(sum);
  }

  void take_reshapes_between(const Node& linear) {
    for (const Value* value = input_of(linear); value != site_.x; value = value->producer()->input(0).value())
      found_.insert(value->producer());
  }

  /// Follows reshapes to the next reader, if it is the only one; they are taken only if it is.
  static const Node* next_reader(const Value* value, std::vector<const Node*>& reshapes) {
    const Node* user = only_user(value);
    while (user != nullptr && has_trait(*user, OpTrait::kReshape)) {
      reshapes.push_back(user);
      user = only_user(user->output());
    }
    return user;
  }

  void take(const std::vector<const Node*>& reshapes, const Node* node) {
    found_.insert(reshapes.begin(), reshapes.end());
    found_.insert(node);
  }

  /// x · sigmoid(x).
  const Node* silu_spelled(const Value* y) {
    if (y->users().size() != 2) return nullptr;
    for (const Node* user : y->users()) {
      if (!user->is("aten::sigmoid")) continue;
      const Node* product = only_user(user->output());
      if (product == nullptr || !product->is("aten::mul.Tensor")) return nullptr;
      const auto values = product->input_values();
      if (std::find(values.begin(), values.end(), y) == values.end()) return nullptr;
      found_.insert(user);
      return product;
    }
    return nullptr;
  }

  const Value* take_activation(const Value* y) {
    std::vector<const Node*> reshapes;
    const Node* user = next_reader(y, reshapes);
    if (user == nullptr && reshapes.empty())
      user = silu_spelled(y);
    else if (user == nullptr || !has_trait(*user, OpTrait::kActivation))
      return y;
    if (user == nullptr) return y;
    take(reshapes, user);
    return user->output();
  }

  /// silu(gate) · up.
  void take_gate() {
    if (ends_.size() != 2) return;
    const Node *a = only_user(ends_[0]), *b = only_user(ends_[1]);
    if (a == nullptr || a != b || !a->is("aten::mul.Tensor")) return;
    found_.insert(a);
    ends_ = {a->output()};
  }

  void take_residual(const Value* y) {
    std::vector<const Node*> reshapes;
    const Node* user = next_reader(y, reshapes);
    if (user == nullptr || !user->is("aten::add.Tensor")) return;
    const Value *a = try_tensor(*user, "self"), *b = try_tensor(*user, "other");
    if (a == nullptr || b == nullptr || a == b || !compiler::same_sizes(a, b)) return;
    take(reshapes, user);
  }

  bool can_join() const {
    if (site_.linears.size() < 2) return false;
    const Value* x = input_of(*site_.linears.front());
    for (size_t i = 0; i < site_.linears.size(); ++i) {
      const Node& linear = *site_.linears[i];
      if (!linear.is("aten::linear") || input_of(linear) != x || ends_.size() != site_.linears.size() ||
          ends_[i] != linear.output())
        return false;
      const Node* user = only_user(linear.output());
      if (user != nullptr && found_.contains(user)) return false;  // a residual
    }
    return true;
  }

  const Graph& graph_;
  const Site& site_;
  std::set<const Node*> found_;
  const Node* maker_ = nullptr;
  std::vector<const Value*> ends_;  ///< of each linear: behind its activation
};

}  // namespace

Neighbourhood neighbourhood_of(const Graph& graph, const Site& site) {
  return NeighbourFinder(graph, site).run();
}

}  // namespace halftone::aq
