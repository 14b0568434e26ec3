// Packing ahead of a run, for files that keep packed weights.
#include "base/errors.h"
#include "quant/static_int8/product.h"
#include "quant/static_int8/qparams.h"

namespace halftone::static_int8 {
namespace {

/// Sizes that the graph leaves open: any number of images, and images large enough for every kernel.
constexpr int64_t kOpenBatch = 1, kOpenPixels = 64;

std::vector<int64_t> likely_sizes(const Value& value) {
  std::vector<int64_t> sizes;
  if (!value.meta()) return sizes;
  for (const SymExpr& size : value.meta()->sizes)
    sizes.push_back(size.as_constant().value_or(sizes.empty() ? kOpenBatch : kOpenPixels));
  return sizes;
}

std::vector<int64_t> numbers_of(const Node& node, std::string_view name, size_t dims, int64_t otherwise) {
  const auto numbers = try_extent(node, name, dims, otherwise);
  if (!numbers) fail(ErrorCode::kInvalidArgument, "{}: {} is not constant", node.target(), name);
  return *numbers;
}

}  // namespace

std::optional<std::string> try_product_weight(const Node& node) {
  if (!node.is("halftone::int8_conv") && !node.is("halftone::int8_static_linear")) return std::nullopt;
  const Value* weight = try_tensor(node, "weight");
  if (weight == nullptr || weight->producer() != nullptr) return std::nullopt;
  const GraphInput& input = node.graph().inputs()[weight->index()];
  return input.kind == InputKind::kUser ? std::nullopt : std::optional(input.target);
}

void pack_product(const Node& node, const TensorMap& tensors) {
  const Value* x = try_tensor(node, "x");
  const at::Tensor weight = constant_of(try_tensor(node, "weight"), tensors);
  const std::vector<int64_t> sizes = x != nullptr ? likely_sizes(*x) : std::vector<int64_t>{};
  if (!weight.defined() || sizes.empty() || weight.dim() < 2) return;
  ProductSpec spec;
  spec.name = node.target().c_str();
  spec.weight = weight;
  spec.weight_scale = constant_of(try_tensor(node, "weight_scale"), tensors);
  spec.x.zero_point = 0;
  spec.x_max = static_cast<int64_t>(try_number(node, "x_max").value_or(255));
  if (node.is("halftone::int8_static_linear")) {
    spec.shape = linear_shape(kOpenBatch, weight.size(0), weight.size(1));
  } else {
    const size_t dims = sizes.size() - 2;
    const std::vector<int64_t> stride = numbers_of(node, "stride", dims, 1),
                               padding = numbers_of(node, "padding", dims, 0),
                               dilation = numbers_of(node, "dilation", dims, 1),
                               behind = numbers_of(node, "output_padding", dims, 0);
    spec.shape =
        conv_shape_of(spec.name, sizes, weight.sizes(),
                      {stride, padding, dilation, behind, try_flag(node, "transposed").value_or(false),
                       static_cast<int64_t>(try_number(node, "groups").value_or(1))});
  }
  if (spec.weight_scale.defined()) prepare_product(spec);
}

}  // namespace halftone::static_int8
