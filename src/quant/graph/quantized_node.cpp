#include "quant/graph/quantized_node.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/errors.h"

namespace halftone {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool flag(const Node& node, std::string_view name) {
  const Argument* given = node.try_input(name);
  const bool* value = given != nullptr ? given->get_if<bool>() : nullptr;
  return value != nullptr && *value;
}

int64_t number(const Node& node, std::string_view name, int64_t otherwise) {
  const Argument* given = node.try_input(name);
  return given != nullptr ? given->as_int().value_or(otherwise) : otherwise;
}

bool is_given(const Node& node, std::string_view name) {
  const Argument* argument = node.try_input(name);
  return argument != nullptr && !argument->is_none();
}

Granularity granularity(const Node& node) {
  return flag(node, "per_tensor") ? Granularity::kPerTensor : Granularity::kPerRow;
}

QuantConfig int8_config(const Node& node) {
  return Int8DynamicActivationInt8WeightConfig{flag(node, "symmetric_activations"),
                                               static_cast<int>(number(node, "weight_bits", 8))};
}

QuantConfig int4_config(const Node& node) {
  const auto activations =
      flag(node, "quantize_activations") ? Int4Activations::kInt8 : Int4Activations::kFloat;
  return Int4WeightOnlyConfig{static_cast<int>(number(node, "group_size", 32)), !is_given(node, "zero_point"),
                              activations};
}

QuantConfig fp8_config(const Node& node) {
  if (flag(node, "quantize_activations")) return Float8DynamicActivationFloat8WeightConfig{granularity(node)};
  return Float8WeightOnlyConfig{granularity(node)};
}

QuantConfig intx_config(const Node& node) {
  return IntxWeightOnlyConfig{static_cast<int>(number(node, "bits", 4)),
                              static_cast<int>(number(node, "group_size", 0)), !is_given(node, "zero_point")};
}

QuantConfig custom_config(const Node& node) {
  const Argument* config = node.try_input("config");
  const auto* json = config != nullptr ? config->get_if<std::string>() : nullptr;
  if (json == nullptr) fail(ErrorCode::kInvalidArgument, "its config is no constant string");
  return QuantConfig::from_json(*json);
}

QuantConfig int8wo_config(const Node&) {
  return Int8WeightOnlyConfig{};
}

QuantConfig bf16_config(const Node&) {
  return Bf16WeightOnlyConfig{};
}

struct Operator {
  std::string_view target;
  std::string_view kind;
  QuantConfig (*config)(const Node& node);
  int weights_per_column;  ///< k = this × the second size of "weight", where no operand says it
};

constexpr std::array<Operator, 11> kOperators = {{
    {"halftone::int8_weight_only_linear", "linear", int8wo_config, 1},
    {"halftone::int8_linear", "linear", int8_config, 1},
    {"halftone::int4_linear", "linear", int4_config, 2},
    {"halftone::fp8_linear", "linear", fp8_config, 1},
    {"halftone::bf16_linear", "linear", bf16_config, 1},
    {"halftone::intx_linear", "linear", intx_config, 0},
    {"halftone::custom_linear", "linear", custom_config, 0},
    {"halftone::restore_int8_weight", "convolution", int8wo_config, 1},
    {"halftone::int8_embedding", "embedding", int8wo_config, 1},
    {"halftone::int4_embedding", "embedding", int4_config, 2},
    {"halftone::bf16_embedding", "embedding", bf16_config, 1},
}};

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
  layer.k = number(node, "in_features", 0);
  if (layer.k == 0) {
    layer.k = op.weights_per_column;
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
  const auto op = std::find_if(kOperators.begin(), kOperators.end(),
                               [&](const Operator& one) { return node.is(one.target); });
  if (op == kOperators.end()) return std::nullopt;
  const Value* weight = first_part(node);
  if (weight == nullptr) fail(ErrorCode::kInvalidArgument, "{}: has no weight", node.target());
  try {
    return QuantizedNode{describe_layer(*op, node, *weight), op->config(node), weight};
  } catch (const Error& error) {
    throw error.with_context(fmt::format("%{} ({})", node.output()->name(), node.target()));
  }
}

}  // namespace halftone
