// norm: a batch norm that no convolution took is one factor and one offset for each channel, which is a
// depthwise convolution of one pixel. Its weights are 1 and -1, so the factor is the weight's scale as it is.
#include <ATen/TensorOperators.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/where.h>

#include <array>

#include "quant/static_int8/rewrites.h"

namespace halftone::static_int8 {
namespace {

/// Running statistics and what is learnt, as one factor and one offset; undefined if they are not
/// constant.
struct ChannelAffine {
  at::Tensor factor, offset;
};

ChannelAffine channel_affine(const Node& node, const TensorMap& constants) {
  const at::Tensor mean = constant_of(try_tensor(node, "running_mean"), constants);
  const at::Tensor variance = constant_of(try_tensor(node, "running_var"), constants);
  const auto eps = try_number(node, "eps");
  if (!mean.defined() || !variance.defined() || !eps) return {};
  ChannelAffine affine;
  affine.factor = at::rsqrt(variance.to(at::kDouble) + *eps);
  for (const char* name : {"weight", "bias"}) {
    const Value* value = try_tensor(node, name);
    if (value != nullptr && !constant_of(value, constants).defined()) return {};
  }
  if (const at::Tensor weight = constant_of(try_tensor(node, "weight"), constants); weight.defined())
    affine.factor = affine.factor * weight;
  affine.offset = -mean.to(at::kDouble) * affine.factor;
  if (const at::Tensor bias = constant_of(try_tensor(node, "bias"), constants); bias.defined())
    affine.offset = affine.offset + bias;
  return affine;
}

bool in_inference(const Node& node) {
  if (node.is("aten::batch_norm") || node.is("aten::_native_batch_norm_legit"))
    return try_flag(node, "training") == false;
  return true;  // _native_batch_norm_legit_no_training
}

bool lower_norm_node(Node& node, LowerContext& context) {
  const auto x = try_dequantized(try_tensor(node, "input"));
  if (!x) return false;
  std::string why;
  const ChannelAffine affine = channel_affine(node, context.constants);
  const size_t rank = halftone::rank(x->q);
  if (!is_byte(x->q)) {
    why = "its input is int8, and kernels take uint8";
  } else if (rank < 3 || rank > 5) {
    why = "batch norm of rows has no int8 kernel";
  } else if (!in_inference(node) || !affine.factor.defined()) {
    why = "its statistics are not constant";
  }
  const auto epilogue = why.empty() ? try_quantized_epilogue(node.output(), why) : std::nullopt;
  if (!epilogue) {
    context.refuse(node, "{}", why);
    return false;
  }
  const int64_t channels = affine.factor.numel(), dims = static_cast<int64_t>(rank) - 2;
  std::vector<int64_t> sizes(rank, 1);
  sizes[0] = channels;
  const at::Tensor sign = at::where(affine.factor < 0, -1, 1).to(at::kChar).view(sizes);
  const std::string& layer = node.source().layer;
  const std::string hint = layer.empty() ? "int8_norm" : layer + ".int8_norm";
  const auto same = [&](int64_t number) {
    return Argument::List(static_cast<size_t>(dims), Argument(number));
  };
  std::vector<NamedArgument> inputs = {
      {"x", x->q},
      {"weight", context.add_constant(hint + "_sign", sign)},
      {"weight_scale", context.add_constant(hint + "_factor", affine.factor.abs().to(at::kFloat))},
      {"bias", context.add_constant(hint + "_offset", affine.offset.to(at::kFloat))},
      {"residual", Argument()},
      {"stride", same(1)},
      {"padding", same(0)},
      {"dilation", same(1)},
      {"transposed", false},
      {"output_padding", same(0)},
      {"groups", channels},
      {"x_scale", static_cast<double>(x->affine.scale)},
      {"x_zero_point", x->affine.zero_point},
      {"x_max", largest_integer(x->q, context.constants)}};
  append_output(inputs, epilogue->quantized);
  replace_epilogue(*epilogue, "halftone::int8_conv", std::move(inputs), node.source());
  return true;
}

}  // namespace

bool rewrite_norm(LowerContext& context) {
  constexpr std::array<std::string_view, 3> kTargets = {"aten::batch_norm", "aten::_native_batch_norm_legit",
                                                        "aten::_native_batch_norm_legit_no_training"};
  bool changed = false;
  for (Node* node : snapshot(context.graph)) {
    for (const std::string_view target : kTargets) {
      if (node->is(target)) changed = lower_norm_node(*node, context) || changed;
    }
  }
  return changed;
}

}  // namespace halftone::static_int8
