#include "quant/graph/match_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace halftone {
namespace {

const Value* value_of(const Node& node, std::string_view name) {
  const Argument* argument = node.try_input(name);
  return argument != nullptr ? argument->value() : nullptr;
}

/// Whether a constant number operand is 1, which is also the default of those asked for here.
bool is_one(const Node& node, std::string_view name) {
  const Argument* argument = node.try_input(name);
  if (argument == nullptr) return true;
  if (const double* number = argument->get_if<double>()) return *number == 1.0;
  return argument->as_int() == 1;
}

/// Whether an integer, a list of integers, or nothing given, is `wanted` throughout.
bool is_all(const Node& node, std::string_view name, int64_t wanted) {
  const Argument* argument = node.try_input(name);
  if (argument == nullptr) return true;
  if (const auto* list = argument->list()) {
    return std::all_of(list->begin(), list->end(),
                       [&](const Argument& item) { return item.as_int() == wanted; });
  }
  return argument->as_int() == wanted;
}

MatchedLayer spell_addmm(const Node& node) {
  MatchedLayer matched{LinearForm::kAddmm, "linear", value_of(node, "mat2"), true, {}};
  if (!is_one(node, "beta") || !is_one(node, "alpha"))
    matched.obstacle = "addmm with beta or alpha other than 1";
  return matched;
}

bool is_transposed(const Node& node) {
  const Argument* transposed = node.try_input("transposed");
  return transposed != nullptr && transposed->get_if<bool>() != nullptr && *transposed->get_if<bool>();
}

/// "a convolution of kernel 3 x 3"
std::string describe_kernel(const TensorMeta& weight) {
  std::string sizes;
  for (size_t i = 2; i < weight.sizes.size(); ++i)
    sizes += (sizes.empty() ? "" : " x ") + weight.sizes[i].to_string();
  return "a convolution of kernel " + sizes;
}

/// Why the convolution is not a linear over its channels, or "".
std::string not_a_linear(const Node& node, const TensorMeta& weight) {
  if (weight.sizes.size() != 3 || weight.sizes[2] != SymExpr(1)) return describe_kernel(weight);
  if (!is_all(node, "stride", 1)) return "a convolution with a stride";
  if (!is_all(node, "groups", 1)) return "a convolution with groups";
  // With kernel 1, padding by name ("same", "valid") pads nothing.
  if (!node.is("aten::conv1d.padding") && !is_all(node, "padding", 0)) return "a convolution with padding";
  return {};
}

std::optional<MatchedLayer> spell_conv(const Node& node) {
  const Value* weight = value_of(node, "weight");
  if (weight == nullptr || !weight->meta() || weight->meta()->sizes.size() < 3) return std::nullopt;
  if (is_transposed(node))
    return MatchedLayer{
        LinearForm::kConvolution, "convolution", weight, false, "a transposed convolution", {}};
  const std::string convolution = not_a_linear(node, *weight->meta());
  if (convolution.empty()) return MatchedLayer{LinearForm::kConv1d, "conv1d", weight, false, {}, {}};
  return MatchedLayer{LinearForm::kConvolution, "convolution", weight, false, {}, convolution};
}

bool is_parameter(const Value* value) {
  return value != nullptr && value->producer() == nullptr &&
         value->graph().inputs()[value->index()].kind == InputKind::kParameter;
}

/// W · x: a parameter on the left. Only reported, and only for parameters: tables of positions stand there
/// too.
std::optional<MatchedLayer> spell_left(const Node& node, std::string_view left, std::string_view right) {
  const Value* weight = value_of(node, left);
  if (!is_parameter(weight) || is_parameter(value_of(node, right))) return std::nullopt;
  return MatchedLayer{LinearForm::kMatmul, "linear", weight, false, "its weight is the left operand"};
}

std::optional<MatchedLayer> spell_einsum(const Node& node) {
  for (const Value* value : node.input_values()) {
    if (is_parameter(value))
      return MatchedLayer{LinearForm::kMatmul, "linear", value, false, "einsum is not looked into"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<MatchedLayer> try_match_layer(const Node& node) {
  if (node.is("aten::linear"))
    return MatchedLayer{LinearForm::kLinear, "linear", value_of(node, "weight"), false, {}};
  if (node.is("aten::addmm")) {
    if (auto left = spell_left(node, "mat1", "mat2")) return left;
    return spell_addmm(node);
  }
  if (node.is("aten::mm") || node.is("aten::bmm")) {
    if (auto left = spell_left(node, "self", "mat2")) return left;
    return MatchedLayer{LinearForm::kMatmul, "linear", value_of(node, "mat2"), true, {}};
  }
  if (node.is("aten::matmul")) {
    if (auto left = spell_left(node, "self", "other")) return left;
    return MatchedLayer{LinearForm::kMatmul, "linear", value_of(node, "other"), true, {}};
  }
  constexpr std::array<std::string_view, 7> kConvolutions = {
      "aten::conv1d",         "aten::conv2d",         "aten::conv3d",     "aten::conv1d.padding",
      "aten::conv2d.padding", "aten::conv3d.padding", "aten::convolution"};
  if (std::find(kConvolutions.begin(), kConvolutions.end(), node.target()) != kConvolutions.end())
    return spell_conv(node);
  if (node.is("aten::embedding"))
    return MatchedLayer{LinearForm::kEmbedding, "embedding", value_of(node, "weight"), false, {}};
  if (node.is("aten::einsum")) return spell_einsum(node);
  constexpr std::array<std::string_view, 4> kBags = {"aten::embedding_bag", "aten::embedding_bag.padding_idx",
                                                     "aten::_embedding_bag",
                                                     "aten::_embedding_bag_forward_only"};
  if (std::find(kBags.begin(), kBags.end(), node.target()) != kBags.end()) {
    return MatchedLayer{LinearForm::kEmbedding, "embedding", value_of(node, "weight"), false,
                        "embedding_bag has no quantized kernel"};
  }
  return std::nullopt;
}

}  // namespace halftone
