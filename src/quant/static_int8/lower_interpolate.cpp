// interpolate: linear interpolation of one or two dimensions. Nearest only moves elements, see
// sink_dequantize.
#include "quant/static_int8/rewrites.h"

namespace halftone::static_int8 {
namespace {

bool lower_interpolate_node(Node& node, size_t dims, LowerContext& context) {
  // The two spellings of ATen name their operand differently.
  const Value* operand = try_tensor(node, "input");
  const auto x = try_dequantized(operand != nullptr ? operand : try_tensor(node, "self"));
  const auto aligned = try_flag(node, "align_corners");
  if (!x || !aligned) return false;
  if (!is_byte(x->q) || rank(x->q) != dims + 2) {
    context.refuse(node, "its input is not a batch of uint8 images");
    return false;
  }
  Argument::List size, scales;
  if (const Argument* given = node.try_input("output_size"); given != nullptr && given->list() != nullptr)
    size = *given->list();
  if (const Argument* given = node.try_input("scale_factors"); given != nullptr && given->list() != nullptr)
    scales = *given->list();
  for (const char* name : {"scales", "scales_h", "scales_w"}) {
    if (const auto scale = try_number(node, name)) scales.emplace_back(*scale);
  }
  if (scales.size() != dims) scales.clear();
  std::string why = "its size is not known";
  const auto epilogue =
      size.empty() && scales.empty() ? std::nullopt : try_quantized_epilogue(node.output(), why);
  if (!epilogue) {
    context.refuse(node, "{}", why);
    return false;
  }
  std::vector<NamedArgument> inputs = {{"x", x->q},
                                       {"output_size", std::move(size)},
                                       {"scales", std::move(scales)},
                                       {"mode", *aligned ? "linear-aligned" : "linear"},
                                       {"x_scale", static_cast<double>(x->affine.scale)},
                                       {"x_zero_point", x->affine.zero_point}};
  append_output(inputs, epilogue->quantized);
  replace_epilogue(*epilogue, "halftone::int8_interpolate", std::move(inputs), node.source());
  return true;
}

}  // namespace

bool rewrite_interpolate(LowerContext& context) {
  bool changed = false;
  for (Node* node : snapshot(context.graph)) {
    if (node->is("aten::upsample_bilinear2d") || node->is("aten::upsample_bilinear2d.vec"))
      changed = lower_interpolate_node(*node, 2, context) || changed;
    if (node->is("aten::upsample_linear1d") || node->is("aten::upsample_linear1d.vec"))
      changed = lower_interpolate_node(*node, 1, context) || changed;
  }
  return changed;
}

}  // namespace halftone::static_int8
