// pooling: averages over windows, over adaptive windows, and over all pixels.
#include <algorithm>

#include "quant/static_int8/rewrites.h"

namespace halftone::static_int8 {
namespace {

Argument::List number_list(const std::vector<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

std::vector<NamedArgument> image_inputs(const Dequantized& x) {
  return {
      {"x", x.q}, {"x_scale", static_cast<double>(x.affine.scale)}, {"x_zero_point", x.affine.zero_point}};
}

/// x as the kernels take it, and what follows; nothing with a reason otherwise.
std::optional<QuantizedEpilogue> try_pixel_epilogue(const Node& node, const std::optional<Dequantized>& x,
                                                    size_t dims, LowerContext& context) {
  std::string why;
  std::optional<QuantizedEpilogue> epilogue;
  if (!x) {
    why = "its input is not quantized";
  } else if (!is_byte(x->q)) {
    why = "its input is int8, and kernels take uint8";
  } else if (rank(x->q) != dims + 2) {
    why = "its input has no batch";
  } else {
    epilogue = try_quantized_epilogue(node.output(), why);
  }
  if (!epilogue) context.refuse(node, "{}", why);
  return epilogue;
}

bool lower_average(Node& node, size_t dims, LowerContext& context) {
  const auto x = try_dequantized(try_tensor(node, "self"));
  const auto epilogue = try_pixel_epilogue(node, x, dims, context);
  if (!epilogue) return false;
  const auto kernel = try_extent(node, "kernel_size", dims, 1);
  auto stride = try_extent(node, "stride", dims, 0);
  const auto padding = try_extent(node, "padding", dims, 0);
  if (!kernel || !stride || !padding) {
    context.refuse(node, "its window is computed");
    return false;
  }
  if (std::count(stride->begin(), stride->end(), 0) != 0) stride = kernel;  // not given: the kernel's
  std::vector<NamedArgument> inputs = image_inputs(*x);
  inputs.push_back({"kernel", number_list(*kernel)});
  inputs.push_back({"stride", number_list(*stride)});
  inputs.push_back({"padding", number_list(*padding)});
  inputs.push_back({"ceil_mode", try_flag(node, "ceil_mode").value_or(false)});
  inputs.push_back({"count_include_pad", try_flag(node, "count_include_pad").value_or(true)});
  inputs.push_back(
      {"divisor_override", static_cast<int64_t>(try_number(node, "divisor_override").value_or(0))});
  append_output(inputs, epilogue->quantized);
  replace_epilogue(*epilogue, "halftone::int8_avg_pool", std::move(inputs), node.source());
  return true;
}

bool lower_adaptive(Node& node, size_t dims, LowerContext& context) {
  const auto x = try_dequantized(try_tensor(node, "self"));
  const auto epilogue = try_pixel_epilogue(node, x, dims, context);
  if (!epilogue) return false;
  const auto size = try_extent(node, "output_size", dims, 0);
  if (!size || std::any_of(size->begin(), size->end(), [](int64_t each) { return each < 1; })) {
    context.refuse(node, "its output size is computed");
    return false;
  }
  std::vector<NamedArgument> inputs = image_inputs(*x);
  inputs.push_back({"output_size", number_list(*size)});
  append_output(inputs, epilogue->quantized);
  replace_epilogue(*epilogue, "halftone::int8_adaptive_avg_pool", std::move(inputs), node.source());
  return true;
}

/// The mean over all dimensions of pixels is an adaptive pooling to one pixel.
bool lower_mean(Node& node, LowerContext& context) {
  const auto x = try_dequantized(try_tensor(node, "self"));
  if (!x) return false;
  const size_t rank = halftone::rank(x->q);
  const Argument* dims = node.try_input("dim");
  std::vector<int64_t> over;
  if (dims != nullptr && dims->list() != nullptr) {
    for (const Argument& item : *dims->list()) {
      const int64_t dim = item.as_int().value_or(0);
      over.push_back(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
    }
  }
  std::sort(over.begin(), over.end());
  std::vector<int64_t> pixels;
  for (size_t i = 2; i < rank; ++i) pixels.push_back(static_cast<int64_t>(i));
  if (pixels.empty() || over != pixels || !is_byte(x->q)) {
    context.refuse(node, "a mean over other dimensions than all pixels has no int8 kernel");
    return false;
  }
  std::string why;
  const auto epilogue = try_quantized_epilogue(node.output(), why);
  if (!epilogue) {
    context.refuse(node, "{}", why);
    return false;
  }
  std::vector<NamedArgument> inputs = image_inputs(*x);
  inputs.push_back({"output_size", number_list(std::vector<int64_t>(pixels.size(), 1))});
  append_output(inputs, epilogue->quantized);
  if (try_flag(node, "keepdim").value_or(false)) {
    replace_epilogue(*epilogue, "halftone::int8_adaptive_avg_pool", std::move(inputs), node.source());
    return true;
  }
  TensorMeta meta = *x->q->meta();
  std::fill(meta.sizes.begin() + 2, meta.sizes.end(), SymExpr(1));
  meta.strides = channels_last_strides(meta.sizes);
  Node* pooled =
      context.graph.insert(&node, "halftone::int8_adaptive_avg_pool", std::move(inputs),
                           {{node.output()->name() + "_pixel", ValueType::kTensor, meta}}, node.source());
  replace_epilogue(*epilogue, "aten::squeeze.dims",
                   {{"self", pooled->output()}, {"dim", number_list(pixels)}}, node.source());
  return true;
}

}  // namespace

bool rewrite_pooling(LowerContext& context) {
  bool changed = false;
  for (Node* node : snapshot(context.graph)) {
    for (const size_t dims : {1, 2, 3}) {
      if (node->is(fmt::format("aten::avg_pool{}d", dims)))
        changed = lower_average(*node, dims, context) || changed;
      if (node->is(fmt::format("aten::adaptive_avg_pool{}d", dims)))
        changed = lower_adaptive(*node, dims, context) || changed;
    }
    if (node->is("aten::mean.dim")) changed = lower_mean(*node, context) || changed;
  }
  return changed;
}

}  // namespace halftone::static_int8
