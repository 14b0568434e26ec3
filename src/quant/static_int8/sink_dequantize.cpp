// sink_dequantize: what moves elements moves integers, and they become floats afterwards.
#include <algorithm>

#include "quant/static_int8/movement.h"
#include "quant/static_int8/rewrites.h"

namespace halftone::static_int8 {
namespace {

/// The tensors that the node moves: one, or those of a list. Empty if one of them is not a dequantized value.
std::vector<Dequantized> moved_values(const Node& node) {
  const Argument* operand = node.try_input(moved_operand(node));
  std::vector<Dequantized> values;
  if (operand == nullptr) return values;
  const Argument::List single = {*operand};
  for (const Argument& item : operand->list() != nullptr ? *operand->list() : single) {
    const auto value = try_dequantized(item.value());
    if (!value) return {};
    values.push_back(*value);
  }
  return values;
}

bool alike(const std::vector<Dequantized>& values) {
  return std::all_of(values.begin(), values.end(), [&](const Dequantized& value) {
    return value.affine == values.front().affine && value.q->meta() && values.front().q->meta() &&
           value.q->meta()->dtype == values.front().q->meta()->dtype;
  });
}

struct PoolExtents {
  std::vector<int64_t> kernel, stride, padding, dilation;
};

std::optional<PoolExtents> try_pool_extents(const Node& node, size_t dims) {
  const auto kernel = try_extent(node, "kernel_size", dims, 1);
  const auto padding = try_extent(node, "padding", dims, 0);
  const auto dilation = try_extent(node, "dilation", dims, 1);
  auto stride = try_extent(node, "stride", dims, 0);
  if (!kernel || !padding || !dilation || !stride) return std::nullopt;
  if (std::count(stride->begin(), stride->end(), 0) != 0) stride = kernel;  // not given: the kernel's
  return PoolExtents{*kernel, *stride, *padding, *dilation};
}

Argument::List to_list(const std::vector<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

/// Target and operands of the node on integers; an empty target if it cannot be said.
struct OnIntegers {
  std::string target;
  std::vector<NamedArgument> inputs;
};

OnIntegers max_pool_on_integers(const Node& node, const Dequantized& value, LowerContext& context) {
  const size_t dims = node.target().at(std::string_view("aten::max_pool").size()) - '0';
  const auto extents = try_pool_extents(node, dims);
  const auto ceil_mode = try_flag(node, "ceil_mode");
  if (!extents || !ceil_mode || value.q->meta()->dtype != c10::ScalarType::Byte ||
      rank(value.q) != dims + 2) {
    context.refuse(node, "max pooling of int8 values, or with computed sizes, has no kernel");
    return {};
  }
  return {"halftone::int8_max_pool",
          {{"x", value.q},
           {"kernel", to_list(extents->kernel)},
           {"stride", to_list(extents->stride)},
           {"padding", to_list(extents->padding)},
           {"dilation", to_list(extents->dilation)},
           {"ceil_mode", *ceil_mode}}};
}

/// Scale and zero point stay; so does the largest integer.
void append_same_output(const std::vector<Dequantized>& values, const LowerContext& context,
                        std::vector<NamedArgument>& inputs) {
  Quantized same{values.front().affine, 0, 0};
  for (const Dequantized& value : values)
    same.largest = std::max(same.largest, largest_integer(value.q, context.constants));
  append_output(inputs, same);
}

/// Images are joined as they lie, channels last.
OnIntegers cat_on_integers(const Node& node, const std::vector<Dequantized>& values,
                           const LowerContext& context) {
  Argument::List parts, scales, zero_points;
  for (const Dequantized& value : values) {
    parts.emplace_back(value.q);
    scales.emplace_back(static_cast<double>(value.affine.scale));
    zero_points.emplace_back(value.affine.zero_point);
  }
  OnIntegers result{"halftone::int8_cat",
                    {{"tensors", std::move(parts)},
                     {"dim", static_cast<int64_t>(try_number(node, "dim").value_or(0))},
                     {"scales", std::move(scales)},
                     {"zero_points", std::move(zero_points)}}};
  append_same_output(values, context, result.inputs);
  return result;
}

OnIntegers nearest_on_integers(const Node& node, const Dequantized& value, const LowerContext& context) {
  Argument::List size, scales;
  if (const Argument* given = node.try_input("output_size"); given != nullptr && given->list() != nullptr)
    size = *given->list();
  if (const Argument* given = node.try_input("scale_factors"); given != nullptr && given->list() != nullptr)
    scales = *given->list();
  for (const char* name : {"scales", "scales_d", "scales_h", "scales_w"}) {
    if (const auto scale = try_number(node, name)) scales.emplace_back(*scale);
  }
  OnIntegers result{"halftone::int8_interpolate",
                    {{"x", value.q},
                     {"output_size", std::move(size)},
                     {"scales", std::move(scales)},
                     {"mode", "nearest"},
                     {"x_scale", static_cast<double>(value.affine.scale)},
                     {"x_zero_point", value.affine.zero_point}}};
  append_same_output({value}, context, result.inputs);
  return result;
}

OnIntegers on_integers(const Node& node, const std::vector<Dequantized>& values, LowerContext& context) {
  const bool bytes = is_byte(values.front().q);
  if (node.target().starts_with("aten::max_pool")) return max_pool_on_integers(node, values.front(), context);
  if (node.target().starts_with("aten::upsample_nearest") && bytes)
    return nearest_on_integers(node, values.front(), context);
  const bool images = bytes && std::all_of(values.begin(), values.end(), [](const Dequantized& value) {
                        return rank(value.q) == 4 || rank(value.q) == 5;
                      });
  if (node.is("aten::cat") && images) return cat_on_integers(node, values, context);
  OnIntegers result{node.target(), {}};
  const bool pads = node.is("aten::constant_pad_nd") || node.is("aten::pad");
  for (const NamedArgument& input : node.inputs()) {
    NamedArgument copy = input;
    if (input.name == moved_operand(node)) {
      if (input.value.list() == nullptr) {
        copy.value = values.front().q;
      } else {
        Argument::List list;
        for (const Dequantized& value : values) list.emplace_back(value.q);
        copy.value = std::move(list);
      }
    }
    if (pads && input.name == "value") continue;
    result.inputs.push_back(std::move(copy));
  }
  if (pads) {
    const bool constant = node.is("aten::constant_pad_nd") || try_text(node, "mode") == "constant";
    const Argument* value = node.try_input("value");
    const bool zero = value == nullptr || value->is_none() || try_number(node, "value") == 0.0;
    if (constant && !zero) {
      context.refuse(node, "padding with another value than 0 has no kernel");
      return {};
    }
    if (constant) result.inputs.push_back({"value", values.front().affine.zero_point});
  }
  return result;
}

std::vector<NamedArgument> dequantize_inputs(Value* q, const Affine& affine) {
  return {{"q", q}, {"scale", static_cast<double>(affine.scale)}, {"zero_point", affine.zero_point}};
}

OutputSpec byte_spec(const Value& value, c10::ScalarType dtype) {
  OutputSpec spec{value.name() + "_q", ValueType::kTensor, value.meta()};
  if (spec.meta) spec.meta->dtype = dtype;
  return spec;
}

/// A list of pieces: the unpack node behind it gives the tensors.
bool sink_through_list(const Node& node, const Dequantized& value, OnIntegers moved) {
  Node* unpack = only_user(node.output());
  if (unpack == nullptr || !unpack->is("builtin::unpack")) return false;
  Graph& graph = node.graph();
  Node* list = graph.insert(unpack, moved.target, std::move(moved.inputs),
                            {{node.output()->name() + "_q", ValueType::kList}}, node.source());
  std::vector<OutputSpec> pieces;
  for (const Value* output : unpack->outputs()) pieces.push_back(byte_spec(*output, value.q->meta()->dtype));
  Node* apart =
      graph.insert(unpack, "builtin::unpack", {{"", list->output()}}, std::move(pieces), unpack->source());
  for (size_t i = 0; i < apart->outputs().size(); ++i) {
    insert_for(unpack->output(i), unpack, "halftone::dequantize_per_tensor",
               dequantize_inputs(apart->output(i), value.affine), unpack->output(i)->meta(), node.source());
  }
  return true;
}

/// What gives back its operand in inference.
bool is_identity(const Node& node) {
  if (node.is("aten::alias") || node.is("aten::detach")) return true;
  const bool drops =
      node.is("aten::dropout") || node.is("aten::feature_dropout") || node.is("aten::alpha_dropout");
  return drops && try_flag(node, "train") == false;
}

bool skip_identity(Node& node) {
  Value* value = node.input_values().front();
  if (!try_dequantized(value)) return false;
  node.graph().replace_all_uses(node.output(), value);
  return true;
}

bool sink(Node& node, LowerContext& context) {
  const std::vector<Dequantized> values = moved_values(node);
  if (values.empty() || !values.front().q->meta() || !alike(values)) return false;
  OnIntegers moved = on_integers(node, values, context);
  if (moved.target.empty()) return false;
  if (node.output()->type() == ValueType::kList) return sink_through_list(node, values.front(), moved);
  Graph& graph = node.graph();
  Node* fresh = graph.insert(&node, moved.target, std::move(moved.inputs),
                             {byte_spec(*node.output(), values.front().q->meta()->dtype)}, node.source());
  insert_for(node.output(), &node, "halftone::dequantize_per_tensor",
             dequantize_inputs(fresh->output(), values.front().affine), node.output()->meta(), node.source());
  return true;
}

}  // namespace

bool rewrite_sink_dequantize(LowerContext& context) {
  bool changed = false;
  for (Node* node : snapshot(context.graph)) {
    if (is_identity(*node)) {
      changed = skip_identity(*node) || changed;
    } else if (moves_elements(*node) && !node->target().starts_with("halftone::")) {
      changed = sink(*node, context) || changed;
    }
  }
  return changed;
}

}  // namespace halftone::static_int8
