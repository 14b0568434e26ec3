// separate_int_products(): the rewrite for fuse_int_mm_with_mul off.
#include "compat/rewrites.h"
#include "compiler/ops/ops.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::baseline {
namespace {

/// Writes the steps in front of one int8 linear.
class IntProductWriter {
 public:
  explicit IntProductWriter(Node& linear) : linear_(linear), graph_(linear.graph()) {}

  /// Why the linear has to stay, or "".
  std::string refusal() const {
    const Value* x = try_tensor(linear_, "x");
    if (x == nullptr || !x->meta() || x->meta()->sizes.empty()) return "the sizes of its input are not known";
    if (!linear_.output()->meta()) return "the sizes of its result are not known";
    const Value* bias = try_tensor(linear_, "bias");
    if (bias != nullptr && !bias->meta()) return "the type of its bias is not known";
    return "";
  }

  void write() {
    Value* x = try_tensor(linear_, "x");
    const TensorMeta result = *linear_.output()->meta();
    if (!compiler::is_float(x)) x = converted(x, at::kFloat);
    const bool symmetric = try_flag(linear_, "symmetric_activations").value_or(false);
    const Node* rows =
        graph_.insert(&linear_, "halftone::quantize_rows", {{"x", x}, {"symmetric", symmetric}},
                      compiler::quantized_specs(x->name(), *x->meta(), symmetric), linear_.source());
    Value* integers =
        add("halftone::int_mm", "int",
            {{"q", rows->output(0)}, {"zero_point", rows->output(2)}, {"weight", operand(linear_, "weight")}},
            contiguous_meta(at::kInt, result.sizes));
    const TensorMeta floats = contiguous_meta(at::kFloat, result.sizes);
    // The kernel's order of roundings: both scales first, then the sums, then the bias.
    Value* scales =
        add("aten::mul.Tensor", "scales",
            {{"self", per_row(rows->output(1), x)}, {"other", operand(linear_, "scale")}}, floats);
    Value* y = add("aten::mul.Tensor", "scaled",
                   {{"self", converted(integers, at::kFloat)}, {"other", scales}}, floats);
    if (Value* bias = try_tensor(linear_, "bias")) {
      if (!compiler::is_float(bias)) bias = converted(bias, at::kFloat);
      y = add("aten::add.Tensor", "biased", {{"self", y}, {"other", bias}}, floats);
    }
    if (result.dtype != at::kFloat) y = converted(y, result.dtype);
    graph_.replace_all_uses(linear_.output(), y);
    graph_.erase(&linear_);
  }

 private:
  Value* add(std::string_view target, const std::string& hint, std::vector<NamedArgument> inputs,
             TensorMeta meta) {
    return graph_
        .insert(&linear_, target, std::move(inputs),
                {{linear_.output()->name() + "_" + hint, ValueType::kTensor, std::move(meta)}},
                linear_.source())
        ->output();
  }

  Value* converted(Value* value, c10::ScalarType dtype) {
    return add("aten::to.dtype", "as", {{"self", value}, {"dtype", dtype}},
               contiguous_meta(dtype, value->meta()->sizes));
  }

  /// scale [rows] as [..., 1], x being [..., k].
  Value* per_row(Value* scale, Value* x) {
    std::vector<SymExpr> sizes = x->meta()->sizes;
    Argument::List arguments;
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      if (sizes[i].is_constant()) {
        arguments.emplace_back(sizes[i].constant());
        continue;
      }
      const Node* size =
          graph_.insert(&linear_, "aten::sym_size.int", {{"self", x}, {"dim", static_cast<int64_t>(i)}},
                        {{"", ValueType::kInt, std::nullopt, sizes[i]}}, linear_.source());
      arguments.emplace_back(size->output());
    }
    sizes.back() = SymExpr(1);
    arguments.emplace_back(int64_t{1});
    return add("aten::view", "row_scale", {{"self", scale}, {"size", std::move(arguments)}},
               contiguous_meta(at::kFloat, std::move(sizes)));
  }

  Node& linear_;
  Graph& graph_;
};

}  // namespace

void separate_int_products(GraphModule& module, std::vector<std::string>& notes) {
  register_fused_operators();
  register_int_mm();
  size_t done = 0;
  for (Node* node : snapshot(module.graph())) {
    if (!node->is("halftone::int8_linear")) continue;
    IntProductWriter writer(*node);
    if (const std::string why = writer.refusal(); !why.empty()) {
      notes.push_back(
          fmt::format("fuse_int_mm_with_mul: layer \"{}\" stays fused: {}", node->source().layer, why));
      continue;
    }
    writer.write();
    ++done;
  }
  notes.push_back(fmt::format("fuse_int_mm_with_mul: off; {} int8 linears became separate steps", done));
}

}  // namespace halftone::baseline
