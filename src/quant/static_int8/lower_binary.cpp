// binary: sums and products of two dequantized tensors.
#include "quant/static_int8/rewrites.h"

namespace halftone::static_int8 {
namespace {

bool lower_binary_node(Node& node, LowerContext& context) {
  const bool add = node.is("aten::add.Tensor");
  const auto a = try_dequantized(try_tensor(node, "self")), b = try_dequantized(try_tensor(node, "other"));
  if (!a || !b) {
    // One dequantized operand and a number: a function of one element, for another rewrite.
    if ((a || b) && try_tensor(node, "other") != nullptr)
      context.refuse(node, "only one of its operands is quantized");
    return false;
  }
  if (!is_byte(a->q) || !is_byte(b->q)) {
    context.refuse(node, "its operands are int8, and kernels take uint8");
    return false;
  }
  if (add && try_number(node, "alpha").value_or(1) != 1) {
    context.refuse(node, "its alpha is not 1");
    return false;
  }
  std::string why;
  const auto epilogue = try_quantized_epilogue(node.output(), why);
  if (!epilogue) {
    context.refuse(node, "{}", why);
    return false;
  }
  std::vector<NamedArgument> inputs = {{"a", a->q},
                                       {"b", b->q},
                                       {"a_scale", static_cast<double>(a->affine.scale)},
                                       {"a_zero_point", a->affine.zero_point},
                                       {"b_scale", static_cast<double>(b->affine.scale)},
                                       {"b_zero_point", b->affine.zero_point}};
  append_output(inputs, epilogue->quantized);
  replace_epilogue(*epilogue, add ? "halftone::int8_add" : "halftone::int8_mul", std::move(inputs),
                   node.source());
  return true;
}

}  // namespace

bool rewrite_binary(LowerContext& context) {
  bool changed = false;
  for (Node* node : snapshot(context.graph)) {
    if (node->is("aten::add.Tensor") || node->is("aten::mul.Tensor"))
      changed = lower_binary_node(*node, context) || changed;
  }
  return changed;
}

}  // namespace halftone::static_int8
