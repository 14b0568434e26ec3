// fuse_linear: aten::linear and the halftone::*_linear operators, in float32 and with constant weights,
// become halftone::fused_linear, which the passes after this one give an activation, a residual and quantized
// rows.
#include "compiler/ops/formats.h"
#include "compiler/passes/alias.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

// Why the linear cannot be fused, or "".
std::string refusal(const Node& node, const FusedFormat& format, const Value* x, const Constants& constants) {
  if (!is_float(x) || !is_float(node.output())) return "it is not float32";
  if (rank(x) < 2) return "its input is a single row";
  if (!is_contiguous(node.output())) return "its result is not contiguous";
  for (size_t i = 0; i < format.parts.size(); ++i) {
    const Value* part = try_tensor(node, format.parts[i]);
    if (part == nullptr && i < format.required_parts) return "its weight is no tensor";
    if (part != nullptr && !constants.holds(part)) return "its weight is computed or written";
  }
  const Value* weight = try_tensor(node, format.parts[0]);
  if (rank(weight) != 2) return "its weight is no matrix";
  if (format.name == "fp32" && !is_float(weight)) return "its weight is not float32";
  const Value* bias = try_tensor(node, "bias");
  if (!is_absent(node, "bias") && (!is_float(bias) || rank(bias) != 1))
    return "its bias is no row of float32";
  return "";
}

std::vector<NamedArgument> fused_inputs(const Node& node, const FusedFormat& format, Value* x) {
  Argument::List parts, attributes;
  for (const std::string_view name : format.parts) {
    if (Value* part = try_tensor(node, name)) parts.emplace_back(part);
  }
  for (const std::string_view name : format.attributes) {
    const auto flag = try_flag(node, name);
    attributes.emplace_back(static_cast<int64_t>(flag ? *flag : try_number(node, name).value_or(0)));
  }
  return {{"x", x},
          {"x_scale", {}},
          {"x_zero_point", {}},
          {"weight", std::move(parts)},
          {"bias", operand(node, "bias")},
          {"residual", {}},
          {"format", std::string(format.name)},
          {"attributes", std::move(attributes)},
          {"activation", "none"},
          {"symmetric", false}};
}

}  // namespace

bool rewrite_fuse_linear(PassContext& context) {
  const Constants constants(context);
  const AliasSets aliases(context.graph);
  size_t fused = 0;
  for (Node* node : snapshot(context.graph)) {
    const FusedFormat* format = node->op() != nullptr ? try_fused_format_of(node->target()) : nullptr;
    if (format == nullptr) continue;
    Value* x = try_tensor(*node, node->inputs().front().name);
    std::string why = refusal(*node, *format, x, constants);
    if (why.empty() && (aliases.is_written(x) || aliases.is_written(node->output())))
      why = "its input or result is written";
    if (!why.empty()) {
      context.note("%{} stays {}: {}", node->output()->name(), node->target(), why);
      continue;
    }
    const TensorMeta meta = *node->output()->meta();
    replace_value(node->output(), node, "halftone::fused_linear", fused_inputs(*node, *format, x),
                  quantized_specs(node->output()->name(), meta, false), node->source());
    ++fused;
  }
  if (fused > 0) context.note("{}", counted(fused, "linear"));
  return fused > 0;
}

}  // namespace halftone::compiler
