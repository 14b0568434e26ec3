// lookup: a chain of functions of one element between integers has 256 results at most. They are computed by
// the very operators of the graph, so the table gives the reference's bytes. Requantization is a chain of
// none.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>

#include "graph/ir/copy.h"
#include "graph/operators/op_traits.h"
#include "graph/run/interpreter.h"
#include "quant/ptq/quantize_op.h"
#include "quant/static_int8/rewrites.h"

namespace halftone::static_int8 {
namespace {

/// The operand of a node that makes the same function of each of its elements; other operands are numbers, or
/// constants of one element. nullptr for all else.
const Value* try_pointwise_operand(const Node& node, const TensorMap& constants) {
  if (!has_trait(node, OpTrait::kElementwise | OpTrait::kAlias) || node.outputs().size() != 1) return nullptr;
  const Value* operand = nullptr;
  for (const Value* value : node.input_values()) {
    const at::Tensor constant = constant_of(value, constants);
    if (constant.defined() && constant.numel() == 1) continue;
    if (operand != nullptr) return nullptr;
    operand = value;
  }
  return operand;
}

/// From the dequantized value to the one that is quantized.
struct Chain {
  Dequantized from;
  const Value* first = nullptr;  ///< the float at its beginning
  std::vector<const Node*> nodes;
};

std::optional<Chain> try_chain(const Value* value, const TensorMap& constants) {
  Chain chain;
  while (true) {
    if (const auto from = try_dequantized(value)) {
      chain.from = *from;
      chain.first = value;
      return chain.from.q->meta() ? std::optional(chain) : std::nullopt;
    }
    const Node* node = value->producer();
    const Value* operand = node != nullptr ? try_pointwise_operand(*node, constants) : nullptr;
    if (operand == nullptr) return std::nullopt;
    chain.nodes.insert(chain.nodes.begin(), node);
    value = operand;
  }
}

/// The chain as a graph of its own, on 256 elements.
at::Tensor run_chain(const Chain& chain, const at::Tensor& floats, const TensorMap& constants) {
  if (chain.nodes.empty()) return floats;
  auto graph = std::make_shared<Graph>();
  ValueMapping mapping;
  std::vector<c10::IValue> inputs = {floats};
  mapping[chain.first] = graph->add_input({"x", ValueType::kTensor});
  for (const Node* node : chain.nodes) {
    for (const Value* value : node->input_values()) {
      if (mapping.contains(value)) continue;
      mapping[value] = graph->add_input({value->name(), ValueType::kTensor}, InputKind::kUser, value->name());
      inputs.emplace_back(constant_of(value, constants));
    }
    append_copy(*graph, *node, mapping);
  }
  graph->set_outputs({mapping.at(chain.nodes.back()->output())}, std::vector<GraphOutput>(1));
  const at::NoGradGuard no_grad;
  return Interpreter(graph).run(std::move(inputs)).at(0).toTensor();
}

at::Tensor make_table(const Chain& chain, const Quantized& to, const TensorMap& constants) {
  const at::Tensor bytes = at::arange(256, at::kInt).to(at::kByte);
  const at::Tensor integers = chain.from.q->meta()->dtype == at::kChar ? bytes.view(at::kChar) : bytes;
  const at::Tensor floats =
      ops::dequantize_per_tensor(integers, chain.from.affine.scale, chain.from.affine.zero_point);
  return ops::quantize_per_tensor(run_chain(chain, floats, constants).contiguous(), to.affine.scale,
                                  to.affine.zero_point, to.least, to.largest, to.dtype);
}

}  // namespace

bool rewrite_lookup(LowerContext& context) {
  bool changed = false;
  for (Node* node : snapshot(context.graph)) {
    const auto quantized = try_quantized(*node);
    const auto chain = quantized ? try_chain(try_tensor(*node, "x"), context.constants) : std::nullopt;
    if (!chain || node->output()->users().empty()) {
      const Node* function = quantized ? try_tensor(*node, "x")->producer() : nullptr;
      if (function != nullptr && function->is("aten::prelu"))
        context.refuse(*function, "its slopes differ between channels");
      continue;
    }
    const Source source = chain->nodes.empty() ? node->source() : chain->nodes.front()->source();
    const std::string hint = source.layer.empty() ? "int8_table" : source.layer + ".int8_table";
    Value* table = context.add_constant(hint, make_table(*chain, *quantized, context.constants));
    insert_for(node->output(), node, "halftone::int8_lookup", {{"x", chain->from.q}, {"table", table}},
               node->output()->meta(), source);
    changed = true;
  }
  return changed;
}

}  // namespace halftone::static_int8
