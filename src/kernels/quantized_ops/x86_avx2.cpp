// quantized_ops for AVX2: contiguous elements, 32 at a time. Compiled for AVX2: no inline code from
// elsewhere. The elements left over are copied to a padded piece of the stack.
#include "kernels/quantized_ops/x86_avx2_bytes.h"

namespace halftone::kernels {
namespace {

constexpr int kStep = 32;

inline __m256 quantized8(const float* x, __m256 inverse) {
  return _mm256_mul_ps(_mm256_loadu_ps(x), inverse);
}

template <bool Signed>
void dequantize32(const uint8_t* x, float* y, int64_t count, const QuantParams& params) {
  const __m256i zero = _mm256_set1_epi32(params.zero_point);
  const __m256 scale = _mm256_set1_ps(params.scale);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(y + i, _mm256_mul_ps(centred8<Signed>(x + i, zero), scale));
  if (i == count) return;
  alignas(32) uint8_t bytes[8] = {};
  alignas(32) float floats[8];
  copy_few(bytes, x + i, count - i);
  _mm256_store_ps(floats, _mm256_mul_ps(centred8<Signed>(bytes, zero), scale));
  copy_few(y + i, floats, (count - i) * 4);
}

template <bool Signed>
void requantize32(const uint8_t* x, uint8_t* y, int64_t count, const QuantParams& from,
                  const QuantTarget& to) {
  const ByteTarget target(to);
  const __m256i zero = _mm256_set1_epi32(from.zero_point);
  const __m256 scale = _mm256_set1_ps(from.scale), inverse = _mm256_set1_ps(1.0f / to.params.scale);
  const auto piece = [&](const uint8_t* x32, uint8_t* y32) {
    store32(
        y32,
        [&](int at) {
          return _mm256_mul_ps(_mm256_mul_ps(centred8<Signed>(x32 + at, zero), scale), inverse);
        },
        target);
  };
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) piece(x + i, y + i);
  if (i == count) return;
  alignas(32) uint8_t bytes[kStep] = {};
  copy_few(bytes, x + i, count - i);
  piece(bytes, bytes);
  copy_few(y + i, bytes, count - i);
}

// y = quantize(relu?(a op b)).
template <bool Signed, bool Multiply>
void pair32(const QuantizedPair& p, uint8_t* y, int64_t count, const QuantTarget& to) {
  const ByteTarget target(to);
  const __m256i zero_a = _mm256_set1_epi32(p.a_params.zero_point),
                zero_b = _mm256_set1_epi32(p.b_params.zero_point);
  const __m256 scale_a = _mm256_set1_ps(p.a_params.scale), scale_b = _mm256_set1_ps(p.b_params.scale);
  const __m256 inverse = _mm256_set1_ps(1.0f / to.params.scale);
  const __m256 least = _mm256_set1_ps(p.relu ? 0.0f : -__builtin_inff());
  const auto piece = [&](const uint8_t* a32, const uint8_t* b32, uint8_t* y32) {
    store32(
        y32,
        [&](int at) {
          const __m256 a = _mm256_mul_ps(centred8<Signed>(a32 + at, zero_a), scale_a);
          const __m256 b = _mm256_mul_ps(centred8<Signed>(b32 + at, zero_b), scale_b);
          const __m256 both = Multiply ? _mm256_mul_ps(a, b) : _mm256_add_ps(a, b);
          return _mm256_mul_ps(_mm256_max_ps(least, both), inverse);
        },
        target);
  };
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) piece(p.a + i, p.b + i, y + i);
  if (i == count) return;
  alignas(32) uint8_t a[kStep] = {}, b[kStep] = {};
  copy_few(a, p.a + i, count - i);
  copy_few(b, p.b + i, count - i);
  piece(a, b, a);
  copy_few(y + i, a, count - i);
}

}  // namespace

void quantize_avx2(const float* x, uint8_t* y, int64_t count, const QuantTarget& to) {
  const ByteTarget target(to);
  const __m256 inverse = _mm256_set1_ps(1.0f / to.params.scale);
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep)
    store32(
        y + i, [&](int at) { return quantized8(x + i + at, inverse); }, target);
  if (i == count) return;
  alignas(32) float floats[kStep] = {};
  alignas(32) uint8_t bytes[kStep];
  copy_few(floats, x + i, (count - i) * 4);
  store32(
      bytes, [&](int at) { return quantized8(floats + at, inverse); }, target);
  copy_few(y + i, bytes, count - i);
}

void dequantize_avx2(const uint8_t* x, float* y, int64_t count, const QuantParams& params, bool is_signed) {
  is_signed ? dequantize32<true>(x, y, count, params) : dequantize32<false>(x, y, count, params);
}

void requantize_avx2(const uint8_t* x, uint8_t* y, int64_t count, const QuantParams& from,
                     const QuantTarget& to) {
  to.is_signed ? requantize32<true>(x, y, count, from, to) : requantize32<false>(x, y, count, from, to);
}

void quantized_add_avx2(const QuantizedPair& p, uint8_t* y, int64_t count, const QuantTarget& to) {
  to.is_signed ? pair32<true, false>(p, y, count, to) : pair32<false, false>(p, y, count, to);
}

void quantized_mul_avx2(const QuantizedPair& p, uint8_t* y, int64_t count, const QuantTarget& to) {
  to.is_signed ? pair32<true, true>(p, y, count, to) : pair32<false, true>(p, y, count, to);
}

void quantized_clamp_avx2(const uint8_t* x, uint8_t* y, int64_t count, uint8_t lo, uint8_t hi) {
  const __m256i least = _mm256_set1_epi8(static_cast<char>(lo)),
                most = _mm256_set1_epi8(static_cast<char>(hi));
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), _mm256_min_epu8(_mm256_max_epu8(v, least), most));
  }
  quantized_clamp_scalar(x + i, y + i, count - i, lo, hi);
}

// Sixteen tables of sixteen: an index that lies outside of a table saturates to 128 and more there, for which
// vpshufb gives 0. Two bytes a cycle on Zen 3, twice what single loads give.
void quantized_lookup_avx2(const uint8_t* x, uint8_t* y, int64_t count, const uint8_t* table) {
  alignas(32) uint8_t rows[16][32];
  for (int r = 0; r < 16; ++r) {
    __builtin_memcpy(rows[r], table + r * 16, 16);
    __builtin_memcpy(rows[r] + 16, table + r * 16, 16);
  }
  const __m256i sixteen = _mm256_set1_epi8(16), outside = _mm256_set1_epi8(0x70);
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    __m256i index = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    __m256i found = _mm256_setzero_si256();
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r) {
      const __m256i row = _mm256_load_si256(reinterpret_cast<const __m256i*>(rows[r]));
      found = _mm256_or_si256(found, _mm256_shuffle_epi8(row, _mm256_adds_epu8(index, outside)));
      index = _mm256_sub_epi8(index, sixteen);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), found);
  }
  quantized_lookup_scalar(x + i, y + i, count - i, table);
}

}  // namespace halftone::kernels
