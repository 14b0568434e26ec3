// The arguments of quantized_ops' kernels, and the kernels, one file for each instruction set.
// Contracts: quantized_ops.h and quantized_images.h.
#pragma once

#include "kernels/quantized_ops/quantized_images.h"

namespace halftone::kernels {

/// One output pixel of a pooling: the box of input pixels that lie inside.
struct PoolPixel {
  const uint8_t* x = nullptr;  ///< the box's first pixel
  ConvExtent count{};          ///< pixels in each dimension
  ConvExtent step{};           ///< bytes from one to the next
  int64_t channels = 0;
  uint8_t* y = nullptr;
  int32_t zero_point = 0;   ///< of x; average only
  float multiplier = 0.0f;  ///< average only
  const QuantTarget* to = nullptr;
};

/// One output pixel of a bilinear interpolation.
struct LerpPixel {
  const uint8_t *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
  float w = 0.0f, h = 0.0f;
  int64_t channels = 0;
  uint8_t* y = nullptr;
  int32_t zero_point = 0;  ///< of x
  float multiplier = 1.0f;
  const QuantTarget* to = nullptr;
};

/// Pixels of a box that the kernels can sum in 32 bits.
inline constexpr int64_t kMaxPoolPixels = int64_t{1} << 23;

void quantize_scalar(const float* x, uint8_t* y, int64_t count, const QuantTarget& target);
void dequantize_scalar(const uint8_t* x, float* y, int64_t count, const QuantParams& params, bool is_signed);
void requantize_scalar(const uint8_t* x, uint8_t* y, int64_t count, const QuantParams& from,
                       const QuantTarget& to);
void quantized_add_scalar(const QuantizedPair& pair, uint8_t* y, int64_t count, const QuantTarget& target);
void quantized_mul_scalar(const QuantizedPair& pair, uint8_t* y, int64_t count, const QuantTarget& target);
void quantized_clamp_scalar(const uint8_t* x, uint8_t* y, int64_t count, uint8_t lo, uint8_t hi);
void quantized_lookup_scalar(const uint8_t* x, uint8_t* y, int64_t count, const uint8_t* table);
void quantize_to_channels_last_scalar(const float* x, int64_t x_stride, uint8_t* y, int64_t y_stride,
                                      int64_t channels, int64_t pixels, const QuantTarget& target);
void quantized_max_pool_scalar(const PoolPixel& pixel);
void quantized_average_pool_scalar(const PoolPixel& pixel);
void quantized_lerp_scalar(const LerpPixel& pixel);

void quantize_avx2(const float* x, uint8_t* y, int64_t count, const QuantTarget& target);
void dequantize_avx2(const uint8_t* x, float* y, int64_t count, const QuantParams& params, bool is_signed);
void requantize_avx2(const uint8_t* x, uint8_t* y, int64_t count, const QuantParams& from,
                     const QuantTarget& to);
void quantized_add_avx2(const QuantizedPair& pair, uint8_t* y, int64_t count, const QuantTarget& target);
void quantized_mul_avx2(const QuantizedPair& pair, uint8_t* y, int64_t count, const QuantTarget& target);
void quantized_clamp_avx2(const uint8_t* x, uint8_t* y, int64_t count, uint8_t lo, uint8_t hi);
void quantized_lookup_avx2(const uint8_t* x, uint8_t* y, int64_t count, const uint8_t* table);
void quantize_to_channels_last_avx2(const float* x, int64_t x_stride, uint8_t* y, int64_t y_stride,
                                    int64_t channels, int64_t pixels, const QuantTarget& target);
void quantized_max_pool_avx2(const PoolPixel& pixel);
void quantized_average_pool_avx2(const PoolPixel& pixel);
void quantized_lerp_avx2(const LerpPixel& pixel);

}  // namespace halftone::kernels
