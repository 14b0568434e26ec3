// The K formats: blocks of 256 values whose sub-blocks of 16 or 32 have integer scales of their own.
#include <array>

#include "archive/gguf/gguf_dequantize.h"
#include "base/half.h"

namespace halftone::ggml {
namespace {

constexpr size_t kBlock = 256;

/// Two bits of each value, in Q2_K and Q3_K: value 128·g + 32·s + j has bits 2·s and 2·s + 1 of byte 32·g + j.
int two_bits(const uint8_t* bytes, size_t v) {
  return bytes[32 * (v / 128) + v % 32] >> (2 * (v / 32 % 4)) & 3;
}

/// Four bits of each value, in Q4_K and Q5_K: value 64·g + j has the low bits of byte 32·g + j, value
/// 64·g + 32 + j the high ones.
int four_bits(const uint8_t* bytes, size_t v) {
  return bytes[32 * (v / 64) + v % 32] >> (4 * (v / 32 % 2)) & 0xF;
}

/// The 16 scales of Q3_K, of six bits, in 12 bytes: scale k has its low four bits in byte k % 8 (the low half
/// of it for k < 8), its high two in byte 8 + k % 4, at bit 2·(k / 4). 32 is subtracted.
std::array<int, 16> q3_k_scales(const uint8_t* bytes) {
  std::array<int, 16> scales{};
  for (size_t k = 0; k < scales.size(); ++k) {
    const int low = bytes[k % 8] >> (4 * (k / 8)) & 0xF;
    const int high = bytes[8 + k % 4] >> (2 * (k / 4)) & 3;
    scales[k] = (low | high << 4) - 32;
  }
  return scales;
}

struct ScalesAndMinima {
  std::array<float, 8> scales;  ///< d · the integer scale
  std::array<float, 8> minima;  ///< m · the integer minimum
};

/// Q4_K and Q5_K begin with d, m, and 12 bytes that hold eight scales and eight minima of six bits: those of
/// sub-blocks 0 to 3 are the low six bits of bytes 0 to 3 (scales) and 4 to 7 (minima); those of sub-blocks 4
/// to 7 have their low four bits in bytes 8 to 11 (scales in the low half), and their high two bits on top of
/// bytes 0 to 3 and 4 to 7.
ScalesAndMinima scales_and_minima(const uint8_t* block) {
  const float d = half_to_float(load_u16(block));
  const float m = half_to_float(load_u16(block + 2));
  const uint8_t* bytes = block + 4;
  ScalesAndMinima result{};
  for (size_t k = 0; k < 4; ++k) {
    result.scales[k] = d * static_cast<float>(bytes[k] & 0x3F);
    result.minima[k] = m * static_cast<float>(bytes[4 + k] & 0x3F);
    result.scales[4 + k] = d * static_cast<float>((bytes[8 + k] & 0xF) | (bytes[k] >> 6) << 4);
    result.minima[4 + k] = m * static_cast<float>(bytes[8 + k] >> 4 | (bytes[4 + k] >> 6) << 4);
  }
  return result;
}

}  // namespace

/// 84 bytes: 16 bytes with a scale (low half) and a minimum (high half) for each 16 values, 64 bytes of q, d, m.
/// value = (d · scale) · q - (m · minimum)
void q2_k_to_floats(const uint8_t* blocks, size_t count, float* values) {
  for (; count > 0; --count, blocks += 84, values += kBlock) {
    const float d = half_to_float(load_u16(blocks + 80));
    const float m = half_to_float(load_u16(blocks + 82));
    for (size_t sub = 0; sub < 16; ++sub) {
      const float scale = d * static_cast<float>(blocks[sub] & 0xF);
      const float minimum = m * static_cast<float>(blocks[sub] >> 4);
      for (size_t v = 16 * sub; v < 16 * (sub + 1); ++v)
        values[v] = scale * static_cast<float>(two_bits(blocks + 16, v)) - minimum;
    }
  }
}

/// 110 bytes: 32 bytes of high bits, 64 bytes of low bits, 12 bytes of scales, d.
/// q(v) = low bits - (bit v / 32 of high byte v % 32 is set ? 0 : 4)
/// value = (d · scale) · q
void q3_k_to_floats(const uint8_t* blocks, size_t count, float* values) {
  for (; count > 0; --count, blocks += 110, values += kBlock) {
    const std::array<int, 16> scales = q3_k_scales(blocks + 96);
    const float d = half_to_float(load_u16(blocks + 108));
    for (size_t sub = 0; sub < 16; ++sub) {
      const float scale = d * static_cast<float>(scales[sub]);
      for (size_t v = 16 * sub; v < 16 * (sub + 1); ++v) {
        const int high = blocks[v % 32] >> (v / 32) & 1;
        values[v] = scale * static_cast<float>(two_bits(blocks + 32, v) - 4 * (1 - high));
      }
    }
  }
}

/// 144 bytes: d, m, 12 bytes of scales and minima for each 32 values, 128 bytes of q.
/// value = (d · scale) · q - (m · minimum)
void q4_k_to_floats(const uint8_t* blocks, size_t count, float* values) {
  for (; count > 0; --count, blocks += 144, values += kBlock) {
    const ScalesAndMinima of = scales_and_minima(blocks);
    for (size_t v = 0; v < kBlock; ++v)
      values[v] = of.scales[v / 32] * static_cast<float>(four_bits(blocks + 16, v)) - of.minima[v / 32];
  }
}

/// 176 bytes: d, m, 12 bytes of scales and minima, 32 bytes of high bits, 128 bytes of low bits.
/// q(v) = low bits + 16 · (bit v / 32 of high byte v % 32)
/// value as in Q4_K
void q5_k_to_floats(const uint8_t* blocks, size_t count, float* values) {
  for (; count > 0; --count, blocks += 176, values += kBlock) {
    const ScalesAndMinima of = scales_and_minima(blocks);
    for (size_t v = 0; v < kBlock; ++v) {
      const int high = blocks[16 + v % 32] >> (v / 32) & 1;
      const int q = four_bits(blocks + 48, v) | high << 4;
      values[v] = of.scales[v / 32] * static_cast<float>(q) - of.minima[v / 32];
    }
  }
}

/// 210 bytes: 128 bytes of low four bits, 64 bytes of high two bits, 16 signed scales of a byte, d. Of value
/// 128·g + r: low bits in byte 64·g + r % 64 (the low half for r < 64), high bits in byte 32·g + r % 32, at bit
/// 2·(r / 32).
/// value = (d · scale) · (q - 32)
void q6_k_to_floats(const uint8_t* blocks, size_t count, float* values) {
  for (; count > 0; --count, blocks += 210, values += kBlock) {
    const float d = half_to_float(load_u16(blocks + 208));
    for (size_t v = 0; v < kBlock; ++v) {
      const size_t r = v % 128;
      const int low = blocks[64 * (v / 128) + r % 64] >> (4 * (r / 64)) & 0xF;
      const int high = blocks[128 + 32 * (v / 128) + r % 32] >> (2 * (r / 32)) & 3;
      const float scale = d * static_cast<float>(static_cast<int8_t>(blocks[192 + v / 16]));
      values[v] = scale * static_cast<float>((low | high << 4) - 32);
    }
  }
}

}  // namespace halftone::ggml
