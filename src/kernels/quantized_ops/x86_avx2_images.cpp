// quantized_ops for AVX2: pixels of images, 32 channels at a time. Compiled for AVX2: no inline code from
// elsewhere.
#include "kernels/quantized_ops/x86_avx2_bytes.h"

namespace halftone::kernels {
namespace {

constexpr int kStep = 32;
constexpr int64_t kPixels =
    64;  // quantized at a time, then scattered while they are in the first-level cache

// Calls each(pixel) for the box.
template <typename Each>
inline void for_box(const PoolPixel& p, Each each) {
  for (int64_t d = 0; d < p.count[0]; ++d) {
    for (int64_t h = 0; h < p.count[1]; ++h) {
      const uint8_t* at = p.x + d * p.step[0] + h * p.step[1];
      for (int64_t w = 0; w < p.count[2]; ++w, at += p.step[2]) each(at);
    }
  }
}

// 32 channels, of which `count` exist.
inline __m256i load_channels(const uint8_t* p, int64_t count) {
  if (count >= kStep) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  alignas(32) uint8_t bytes[kStep] = {};
  copy_few(bytes, p, count);
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes));
}

inline void store_channels(uint8_t* p, __m256i v, int64_t count) {
  if (count >= kStep) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
  alignas(32) uint8_t bytes[kStep];
  _mm256_store_si256(reinterpret_cast<__m256i*>(bytes), v);
  copy_few(p, bytes, count);
}

// Sums of 32 channels: 16-bit lanes hold 257 bytes, then they are added to 32-bit ones.
struct Sums32 {
  __m256i low = _mm256_setzero_si256(), high = _mm256_setzero_si256();
  __m256i wide[4] = {low, low, low, low};
  int pixels = 0;

  void add(__m256i bytes) {
    low = _mm256_add_epi16(low, _mm256_cvtepu8_epi16(_mm256_castsi256_si128(bytes)));
    high = _mm256_add_epi16(high, _mm256_cvtepu8_epi16(_mm256_extracti128_si256(bytes, 1)));
    if (++pixels == 257) widen();
  }
  void widen() {
    wide[0] = _mm256_add_epi32(wide[0], _mm256_cvtepu16_epi32(_mm256_castsi256_si128(low)));
    wide[1] = _mm256_add_epi32(wide[1], _mm256_cvtepu16_epi32(_mm256_extracti128_si256(low, 1)));
    wide[2] = _mm256_add_epi32(wide[2], _mm256_cvtepu16_epi32(_mm256_castsi256_si128(high)));
    wide[3] = _mm256_add_epi32(wide[3], _mm256_cvtepu16_epi32(_mm256_extracti128_si256(high, 1)));
    low = high = _mm256_setzero_si256();
    pixels = 0;
  }
};

}  // namespace

void quantize_to_channels_last_avx2(const float* x, int64_t x_stride, uint8_t* y, int64_t y_stride,
                                    int64_t channels, int64_t pixels, const QuantTarget& target) {
  alignas(32) uint8_t bytes[kPixels];
  for (int64_t first = 0; first < pixels; first += kPixels) {
    const int64_t count = pixels - first < kPixels ? pixels - first : kPixels;
    for (int64_t c = 0; c < channels; ++c) {
      quantize_avx2(x + c * x_stride + first, bytes, count, target);
      uint8_t* to = y + first * y_stride + c;
      for (int64_t p = 0; p < count; ++p, to += y_stride) *to = bytes[p];
    }
  }
}

void quantized_max_pool_avx2(const PoolPixel& p) {
  const __m256i lo = _mm256_set1_epi8(static_cast<char>(p.to->lo)),
                hi = _mm256_set1_epi8(static_cast<char>(p.to->hi));
  PoolPixel part = p;
  for (int64_t c = 0; c < p.channels; c += kStep, part.x += kStep) {
    const int64_t count = p.channels - c;
    __m256i most = lo;
    for_box(part, [&](const uint8_t* at) { most = _mm256_max_epu8(most, load_channels(at, count)); });
    store_channels(p.y + c, _mm256_min_epu8(most, hi), count);
  }
}

void quantized_average_pool_avx2(const PoolPixel& p) {
  const ByteTarget target(*p.to);
  const __m256 multiplier = _mm256_set1_ps(p.multiplier);
  const auto pixels = static_cast<int32_t>(p.count[0] * p.count[1] * p.count[2]);
  const __m256i zero = _mm256_set1_epi32(pixels * p.zero_point);
  PoolPixel part = p;
  for (int64_t c = 0; c < p.channels; c += kStep, part.x += kStep) {
    const int64_t count = p.channels - c;
    Sums32 sums;
    for_box(part, [&](const uint8_t* at) { sums.add(load_channels(at, count)); });
    sums.widen();
    const auto scaled = [&](int i) {
      return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(sums.wide[i], zero)), multiplier);
    };
    store_channels(p.y + c, bytes32(scaled(0), scaled(1), scaled(2), scaled(3), target), count);
  }
}

void quantized_lerp_avx2(const LerpPixel& p) {
  const ByteTarget target(*p.to);
  const __m256 w = _mm256_set1_ps(p.w), h = _mm256_set1_ps(p.h), u = _mm256_set1_ps(1.0f - p.w),
               t = _mm256_set1_ps(1.0f - p.h), multiplier = _mm256_set1_ps(p.multiplier);
  const __m256i zero = _mm256_set1_epi32(p.zero_point);
  for (int64_t c = 0; c < p.channels; c += kStep) {
    const int64_t count = p.channels - c;
    alignas(32) uint8_t corner[4][kStep];
    const uint8_t* from[4] = {p.a + c, p.b + c, p.c + c, p.d + c};
    for (int i = 0; i < 4; ++i)
      _mm256_store_si256(reinterpret_cast<__m256i*>(corner[i]), load_channels(from[i], count));
    const auto lerp8 = [&](int at) {
      const auto centred = [&](int i) { return centred8<false>(corner[i] + at, zero); };
      const __m256 above = _mm256_fmadd_ps(w, centred(1), _mm256_mul_ps(u, centred(0)));
      const __m256 below = _mm256_fmadd_ps(w, centred(3), _mm256_mul_ps(u, centred(2)));
      return _mm256_mul_ps(_mm256_fmadd_ps(h, below, _mm256_mul_ps(t, above)), multiplier);
    };
    store_channels(p.y + c, bytes32(lerp8(0), lerp8(8), lerp8(16), lerp8(24), target), count);
  }
}

}  // namespace halftone::kernels
