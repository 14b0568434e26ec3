// cat: parts that have scales of their own.
#include "quant/static_int8/rewrites.h"

namespace halftone::static_int8 {
namespace {

bool lower_cat_node(Node& node, LowerContext& context) {
  const Argument* operand = node.try_input("tensors");
  const auto dim = try_number(node, "dim");
  if (operand == nullptr || operand->list() == nullptr || !dim) return false;
  Argument::List parts, scales, zero_points;
  for (const Argument& item : *operand->list()) {
    const auto part = try_dequantized(item.value());
    if (!part || !is_byte(part->q)) {
      if (!parts.empty() || part) context.refuse(node, "not all of its parts are quantized to uint8");
      return false;
    }
    parts.emplace_back(part->q);
    scales.emplace_back(static_cast<double>(part->affine.scale));
    zero_points.emplace_back(part->affine.zero_point);
  }
  std::string why;
  const auto epilogue = try_quantized_epilogue(node.output(), why);
  if (!epilogue) {
    context.refuse(node, "{}", why);
    return false;
  }
  std::vector<NamedArgument> inputs = {{"tensors", std::move(parts)},
                                       {"dim", static_cast<int64_t>(*dim)},
                                       {"scales", std::move(scales)},
                                       {"zero_points", std::move(zero_points)}};
  append_output(inputs, epilogue->quantized);
  replace_epilogue(*epilogue, "halftone::int8_cat", std::move(inputs), node.source());
  return true;
}

}  // namespace

bool rewrite_cat(LowerContext& context) {
  bool changed = false;
  for (Node* node : snapshot(context.graph)) {
    if (node->is("aten::cat")) changed = lower_cat_node(*node, context) || changed;
  }
  return changed;
}

}  // namespace halftone::static_int8
