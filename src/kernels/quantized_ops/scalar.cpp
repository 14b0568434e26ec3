// quantized_ops in plain C++: the formulas of the contracts, one element at a time.
#include <algorithm>
#include <cmath>

#include "kernels/quantized_ops/kernels.h"

namespace halftone::kernels {
namespace {

// rint(f + zero point) within the limits, as a byte. The limits are integers, so clamping before rounding is
// the same; NaN gives the upper one.
uint8_t to_byte(float f, const QuantTarget& t) {
  const auto top = static_cast<float>(t.hi), bottom = static_cast<float>(t.lo);
  f = f + static_cast<float>(t.params.zero_point);
  f = f < top ? f : top;
  f = f > bottom ? f : bottom;
  return static_cast<uint8_t>(static_cast<int>(std::nearbyint(f)));
}

float from_byte(uint8_t q, const QuantParams& p, bool is_signed) {
  const int value = is_signed ? static_cast<int8_t>(q) : q;
  return static_cast<float>(value - p.zero_point) * p.scale;
}

uint8_t quantize_sum(float x, bool relu, float inverse, const QuantTarget& target) {
  return to_byte((relu && x < 0.0f ? 0.0f : x) * inverse, target);
}

// Calls each(pixel) for the box.
template <typename Each>
void for_box(const PoolPixel& p, Each each) {
  for (int64_t d = 0; d < p.count[0]; ++d)
    for (int64_t h = 0; h < p.count[1]; ++h)
      for (int64_t w = 0; w < p.count[2]; ++w) each(p.x + d * p.step[0] + h * p.step[1] + w * p.step[2]);
}

}  // namespace

void quantize_scalar(const float* x, uint8_t* y, int64_t count, const QuantTarget& target) {
  const float inverse = 1.0f / target.params.scale;
  for (int64_t i = 0; i < count; ++i) y[i] = to_byte(x[i] * inverse, target);
}

void dequantize_scalar(const uint8_t* x, float* y, int64_t count, const QuantParams& params, bool is_signed) {
  for (int64_t i = 0; i < count; ++i) y[i] = from_byte(x[i], params, is_signed);
}

void requantize_scalar(const uint8_t* x, uint8_t* y, int64_t count, const QuantParams& from,
                       const QuantTarget& to) {
  const float inverse = 1.0f / to.params.scale;
  for (int64_t i = 0; i < count; ++i) y[i] = to_byte(from_byte(x[i], from, to.is_signed) * inverse, to);
}

void quantized_add_scalar(const QuantizedPair& p, uint8_t* y, int64_t count, const QuantTarget& target) {
  const float inverse = 1.0f / target.params.scale;
  for (int64_t i = 0; i < count; ++i) {
    const float sum =
        from_byte(p.a[i], p.a_params, target.is_signed) + from_byte(p.b[i], p.b_params, target.is_signed);
    y[i] = quantize_sum(sum, p.relu, inverse, target);
  }
}

void quantized_mul_scalar(const QuantizedPair& p, uint8_t* y, int64_t count, const QuantTarget& target) {
  const float inverse = 1.0f / target.params.scale;
  for (int64_t i = 0; i < count; ++i) {
    const float product =
        from_byte(p.a[i], p.a_params, target.is_signed) * from_byte(p.b[i], p.b_params, target.is_signed);
    y[i] = quantize_sum(product, p.relu, inverse, target);
  }
}

void quantized_clamp_scalar(const uint8_t* x, uint8_t* y, int64_t count, uint8_t lo, uint8_t hi) {
  for (int64_t i = 0; i < count; ++i) y[i] = std::min(std::max(x[i], lo), hi);
}

void quantized_lookup_scalar(const uint8_t* x, uint8_t* y, int64_t count, const uint8_t* table) {
  for (int64_t i = 0; i < count; ++i) y[i] = table[x[i]];
}

void quantize_to_channels_last_scalar(const float* x, int64_t x_stride, uint8_t* y, int64_t y_stride,
                                      int64_t channels, int64_t pixels, const QuantTarget& target) {
  const float inverse = 1.0f / target.params.scale;
  for (int64_t p = 0; p < pixels; ++p)
    for (int64_t c = 0; c < channels; ++c)
      y[p * y_stride + c] = to_byte(x[c * x_stride + p] * inverse, target);
}

void quantized_max_pool_scalar(const PoolPixel& p) {
  const auto lo = static_cast<uint8_t>(p.to->lo), hi = static_cast<uint8_t>(p.to->hi);
  std::fill_n(p.y, p.channels, lo);
  for_box(p, [&](const uint8_t* pixel) {
    for (int64_t c = 0; c < p.channels; ++c) p.y[c] = std::max(p.y[c], pixel[c]);
  });
  for (int64_t c = 0; c < p.channels; ++c) p.y[c] = std::min(p.y[c], hi);
}

void quantized_average_pool_scalar(const PoolPixel& p) {
  for (int64_t c = 0; c < p.channels; ++c) {
    int32_t sum = 0;
    for_box(p, [&](const uint8_t* pixel) { sum += pixel[c] - p.zero_point; });
    p.y[c] = to_byte(static_cast<float>(sum) * p.multiplier, *p.to);
  }
}

void quantized_lerp_scalar(const LerpPixel& p) {
  const float u = 1.0f - p.w, t = 1.0f - p.h;
  const auto centred = [&](uint8_t q) { return static_cast<float>(q - p.zero_point); };
  for (int64_t i = 0; i < p.channels; ++i) {
    const float above = std::fma(p.w, centred(p.b[i]), u * centred(p.a[i]));
    const float below = std::fma(p.w, centred(p.d[i]), u * centred(p.c[i]));
    p.y[i] = to_byte(std::fma(p.h, below, t * above) * p.multiplier, *p.to);
  }
}

}  // namespace halftone::kernels
