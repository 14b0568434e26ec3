// quantized_ops: what a statically quantized network does between its convolutions, on u8 tensors: the table
// of kernels, and the operations on contiguous elements. Images: quantized_images.h.
//
// With scale s and zero point z a byte q stands for (q - z) · s. Every operation here is its float definition
// between a dequantize and a quantize, each a single rounded float operation in the order written, so the
// bytes are those of ATen's reference (dequantize, float op, quantize_per_tensor) and the same on every
// instruction set:
//   dequantize  x = float(q - z) · s
//   quantize    q = clamp(rint(x · (1 / s) + z), lo, hi)     rint rounds to nearest even; NaN gives hi
//   requantize  quantize(dequantize(q))                      a plain copy if both parameters are equal
//   add         quantize(relu?(dequantize(a) + dequantize(b)))
//   mul         quantize(relu?(dequantize(a) · dequantize(b)))
//   clamp       y = min(max(q, lo), hi)
//   lookup      y = table[q]: any function of one element (sigmoid, hardswish, …), exact by definition
// s8 tensors are bytes with `is_signed`: the byte is two's complement and z, lo, hi count from -128.
// Inputs of add, mul and requantize have the signedness of the target. y may be an input of the same element
// size. Counts of 0 do nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "cpu/isa.h"
#include "cpu/parallel_for.h"

namespace halftone::kernels {

/// How bytes stand for numbers.
struct QuantParams {
  float scale = 1.0f;  ///< finite, not below FLT_MIN
  int32_t zero_point = 0;
  friend bool operator==(const QuantParams&, const QuantParams&) = default;
};

/// A quantization with the range that its bytes may use; relu is lo = max(lo, zero_point).
struct QuantTarget {
  QuantParams params;
  int32_t lo = 0, hi = 255;  ///< [-128, 127] for is_signed
  bool is_signed = false;
};

struct QuantizedPair {
  const uint8_t *a = nullptr, *b = nullptr;
  QuantParams a_params, b_params;
  bool relu = false;
};

struct PoolPixel;
struct LerpPixel;

struct QuantizedOpsProblem {};

/// Functions on one piece of work; count elements each. The drivers below split and call them.
struct QuantizedOpsKernel {
  const char* name;
  Isa isa;
  const char* (*refuse)(const QuantizedOpsProblem&);
  void (*quantize)(const float* x, uint8_t* y, int64_t count, const QuantTarget& target);
  void (*dequantize)(const uint8_t* x, float* y, int64_t count, const QuantParams& params, bool is_signed);
  void (*requantize)(const uint8_t* x, uint8_t* y, int64_t count, const QuantParams& from,
                     const QuantTarget& to);
  void (*add)(const QuantizedPair& pair, uint8_t* y, int64_t count, const QuantTarget& target);
  void (*mul)(const QuantizedPair& pair, uint8_t* y, int64_t count, const QuantTarget& target);
  void (*clamp)(const uint8_t* x, uint8_t* y, int64_t count, uint8_t lo, uint8_t hi);
  void (*lookup)(const uint8_t* x, uint8_t* y, int64_t count, const uint8_t* table);
  /// [channels][pixels] floats to [pixels][channels] bytes.
  void (*quantize_to_channels_last)(const float* x, int64_t x_stride, uint8_t* y, int64_t y_stride,
                                    int64_t channels, int64_t pixels, const QuantTarget& target);
  void (*max_pool)(const PoolPixel& pixel);
  void (*average_pool)(const PoolPixel& pixel);
  void (*lerp)(const LerpPixel& pixel);
};

/// Best first, scalar last.
std::span<const QuantizedOpsKernel> quantized_ops_kernels();
const QuantizedOpsKernel& choose_quantized_ops(Isa isa = active_isa());

/// Each splits `count` elements into pieces. All throw kInvalidArgument for a negative count, a scale that is
/// not finite and at least FLT_MIN, and zero points or limits outside of the byte's range.
void quantize_all(const QuantizedOpsKernel& kernel, const float* x, uint8_t* y, int64_t count,
                  const QuantTarget& target, ParallelFor& parallel_for);
void dequantize_all(const QuantizedOpsKernel& kernel, const uint8_t* x, float* y, int64_t count,
                    const QuantParams& params, bool is_signed, ParallelFor& parallel_for);
void quantized_add(const QuantizedOpsKernel& kernel, const QuantizedPair& pair, uint8_t* y, int64_t count,
                   const QuantTarget& target, ParallelFor& parallel_for);
void quantized_mul(const QuantizedOpsKernel& kernel, const QuantizedPair& pair, uint8_t* y, int64_t count,
                   const QuantTarget& target, ParallelFor& parallel_for);
void quantized_clamp(const QuantizedOpsKernel& kernel, const uint8_t* x, uint8_t* y, int64_t count,
                     uint8_t lo, uint8_t hi, ParallelFor& parallel_for);
void quantized_lookup(const QuantizedOpsKernel& kernel, const uint8_t* x, uint8_t* y, int64_t count,
                      const uint8_t* table, ParallelFor& parallel_for);

/// table[q] = quantize(function(dequantize(q))) for all 256 bytes, in float.
void make_quantized_table(const std::function<float(float)>& function, const QuantParams& from,
                          const QuantTarget& to, uint8_t* table);

/// `rows` rows of `count` bytes, requantized from one place to another: a part of a concatenation along
/// channels (rows are pixels, y_stride the channels of the result) or a copy between strided tensors.
struct RequantizeRows {
  const uint8_t* x = nullptr;
  int64_t x_stride = 0;
  uint8_t* y = nullptr;
  int64_t y_stride = 0;
  int64_t rows = 0;
  int64_t count = 0;
};
void requantize_rows(const QuantizedOpsKernel& kernel, const RequantizeRows& rows, const QuantParams& from,
                     const QuantTarget& to, ParallelFor& parallel_for);

}  // namespace halftone::kernels
