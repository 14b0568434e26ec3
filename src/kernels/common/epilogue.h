// The epilogue of a linear, applied to its sums before they are stored: bias, activation, residual, output
// format.
#pragma once

#include <cstdint>

namespace halftone::kernels {

enum class Activation : int { kNone, kRelu, kGeluErf, kGeluTanh, kSilu };

inline constexpr Activation kAllActivations[] = {Activation::kNone, Activation::kRelu, Activation::kGeluErf,
                                                 Activation::kGeluTanh, Activation::kSilu};

/// The integers that a row of floats is quantized to.
enum class RowFormat : int {
  kU8,  ///< asymmetric: x ~ scale * (q - zero_point), q and zero_point in [0, 255]
  kS8,  ///< symmetric: x ~ scale * q, q in [-127, 127], stored as two's complement bytes
};

enum class OutputType : int {
  kFloat32,
  kBFloat16,       ///< rounded to nearest even; NaN stays NaN
  kQuantizedRows,  ///< bytes in `row_format`, with a scale and a zero point for each row: the next layer's
                   ///< input
};

/// For row i and column j of a linear with sums s:  y = activation(s + bias[j]) + residual[i][j].
/// All pointers are borrowed for the call. Strides count elements. `out` may be `residual` (same stride),
/// nothing else may overlap.
struct Epilogue {
  const float* bias = nullptr;      ///< [n], or none
  const float* residual = nullptr;  ///< [m][residual_stride], or none
  int64_t residual_stride = 0;
  Activation activation = Activation::kNone;
  OutputType type = OutputType::kFloat32;
  void* out = nullptr;  ///< [m][out_stride] of float, bfloat16 bits or bytes
  int64_t out_stride = 0;
  // Only for kQuantizedRows:
  RowFormat row_format = RowFormat::kU8;
  float* out_scale = nullptr;         ///< [m]
  int32_t* out_zero_point = nullptr;  ///< [m]; written as 0 for kS8
};

/// The scalar forms, which are also the definitions:
///   relu       max(x, 0)
///   gelu_erf   x · Φ(x)
///   gelu_tanh  x · σ(2 · sqrt(2/π) · (x + 0.044715 · x³))
///   silu       x · σ(x)
/// NaN gives NaN. -inf gives NaN for the last three, as 0 · inf does in PyTorch.
float activate(float x, Activation activation);

/// Round to nearest even; a NaN keeps its sign and becomes quiet.
uint16_t to_bfloat16(float x);
float from_bfloat16(uint16_t bits);

/// The bound that every vectorised activation keeps against the double-precision definition, for finite x:
///   |y - exact| <= kActivationRelative * |exact| + kActivationAbsolute.
/// Relative, also in the negative tails, where a sum 1 + erf(x) would have lost all digits. The largest
/// errors stand there, where the exponent of exp is near -87 and its own rounding is 2^-18.
inline constexpr double kActivationRelative = 1.6e-5;
inline constexpr double kActivationAbsolute = 1e-37;

}  // namespace halftone::kernels
