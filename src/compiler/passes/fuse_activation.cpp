// fuse_activation: relu, gelu and silu (also spelled x · sigmoid(x)) of a linear whose result has no other
// reader.
#include "compiler/passes/alias.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

struct Activation {
  Value* result = nullptr;
  std::string_view name;
};

std::optional<Activation> try_silu_spelled(const Value* y) {
  if (y->users().size() != 2) return std::nullopt;
  for (const Node* user : y->users()) {
    if (!user->is("aten::sigmoid")) continue;
    Node* product = only_user(user->output());
    if (product == nullptr || !product->is("aten::mul.Tensor")) return std::nullopt;
    const Value *a = try_tensor(*product, "self"), *b = try_tensor(*product, "other");
    const bool both = (a == y && b == user->output()) || (b == y && a == user->output());
    if (both) return Activation{product->output(), "silu"};
  }
  return std::nullopt;
}

std::optional<Activation> try_activation(const Value* y) {
  const Node* user = only_user(y);
  if (user == nullptr) return try_silu_spelled(y);
  if (user->is("aten::relu")) return Activation{user->output(), "relu"};
  if (user->is("aten::silu")) return Activation{user->output(), "silu"};
  if (!user->is("aten::gelu")) return std::nullopt;
  const auto approximate = try_text(*user, "approximate");
  if (approximate == "none") return Activation{user->output(), "gelu"};
  if (approximate == "tanh") return Activation{user->output(), "gelu_tanh"};
  return std::nullopt;
}

}  // namespace

bool rewrite_fuse_activation(PassContext& context) {
  const AliasSets aliases(context.graph);
  size_t fused = 0;
  for (Node* node : snapshot(context.graph)) {
    if (!node->is("halftone::fused_linear") || try_text(*node, "activation") != "none" ||
        !is_absent(*node, "residual"))
      continue;
    const auto activation = try_activation(node->output());
    if (!activation || aliases.is_written(activation->result) || !is_float(activation->result)) continue;
    set_operand(*node, "activation", std::string(activation->name));
    // The linear takes the activation's place: it now gives what that gave.
    Node* moved = replace_value(
        activation->result, activation->result->producer(), node->target(), node->inputs(),
        quantized_specs(activation->result->name(), *node->output()->meta(), false), node->source());
    moved->output()->set_meta(node->output()->meta());
    ++fused;
  }
  if (fused > 0) context.note("{}", counted(fused, "activation"));
  return fused > 0;
}

}  // namespace halftone::compiler
