// Shared by the rewrites: the clamp and quantize nodes after a float, and the operator in their place.
#include <algorithm>
#include <limits>

#include "base/errors.h"
#include "graph/rewrite/stored_tensors.h"
#include "quant/static_int8/rewrites.h"

namespace halftone::static_int8 {
namespace {

struct Bounds {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

/// The bounds of a node that clamps; nothing if it does something else.
std::optional<Bounds> try_bounds(const Node& node) {
  Bounds bounds;
  if (node.is("aten::relu")) {
    bounds.low = 0;
  } else if (node.is("aten::relu6")) {
    bounds = {0, 6};
  } else if (node.is("aten::hardtanh")) {
    const auto low = try_number(node, "min_val"), high = try_number(node, "max_val");
    if (!low || !high) return std::nullopt;
    bounds = {static_cast<float>(*low), static_cast<float>(*high)};
  } else if (node.is("aten::clamp")) {
    const Argument *least = node.try_input("min"), *largest = node.try_input("max");
    const auto low = try_number(node, "min"), high = try_number(node, "max");
    if (least != nullptr && !least->is_none() && !low) return std::nullopt;
    if (largest != nullptr && !largest->is_none() && !high) return std::nullopt;
    if (low) bounds.low = static_cast<float>(*low);
    if (high) bounds.high = static_cast<float>(*high);
  } else {
    return std::nullopt;
  }
  return bounds.low <= bounds.high ? std::optional(bounds) : std::nullopt;
}

bool all_quantize_alike(const Value* value) {
  const auto first = value->users().empty() ? std::nullopt : try_quantized(*value->users().front());
  if (!first) return false;
  return std::all_of(value->users().begin(), value->users().end(),
                     [&](const Node* user) { return try_quantized(*user) == first; });
}

std::string readers_of(const Value* value) {
  if (value->users().empty()) return "its result is not read";
  const Node* first = value->users().front();
  for (const Node* user : value->users()) {
    if (!try_quantized(*user)) first = user;
  }
  if (first->is("return")) return "its result is a result of the model";
  if (try_quantized(*first)) return "its result is quantized in several ways";
  return fmt::format("its result is read as floats by {}", first->target());
}

}  // namespace

Value* LowerContext::add_constant(const std::string& hint, at::Tensor tensor) {
  std::string target = hint;
  const auto taken = [&](const std::string& name) {
    return std::any_of(graph.inputs().begin(), graph.inputs().end(),
                       [&](const GraphInput& input) { return input.target == name; });
  };
  // A search that began anew would ask for all names before: cubic time for a table in each layer.
  const auto [known, first] = suffixes.try_emplace(hint, 1);
  if (!first) target = fmt::format("{}_{}", hint, known->second++);
  while (taken(target)) target = fmt::format("{}_{}", hint, known->second++);
  std::string name = "c_" + target;
  std::replace(name.begin(), name.end(), '.', '_');
  Value* value = add_stored_input(graph, std::move(name), InputKind::kConstant, target, tensor);
  constants[target] = std::move(tensor);
  return value;
}

std::optional<QuantizedEpilogue> try_quantized_epilogue(const Value* value, std::string& why) {
  std::optional<Bounds> bounds;
  if (const Node* clamp = only_user(value)) {
    bounds = try_bounds(*clamp);
    if (bounds) value = clamp->output();
  }
  if (!all_quantize_alike(value)) {
    why = readers_of(value);
    return std::nullopt;
  }
  QuantizedEpilogue epilogue;
  epilogue.quantized = *try_quantized(*value->users().front());
  if (epilogue.quantized.dtype != c10::ScalarType::Byte) {
    why = "its result is int8, and kernels write uint8";
    return std::nullopt;
  }
  for (Node* user : value->users()) {
    if (std::find(epilogue.quantize.begin(), epilogue.quantize.end(), user) == epilogue.quantize.end())
      epilogue.quantize.push_back(user);
  }
  if (bounds) {
    // Quantizing never changes an order, so clamping the integers is the same as clamping the floats.
    epilogue.quantized.least = epilogue.quantized.quantize(bounds->low);
    epilogue.quantized.largest = epilogue.quantized.quantize(bounds->high);
  }
  return epilogue;
}

void append_output(std::vector<NamedArgument>& inputs, const Quantized& quantized) {
  inputs.push_back({"out_scale", static_cast<double>(quantized.affine.scale)});
  inputs.push_back({"out_zero_point", quantized.affine.zero_point});
  inputs.push_back({"out_min", quantized.least});
  inputs.push_back({"out_max", quantized.largest});
}

Node* replace_epilogue(const QuantizedEpilogue& epilogue, std::string_view target,
                       std::vector<NamedArgument> inputs, const Source& source) {
  Value* old_value = epilogue.quantize.front()->output();
  std::optional<TensorMeta> meta = old_value->meta();
  if (meta && meta->sizes.size() >= 3) meta->strides = channels_last_strides(meta->sizes);
  // In front of the last float: behind all operands, before every quantize node.
  Node* last_float = try_tensor(*epilogue.quantize.front(), "x")->producer();
  Node* node = insert_for(old_value, last_float, target, std::move(inputs), std::move(meta), source);
  for (Node* quantize : epilogue.quantize) node->graph().replace_all_uses(quantize->output(), node->output());
  return node;
}

}  // namespace halftone::static_int8
