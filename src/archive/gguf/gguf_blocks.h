// The element types of GGUF tensors: how their blocks are laid out, and their numbers as floats or as the
// integers that stand in the file.
//
// A row is a sequence of blocks without gaps. A block holds a fixed number of values in a fixed number of
// bytes: integers of few bits, and the scale (and minimum) that turns them into numbers. All fields are
// little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace halftone {

// NOLINTBEGIN(readability-identifier-naming): ggml's names
/// ggml's numbers for its types, as files have them. A file may hold others.
enum class GgmlType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
};
// NOLINTEND(readability-identifier-naming)

struct GgmlFormat {
  GgmlType type;
  std::string_view name;  ///< "Q4_K", as ggml spells it
  size_t values;          ///< of a block
  size_t bytes;           ///< of a block
  bool readable;          ///< whether dequantize_blocks() knows it
};

/// The format with this number; nullptr if it is not known: then the size of such a tensor is not known
/// either.
const GgmlFormat* try_ggml_format(uint32_t type);
std::span<const GgmlFormat> ggml_formats();
/// "Q4_K"; "type 99" where the number is not known.
std::string ggml_type_text(uint32_t type);
/// "F32, F16, Q4_0, …": what dequantize_blocks() knows.
std::string readable_ggml_types();

/// Writes the numbers of whole blocks, bit for bit as the Python package `gguf` computes them: every product
/// and every sum is rounded to float, none is fused. (Of a NaN only that it is one.) `values` has as many
/// elements as the blocks. Throws kUnsupported for a type that is not readable, kInvalidArgument for sizes
/// that do not fit.
void dequantize_blocks(GgmlType type, std::span<const std::byte> blocks, std::span<float> values);

/// A block of Q4_0, Q4_1 or Q8_0 without arithmetic on floats: value[i] = scale · integers[i] + minimum.
struct GgmlIntegerBlock {
  static constexpr size_t kValues = 32;
  std::array<int8_t, kValues> integers;  ///< Q4_0: -8…7, Q4_1: 0…15, Q8_0: -128…127
  uint16_t scale;                        ///< bits of a half
  uint16_t minimum;                      ///< bits of a half; zero but for Q4_1
};

/// Whether read_integer_block() knows the type.
bool has_integer_blocks(GgmlType type);
/// The block number `index` of a row. Throws kUnsupported for other types, kInvalidArgument if the row ends
/// before it.
GgmlIntegerBlock read_integer_block(GgmlType type, std::span<const std::byte> blocks, size_t index);

}  // namespace halftone
