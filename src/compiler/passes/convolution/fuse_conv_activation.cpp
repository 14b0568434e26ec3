// fuse_conv_activation: the activation of a convolution (with its residual) whose result has no other reader.
#include <limits>

#include "compiler/passes/alias.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

struct ConvActivationMatch {
  Value* result = nullptr;
  std::string_view name;
  double lo = 0, hi = 0;  ///< of "clamp"
};

// A bound that is absent bounds nothing; one that is computed: no match.
std::optional<double> try_bound(const Node& node, std::string_view name, double otherwise) {
  return is_absent(node, name) && !try_number(node, name) ? otherwise : try_number(node, name);
}

std::optional<ConvActivationMatch> try_clamp(const Node& node) {
  constexpr double kAll = std::numeric_limits<double>::infinity();
  if (node.is("aten::relu6")) return ConvActivationMatch{node.output(), "clamp", 0, 6};
  std::optional<double> lo, hi;
  if (node.is("aten::hardtanh")) {
    lo = try_number(node, "min_val");
    hi = try_number(node, "max_val");
  } else if (node.is("aten::clamp")) {
    lo = try_bound(node, "min", -kAll);
    hi = try_bound(node, "max", kAll);
  } else if (node.is("aten::clamp_min")) {
    lo = try_number(node, "min");
    hi = kAll;
  }
  // Crossed or NaN bounds are left to ATen.
  if (!lo || !hi || !(*lo <= *hi)) return std::nullopt;
  if (*lo == 0 && *hi == kAll) return ConvActivationMatch{node.output(), "relu"};
  return ConvActivationMatch{node.output(), "clamp", *lo, *hi};
}

// x · sigmoid(x) and x · hardsigmoid(x), as some models spell silu and hardswish.
std::optional<ConvActivationMatch> try_gate(const Value* y) {
  if (y->users().size() != 2) return std::nullopt;
  for (const Node* user : y->users()) {
    if (!user->is("aten::sigmoid") && !user->is("aten::hardsigmoid")) continue;
    Node* product = only_user(user->output());
    if (product == nullptr || !product->is("aten::mul.Tensor")) return std::nullopt;
    const Value *a = try_tensor(*product, "self"), *b = try_tensor(*product, "other");
    const bool both = (a == y && b == user->output()) || (b == y && a == user->output());
    if (both) return ConvActivationMatch{product->output(), user->is("aten::sigmoid") ? "silu" : "hardswish"};
  }
  return std::nullopt;
}

std::optional<ConvActivationMatch> try_conv_activation(const Value* y) {
  const Node* user = only_user(y);
  if (user == nullptr) return try_gate(y);
  if (user->op() == nullptr || user->outputs().empty()) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kPlain = {
      {{"aten::relu", "relu"},
       {"aten::silu", "silu"},
       {"aten::sigmoid", "sigmoid"},
       {"aten::hardswish", "hardswish"},
       {"aten::hardsigmoid", "hardsigmoid"}}};
  for (const auto& [target, name] : kPlain) {
    if (user->is(target)) return ConvActivationMatch{user->output(), name};
  }
  if (!user->is("aten::gelu")) return try_clamp(*user);
  const auto approximate = try_text(*user, "approximate");
  if (approximate == "none") return ConvActivationMatch{user->output(), "gelu"};
  if (approximate == "tanh") return ConvActivationMatch{user->output(), "gelu_tanh"};
  return std::nullopt;
}

}  // namespace

bool rewrite_fuse_conv_activation(PassContext& context) {
  const AliasSets aliases(context.graph);
  size_t fused = 0;
  for (Node* node : snapshot(context.graph)) {
    if (!node->is("halftone::conv") || try_text(*node, "activation") != "none") continue;
    const auto match = try_conv_activation(node->output());
    if (!match || aliases.is_written(match->result) || !is_float(match->result) ||
        !is_channels_last(match->result))
      continue;
    std::vector<NamedArgument> inputs = node->inputs();
    for (NamedArgument& input : inputs) {
      if (input.name == "activation") input.value = std::string(match->name);
    }
    if (match->name == "clamp") {
      inputs.push_back({"lo", match->lo});
      inputs.push_back({"hi", match->hi});
    }
    // The convolution takes the activation's place: it now gives what that gave.
    replace_value(match->result, match->result->producer(), node->target(), std::move(inputs), {},
                  node->source());
    ++fused;
  }
  if (fused > 0) context.note("{}", counted(fused, "activation"));
  return fused > 0;
}

}  // namespace halftone::compiler
