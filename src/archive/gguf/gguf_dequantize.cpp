// Plain numbers, and the formats with blocks of 32 values.
#include "archive/gguf/gguf_dequantize.h"

#include <bit>

#include "base/half.h"

namespace halftone::ggml {
namespace {

// Of a block of 32: the low bits of its bytes are the first half, the high bits the second.
constexpr size_t kHalf = 16;

}  // namespace

void f32_to_floats(const uint8_t* blocks, size_t count, float* values) {
  for (size_t i = 0; i < count; ++i) values[i] = std::bit_cast<float>(load_u32(blocks + 4 * i));
}

void f16_to_floats(const uint8_t* blocks, size_t count, float* values) {
  for (size_t i = 0; i < count; ++i) values[i] = half_to_float(load_u16(blocks + 2 * i));
}

void bf16_to_floats(const uint8_t* blocks, size_t count, float* values) {
  for (size_t i = 0; i < count; ++i) values[i] = bfloat16_to_float(load_u16(blocks + 2 * i));
}

/// 18 bytes: d, 16 bytes of q.  q(v) = low four bits of byte v, for v ≥ 16 high four bits of byte v - 16.
/// value = d · (q - 8)
void q4_0_to_floats(const uint8_t* blocks, size_t count, float* values) {
  for (; count > 0; --count, blocks += 18, values += 2 * kHalf) {
    const float d = half_to_float(load_u16(blocks));
    for (size_t i = 0; i < kHalf; ++i) {
      values[i] = d * static_cast<float>((blocks[2 + i] & 0xF) - 8);
      values[i + kHalf] = d * static_cast<float>((blocks[2 + i] >> 4) - 8);
    }
  }
}

/// 20 bytes: d, m, 16 bytes of q as in Q4_0.
/// value = d · q + m
void q4_1_to_floats(const uint8_t* blocks, size_t count, float* values) {
  for (; count > 0; --count, blocks += 20, values += 2 * kHalf) {
    const float d = half_to_float(load_u16(blocks));
    const float m = half_to_float(load_u16(blocks + 2));
    for (size_t i = 0; i < kHalf; ++i) {
      values[i] = d * static_cast<float>(blocks[4 + i] & 0xF) + m;
      values[i + kHalf] = d * static_cast<float>(blocks[4 + i] >> 4) + m;
    }
  }
}

/// 22 bytes: d, 32 bits of h, 16 bytes of the low four bits as in Q4_0.  q(v) = low bits + 16 · (bit v of h)
/// value = d · (q - 16)
void q5_0_to_floats(const uint8_t* blocks, size_t count, float* values) {
  for (; count > 0; --count, blocks += 22, values += 2 * kHalf) {
    const float d = half_to_float(load_u16(blocks));
    const uint32_t h = load_u32(blocks + 2);
    for (size_t i = 0; i < kHalf; ++i) {
      const uint32_t first = (blocks[6 + i] & 0xFU) | (h >> i & 1U) << 4;
      const uint32_t second = (blocks[6 + i] >> 4U) | (h >> (i + kHalf) & 1U) << 4;
      values[i] = d * static_cast<float>(static_cast<int>(first) - 16);
      values[i + kHalf] = d * static_cast<float>(static_cast<int>(second) - 16);
    }
  }
}

/// 24 bytes: d, m, 32 bits of h, 16 bytes; q as in Q5_0.
/// value = d · q + m
void q5_1_to_floats(const uint8_t* blocks, size_t count, float* values) {
  for (; count > 0; --count, blocks += 24, values += 2 * kHalf) {
    const float d = half_to_float(load_u16(blocks));
    const float m = half_to_float(load_u16(blocks + 2));
    const uint32_t h = load_u32(blocks + 4);
    for (size_t i = 0; i < kHalf; ++i) {
      const uint32_t first = (blocks[8 + i] & 0xFU) | (h >> i & 1U) << 4;
      const uint32_t second = (blocks[8 + i] >> 4U) | (h >> (i + kHalf) & 1U) << 4;
      values[i] = d * static_cast<float>(first) + m;
      values[i + kHalf] = d * static_cast<float>(second) + m;
    }
  }
}

/// 34 bytes: d, 32 signed bytes q.
/// value = d · q
void q8_0_to_floats(const uint8_t* blocks, size_t count, float* values) {
  for (; count > 0; --count, blocks += 34, values += 2 * kHalf) {
    const float d = half_to_float(load_u16(blocks));
    for (size_t i = 0; i < 2 * kHalf; ++i)
      values[i] = d * static_cast<float>(static_cast<int8_t>(blocks[2 + i]));
  }
}

}  // namespace halftone::ggml
