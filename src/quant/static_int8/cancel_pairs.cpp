// cancel_pairs: integers that became floats only to become the same integers again.
#include "quant/static_int8/rewrites.h"

namespace halftone::static_int8 {
namespace {

/// Whether quantizing gives back exactly the integers that were there.
bool gives_back(const Quantized& quantized, const Dequantized& value, const TensorMap& constants) {
  if (!value.q->meta() || value.q->meta()->dtype != quantized.dtype || value.affine != quantized.affine)
    return false;
  const bool bytes = quantized.dtype == c10::ScalarType::Byte;
  if (quantized.least != (bytes ? 0 : -128)) return false;
  return bytes ? largest_integer(value.q, constants) <= quantized.largest : quantized.largest == 127;
}

}  // namespace

bool rewrite_cancel_pairs(LowerContext& context) {
  bool changed = false;
  for (Node* node : snapshot(context.graph)) {
    const auto quantized = try_quantized(*node);
    const auto value = quantized ? try_dequantized(try_tensor(*node, "x")) : std::nullopt;
    if (!value || !gives_back(*quantized, *value, context.constants)) continue;
    context.graph.replace_all_uses(node->output(), value->q);
    changed = true;
  }
  return changed;
}

}  // namespace halftone::static_int8
