#include "quant/graph/quantized_node.h"

#include <algorithm>
#include <cctype>

#include "base/errors.h"
#include "quant/weight/linear_format.h"

namespace halftone {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// A format, and what the node is to it.
struct Operator {
  const LinearFormat* format = nullptr;
  std::string_view kind;
};

std::optional<Operator> try_format_operator(const Node& node) {
  for (const LinearFormat* format : linear_formats()) {
    if (node.is(format->target)) return Operator{format, "linear"};
    if (node.is(format->embedding)) return Operator{format, "embedding"};
    if (node.is(format->convolution)) return Operator{format, "convolution"};
  }
  return std::nullopt;
}

/// The weight's first tensor; custom_linear has a list of them.
const Value* first_part(const Node& node) {
  const Argument* weight = node.try_input("weight");
  if (weight == nullptr) weight = node.try_input("parts");
  if (weight == nullptr) return nullptr;
  if (const auto* list = weight->list()) return list->empty() ? nullptr : list->front().value();
  return weight->value();
}

/// Size `index` of the operand's metadata, 0 if it is not known.
int64_t size_of(const Value& value, size_t index) {
  if (!value.meta() || value.meta()->sizes.size() <= index || !value.meta()->sizes[index].is_constant())
    return 0;
  return value.meta()->sizes[index].constant();
}

LayerInfo describe_layer(const Operator& op, const Node& node, const Value& weight) {
  LayerInfo layer{.kind = std::string(op.kind)};
  const bool stored = weight.producer() == nullptr;
  layer.name = stored ? layer_of_tensor(weight.graph().inputs()[weight.index()].target) : node.source().layer;
  if (const Argument* sizes = node.try_input("sizes"); sizes != nullptr && sizes->list() != nullptr) {
    const auto& list = *sizes->list();
    if (list.size() == 2) {
      layer.n = list[0].as_int().value_or(0);
      layer.k = list[1].as_int().value_or(0);
    }
    return layer;
  }
  layer.n = size_of(weight, 0);
  layer.k = number_of(node, "in_features", 0);
  if (layer.k == 0) {
    layer.k = op.format->weights_per_column;
    for (size_t i = 1; weight.meta() && i < weight.meta()->sizes.size(); ++i) layer.k *= size_of(weight, i);
  }
  return layer;
}

}  // namespace

std::string part_name(std::string_view base, std::string_view part) {
  return fmt::format("{}:{}", base, part);
}

std::string layer_of_tensor(std::string_view target) {
  const auto cut_last = [&](bool only_numbers) {
    const size_t colon = target.rfind(':');
    if (colon != std::string_view::npos && (!only_numbers || is_number(target.substr(colon + 1))))
      target = target.substr(0, colon);
  };
  cut_last(false);
  cut_last(true);
  constexpr std::string_view kWeight = ".weight";
  if (target.ends_with(kWeight) && target.size() > kWeight.size()) target.remove_suffix(kWeight.size());
  return std::string(target);
}

bool is_static_int8_layer(const Node& node) {
  return node.is("halftone::int8_conv") || node.is("halftone::int8_static_linear");
}

std::optional<QuantizedNode> try_quantized_node(const Node& node) {
  const std::optional<Operator> op = try_format_operator(node);
  if (!op) return std::nullopt;
  const Value* weight = first_part(node);
  if (weight == nullptr) fail(ErrorCode::kInvalidArgument, "{}: has no weight", node.target());
  try {
    return QuantizedNode{describe_layer(*op, node, *weight), op->format->config(node), weight};
  } catch (const Error& error) {
    throw error.with_context(fmt::format("%{} ({})", node.output()->name(), node.target()));
  }
}

}  // namespace halftone
