// A static int8 convolution or linear made ready: kernel chosen, weights packed, factors computed. For the
// operators here and for the compiler, so that both share the packed weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "halftone/graph/graph_module.h"
#include "kernels/int8_conv/int8_conv.h"
#include "kernels/quantized_ops/quantized_ops.h"

namespace halftone::static_int8 {

/// What halftone::int8_conv and int8_static_linear are given, but for the activations.
struct ProductSpec {
  const char* name = "halftone::int8_conv";  ///< for messages
  kernels::ConvShape shape;
  at::Tensor weight;        ///< int8, torch's layout
  at::Tensor weight_scale;  ///< float32 [out_channels]
  at::Tensor bias;          ///< float32 [out_channels], or undefined
  kernels::QuantParams x;
  int64_t x_max = 255;  ///< the caller's promise: no byte of x is larger
  std::optional<kernels::QuantParams> residual;
  std::optional<kernels::QuantTarget> out;  ///< nothing: floats
};

struct Product {
  const kernels::Int8ConvKernel* kernel = nullptr;
  kernels::Int8ConvProblem problem;
  at::Tensor block;    ///< packed weights
  at::Tensor factors;  ///< float32 [2, out_channels]: multipliers, offsets
  /// Everything but x, residual, the output and the workspace.
  kernels::Int8ConvArgs args;
};

/// kInvalidArgument if the tensors, which may be meta tensors, or numbers do not fit the shape.
void check_product(const ProductSpec& spec);

/// kInvalidArgument as check_product.
Product prepare_product(const ProductSpec& spec);

/// The name of the weight's tensor if the node is one of the two operators and the weight is stored;
/// nothing for other nodes.
std::optional<std::string> try_product_weight(const Node& node);
/// Packs the weight of such a node as a run would, for images of the sizes that the graph knows.
void pack_product(const Node& node, const TensorMap& tensors);

/// Where x, weight and the rest come from in torch's words.
struct ConvLists {
  c10::IntArrayRef stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
};
/// The geometry of x [batch, channels, …] and the weight. kInvalidArgument if they do not fit.
kernels::ConvShape conv_shape_of(const char* name, c10::IntArrayRef x, c10::IntArrayRef weight,
                                 const ConvLists& lists);
/// [batch, out_channels, …] with as many dimensions as x has.
std::vector<int64_t> conv_result_sizes(const kernels::ConvShape& shape, size_t rank);
/// m rows of k, n columns.
kernels::ConvShape linear_shape(int64_t m, int64_t n, int64_t k);

}  // namespace halftone::static_int8
