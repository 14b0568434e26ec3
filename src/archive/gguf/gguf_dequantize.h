// Blocks of GGUF tensors to floats, one function a type. Layouts and formulas stand at each function;
// gguf_blocks.h is the contract.
//
// In the formulas d, m: halves that are floats now; q: integers; v: the number of a value in its block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halftone::ggml {

// Each reads `count` blocks and writes all of their values.
void f32_to_floats(const uint8_t* blocks, size_t count, float* values);
void f16_to_floats(const uint8_t* blocks, size_t count, float* values);
void bf16_to_floats(const uint8_t* blocks, size_t count, float* values);
void q4_0_to_floats(const uint8_t* blocks, size_t count, float* values);
void q4_1_to_floats(const uint8_t* blocks, size_t count, float* values);
void q5_0_to_floats(const uint8_t* blocks, size_t count, float* values);
void q5_1_to_floats(const uint8_t* blocks, size_t count, float* values);
void q8_0_to_floats(const uint8_t* blocks, size_t count, float* values);
void q2_k_to_floats(const uint8_t* blocks, size_t count, float* values);
void q3_k_to_floats(const uint8_t* blocks, size_t count, float* values);
void q4_k_to_floats(const uint8_t* blocks, size_t count, float* values);
void q5_k_to_floats(const uint8_t* blocks, size_t count, float* values);
void q6_k_to_floats(const uint8_t* blocks, size_t count, float* values);

/// Two bytes, low byte first.
inline uint16_t load_u16(const uint8_t* bytes) {
  return static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
}

/// Four bytes, low byte first.
inline uint32_t load_u32(const uint8_t* bytes) {
  return static_cast<uint32_t>(load_u16(bytes)) | static_cast<uint32_t>(load_u16(bytes + 2)) << 16;
}

}  // namespace halftone::ggml
