// products: convolutions and linears of dequantized operands, with what follows them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>

#include <map>

#include "quant/static_int8/rewrites.h"

namespace halftone::static_int8 {
namespace {

struct ProductKind {
  size_t dims;  ///< of pixels; 0: a linear; 4: as many as x has
  bool transposed;
};

const ProductKind* try_product_kind(const Node& node) {
  static const std::map<std::string_view, ProductKind> kinds = {{"aten::linear", {0, false}},
                                                                {"aten::conv1d", {1, false}},
                                                                {"aten::conv2d", {2, false}},
                                                                {"aten::conv3d", {3, false}},
                                                                {"aten::conv1d.padding", {1, false}},
                                                                {"aten::conv2d.padding", {2, false}},
                                                                {"aten::conv3d.padding", {3, false}},
                                                                {"aten::conv_transpose1d", {1, true}},
                                                                {"aten::conv_transpose2d.input", {2, true}},
                                                                {"aten::conv_transpose3d.input", {3, true}},
                                                                {"aten::convolution", {4, false}}};
  const auto found = kinds.find(node.target());
  return found != kinds.end() ? &found->second : nullptr;
}

/// A weight of constants: its integers and one float32 scale for each output channel.
struct QuantizedWeightValue {
  Value* q = nullptr;
  Value* scale = nullptr;
};

/// One for each output channel, made into a constant of the graph if the graph has not just that.
Value* scale_value(LowerContext& context, const Value* q, Value* scales, const at::Tensor& wanted) {
  const at::Tensor given = constant_of(scales, context.constants);
  if (given.defined() && given.scalar_type() == at::kFloat && given.sizes() == wanted.sizes()) return scales;
  const std::string& weight = context.graph.inputs()[q->index()].target;
  return context.add_constant(weight + "_scale", wanted);
}

/// Nothing if the kernels cannot take it; `why` says what it is.
std::optional<QuantizedWeightValue> try_weight(LowerContext& context, const Value* weight, bool transposed,
                                               int64_t groups, std::string& why) {
  const Node* node = weight->producer();
  const bool channels = node != nullptr && node->is("halftone::dequantize_per_channel");
  if (!channels && (node == nullptr || !node->is("halftone::dequantize_per_tensor"))) {
    why = "its weight is not quantized";
    return std::nullopt;
  }
  Value* q = try_tensor(*node, "q");
  const at::Tensor integers = constant_of(q, context.constants);
  if (!integers.defined() || integers.scalar_type() != at::kChar) {
    why = integers.defined() ? "its weight is uint8, and kernels take int8" : "its weight is not constant";
    return std::nullopt;
  }
  const int64_t axis = transposed ? 1 : 0;
  const int64_t columns = integers.size(axis) * (transposed ? groups : 1);
  if (!channels) {
    if (try_number(*node, "zero_point") != 0.0) {
      why = "its weight has a zero point other than 0";
      return std::nullopt;
    }
    const at::Tensor scale =
        at::full({columns}, static_cast<float>(try_number(*node, "scale").value_or(0)), at::kFloat);
    return QuantizedWeightValue{q, scale_value(context, q, nullptr, scale)};
  }
  Value* scales = try_tensor(*node, "scales");
  const at::Tensor scale = constant_of(scales, context.constants);
  const at::Tensor zero_points = constant_of(try_tensor(*node, "zero_points"), context.constants);
  if (!scale.defined() || !zero_points.defined() || try_number(*node, "axis") != static_cast<double>(axis)) {
    why = fmt::format("its weight has no scale for each element of axis {}", axis);
    return std::nullopt;
  }
  if (zero_points.ne(0).any().item<bool>()) {
    why = "its weight has zero points other than 0";
    return std::nullopt;
  }
  // Groups of a transposed convolution share the scales of axis 1.
  const at::Tensor wanted = scale.to(at::kFloat).repeat({columns / integers.size(axis)});
  return QuantizedWeightValue{q, scale_value(context, q, scales, wanted)};
}

Argument::List to_arguments(const std::vector<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

/// Appends stride to groups; false if one of them is not a constant.
bool append_conv_lists(const Node& node, size_t dims, bool transposed, std::vector<NamedArgument>& inputs,
                       std::string& why) {
  auto padding = try_extent(node, "padding", dims, 0);
  const auto stride = try_extent(node, "stride", dims, 1);
  const auto dilation = try_extent(node, "dilation", dims, 1);
  const auto output_padding = try_extent(node, "output_padding", dims, 0);
  if (const auto mode = try_text(node, "padding")) {
    padding.reset();
    if (*mode == "valid") padding = std::vector<int64_t>(dims, 0);
    const Value* weight = try_tensor(node, "weight");
    if (*mode == "same" && dilation && weight->meta()) {
      padding.emplace();
      for (size_t i = 0; i < dims; ++i) {
        const auto kernel = weight->meta()->sizes[2 + i].as_constant();
        const int64_t both = (*dilation)[i] * (kernel.value_or(0) - 1);
        if (!kernel || both % 2 != 0) {
          why = "padding \"same\" is not the same on both sides";
          return false;
        }
        padding->push_back(both / 2);
      }
    }
  }
  if (!padding || !stride || !dilation || !output_padding) {
    why = "stride, padding or dilation are computed";
    return false;
  }
  inputs.push_back({"stride", to_arguments(*stride)});
  inputs.push_back({"padding", to_arguments(*padding)});
  inputs.push_back({"dilation", to_arguments(*dilation)});
  inputs.push_back({"transposed", transposed});
  inputs.push_back({"output_padding", to_arguments(*output_padding)});
  inputs.push_back({"groups", static_cast<int64_t>(try_number(node, "groups").value_or(1))});
  return true;
}

/// The value that is added to the product, if nothing else reads the product; `value` becomes the sum.
std::optional<Dequantized> try_residual(const Value*& value) {
  const Node* add = only_user(value);
  if (add == nullptr || !add->is("aten::add.Tensor") || try_number(*add, "alpha").value_or(1) != 1)
    return std::nullopt;
  const Value *left = try_tensor(*add, "self"), *right = try_tensor(*add, "other");
  const auto other = try_dequantized(left == value ? right : left);
  if (!other || !is_byte(other->q) || !value->meta() || other->q->meta()->sizes != value->meta()->sizes)
    return std::nullopt;
  value = add->output();
  return other;
}

class ProductRewrite {
 public:
  ProductRewrite(Node& node, ProductKind kind, LowerContext& context)
      : node_(node), kind_(kind), context_(context) {}

  bool run() {
    std::string why;
    if (!read(why)) {
      context_.refuse(node_, "{}", why);
      return false;
    }
    const Value* value = node_.output();
    const auto residual = try_residual(value);
    if (const auto epilogue = try_quantized_epilogue(value, why)) {
      write(*epilogue, residual);
    } else if (const auto plain = residual ? try_quantized_epilogue(node_.output(), why) : std::nullopt) {
      write(*plain, std::nullopt);
    } else {
      const Node* next = only_user(node_.output());
      if (next != nullptr && next->outputs().size() == 1 && only_user(next->output()) != nullptr &&
          try_quantized(*only_user(next->output())))
        context_.refuse(*next, "no kernel applies it where a product writes its result");
      write_floats();
    }
    return true;
  }

 private:
  bool linear() const { return kind_.dims == 0; }

  bool read(std::string& why) {
    const Value* x = try_tensor(node_, "input");
    if (kind_.dims == 4) {
      kind_ = {x != nullptr && rank(x) > 2 ? rank(x) - 2 : 0, try_flag(node_, "transposed").value_or(false)};
    }
    const auto dequantized = try_dequantized(x);
    if (!dequantized) {
      why = x != nullptr && x->producer() != nullptr &&
                    x->producer()->is("halftone::quantize_dequantize_dynamic")
                ? "its input is quantized at run time, which has no static kernel"
                : "its input is not quantized";
      return false;
    }
    x_ = *dequantized;
    if (!is_byte(x_.q)) {
      why = "its input is int8, and kernels take uint8";
      return false;
    }
    if (!linear() && rank(x) != kind_.dims + 2) {
      why = "its input has no batch";
      return false;
    }
    const Value* weight = try_tensor(node_, "weight");
    const auto groups = static_cast<int64_t>(try_number(node_, "groups").value_or(1));
    const auto found =
        weight != nullptr ? try_weight(context_, weight, kind_.transposed, groups, why) : std::nullopt;
    if (!found) return false;
    weight_ = *found;
    bias_ = try_tensor(node_, "bias");
    if (bias_ != nullptr && !constant_of(bias_, context_.constants).defined()) {
      why = "its bias is not constant";
      return false;
    }
    return linear() || append_conv_lists(node_, kind_.dims, kind_.transposed, lists_, why);
  }

  std::vector<NamedArgument> inputs(const std::optional<Dequantized>& residual) const {
    std::vector<NamedArgument> inputs = {{"x", x_.q},
                                         {"weight", weight_.q},
                                         {"weight_scale", weight_.scale},
                                         {"bias", bias_ != nullptr ? Argument(bias_) : Argument()},
                                         {"residual", residual ? Argument(residual->q) : Argument()}};
    inputs.insert(inputs.end(), lists_.begin(), lists_.end());
    inputs.push_back({"x_scale", static_cast<double>(x_.affine.scale)});
    inputs.push_back({"x_zero_point", x_.affine.zero_point});
    inputs.push_back({"x_max", largest_integer(x_.q, context_.constants)});
    if (residual) {
      inputs.push_back({"residual_scale", static_cast<double>(residual->affine.scale)});
      inputs.push_back({"residual_zero_point", residual->affine.zero_point});
    }
    return inputs;
  }

  const char* target() const { return linear() ? "halftone::int8_static_linear" : "halftone::int8_conv"; }

  void write(const QuantizedEpilogue& epilogue, const std::optional<Dequantized>& residual) const {
    std::vector<NamedArgument> operands = inputs(residual);
    append_output(operands, epilogue.quantized);
    replace_epilogue(epilogue, target(), std::move(operands), node_.source());
  }

  void write_floats() const {
    std::vector<NamedArgument> operands = inputs(std::nullopt);
    operands.push_back({"float_output", true});
    insert_for(node_.output(), &node_, target(), std::move(operands), node_.output()->meta(), node_.source());
  }

  Node& node_;
  ProductKind kind_;
  LowerContext& context_;
  Dequantized x_;
  QuantizedWeightValue weight_;
  Value* bias_ = nullptr;
  std::vector<NamedArgument> lists_;
};

}  // namespace

bool rewrite_products(LowerContext& context) {
  bool changed = false;
  for (Node* node : snapshot(context.graph)) {
    if (const ProductKind* kind = try_product_kind(*node))
      changed = ProductRewrite(*node, *kind, context).run() || changed;
  }
  return changed;
}

}  // namespace halftone::static_int8
