// The geometry of a convolution, the same for every type: one to three spatial dimensions, groups, dilation,
// transposed.
//
// Activations are channels last, [batch][depth][height][width][channels]; a 2d convolution has depth 1, a 1d
// one depth and height 1. With o the output and t the tap position in one dimension,
//   convolution  reads the input at     i = o · stride - pad + t · dilation
//   transposed   adds to the output at  o = i · stride - pad + t · dilation
// What lies outside of the input contributes nothing.
#pragma once

#include <array>
#include <cstdint>

namespace halftone::kernels {

inline constexpr int kConvDims = 3;
using ConvExtent = std::array<int64_t, kConvDims>;  ///< depth, height, width

struct ConvShape {
  int64_t batch = 1;
  int64_t in_channels = 1;   ///< of all groups
  int64_t out_channels = 1;  ///< of all groups
  int64_t groups = 1;
  ConvExtent in{1, 1, 1};
  ConvExtent kernel{1, 1, 1};
  ConvExtent stride{1, 1, 1};
  ConvExtent pad{0, 0, 0};  ///< in front; what is needed behind follows from `out`
  ConvExtent dilation{1, 1, 1};
  ConvExtent out{1, 1, 1};
  bool transposed = false;

  int64_t group_in_channels() const { return in_channels / groups; }
  int64_t group_out_channels() const { return out_channels / groups; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
  bool depthwise() const { return groups == in_channels && groups == out_channels; }
  bool operator==(const ConvShape&) const = default;
};

/// The output's size in each dimension, for padding `pad` on both sides (and `output_padding` behind, for
/// transposed ones). Throws kInvalidArgument for sizes that are negative, zero strides or dilations, channels
/// that groups do not divide, an output without pixels, and products past 2^61, naming the dimension.
ConvExtent conv_output(const ConvShape& shape, const ConvExtent& output_padding = {0, 0, 0});

/// Throws as conv_output does, for a shape whose `out` is set already. Kernels call it before anything else.
void check_conv_shape(const char* operation, const ConvShape& shape);

}  // namespace halftone::kernels
