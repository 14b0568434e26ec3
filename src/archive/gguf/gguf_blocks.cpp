#include "archive/gguf/gguf_blocks.h"

#include <algorithm>

#include "archive/gguf/gguf_dequantize.h"
#include "base/errors.h"

namespace halftone {
namespace {

// By number. Those that are not readable are here for their sizes.
constexpr std::array kFormats = {
    GgmlFormat{GgmlType::kF32, "F32", 1, 4, true},
    GgmlFormat{GgmlType::kF16, "F16", 1, 2, true},
    GgmlFormat{GgmlType::kQ4_0, "Q4_0", 32, 18, true},
    GgmlFormat{GgmlType::kQ4_1, "Q4_1", 32, 20, true},
    GgmlFormat{GgmlType::kQ5_0, "Q5_0", 32, 22, true},
    GgmlFormat{GgmlType::kQ5_1, "Q5_1", 32, 24, true},
    GgmlFormat{GgmlType::kQ8_0, "Q8_0", 32, 34, true},
    GgmlFormat{GgmlType::kQ8_1, "Q8_1", 32, 40, false},
    GgmlFormat{GgmlType::kQ2_K, "Q2_K", 256, 84, true},
    GgmlFormat{GgmlType::kQ3_K, "Q3_K", 256, 110, true},
    GgmlFormat{GgmlType::kQ4_K, "Q4_K", 256, 144, true},
    GgmlFormat{GgmlType::kQ5_K, "Q5_K", 256, 176, true},
    GgmlFormat{GgmlType::kQ6_K, "Q6_K", 256, 210, true},
    GgmlFormat{GgmlType::kQ8_K, "Q8_K", 256, 292, false},
    GgmlFormat{GgmlType::kIQ2_XXS, "IQ2_XXS", 256, 66, false},
    GgmlFormat{GgmlType::kIQ2_XS, "IQ2_XS", 256, 74, false},
    GgmlFormat{GgmlType::kIQ3_XXS, "IQ3_XXS", 256, 98, false},
    GgmlFormat{GgmlType::kIQ1_S, "IQ1_S", 256, 50, false},
    GgmlFormat{GgmlType::kIQ4_NL, "IQ4_NL", 32, 18, false},
    GgmlFormat{GgmlType::kIQ3_S, "IQ3_S", 256, 110, false},
    GgmlFormat{GgmlType::kIQ2_S, "IQ2_S", 256, 82, false},
    GgmlFormat{GgmlType::kIQ4_XS, "IQ4_XS", 256, 136, false},
    GgmlFormat{GgmlType::kI8, "I8", 1, 1, false},
    GgmlFormat{GgmlType::kI16, "I16", 1, 2, false},
    GgmlFormat{GgmlType::kI32, "I32", 1, 4, false},
    GgmlFormat{GgmlType::kI64, "I64", 1, 8, false},
    GgmlFormat{GgmlType::kF64, "F64", 1, 8, false},
    GgmlFormat{GgmlType::kIQ1_M, "IQ1_M", 256, 56, false},
    GgmlFormat{GgmlType::kBF16, "BF16", 1, 2, true},
    GgmlFormat{GgmlType::kTQ1_0, "TQ1_0", 256, 54, false},
    GgmlFormat{GgmlType::kTQ2_0, "TQ2_0", 256, 66, false},
    GgmlFormat{GgmlType::kMXFP4, "MXFP4", 32, 17, false},
    GgmlFormat{GgmlType::kNVFP4, "NVFP4", 64, 36, false},
    GgmlFormat{GgmlType::kQ1_0, "Q1_0", 128, 18, false},
};

using ToFloats = void (*)(const uint8_t* blocks, size_t count, float* values);

ToFloats to_floats(GgmlType type) {
  switch (type) {
    case GgmlType::kF32:
      return ggml::f32_to_floats;
    case GgmlType::kF16:
      return ggml::f16_to_floats;
    case GgmlType::kBF16:
      return ggml::bf16_to_floats;
    case GgmlType::kQ4_0:
      return ggml::q4_0_to_floats;
    case GgmlType::kQ4_1:
      return ggml::q4_1_to_floats;
    case GgmlType::kQ5_0:
      return ggml::q5_0_to_floats;
    case GgmlType::kQ5_1:
      return ggml::q5_1_to_floats;
    case GgmlType::kQ8_0:
      return ggml::q8_0_to_floats;
    case GgmlType::kQ2_K:
      return ggml::q2_k_to_floats;
    case GgmlType::kQ3_K:
      return ggml::q3_k_to_floats;
    case GgmlType::kQ4_K:
      return ggml::q4_k_to_floats;
    case GgmlType::kQ5_K:
      return ggml::q5_k_to_floats;
    case GgmlType::kQ6_K:
      return ggml::q6_k_to_floats;
    default:
      return nullptr;
  }
}

const uint8_t* unsigned_bytes(std::span<const std::byte> bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

/// 16 bytes with an integer in each half: the low halves first.
void read_halves(const uint8_t* bytes, int offset, std::span<int8_t, GgmlIntegerBlock::kValues> integers) {
  for (size_t i = 0; i < integers.size() / 2; ++i) {
    integers[i] = static_cast<int8_t>((bytes[i] & 0xF) + offset);
    integers[i + integers.size() / 2] = static_cast<int8_t>((bytes[i] >> 4) + offset);
  }
}

}  // namespace

std::span<const GgmlFormat> ggml_formats() {
  return kFormats;
}

const GgmlFormat* try_ggml_format(uint32_t type) {
  const auto number = [](const GgmlFormat& format) { return static_cast<uint32_t>(format.type); };
  const auto* found =
      std::lower_bound(kFormats.begin(), kFormats.end(), type,
                       [&](const GgmlFormat& format, uint32_t wanted) { return number(format) < wanted; });
  return found != kFormats.end() && number(*found) == type ? &*found : nullptr;
}

std::string ggml_type_text(uint32_t type) {
  const GgmlFormat* format = try_ggml_format(type);
  return format != nullptr ? std::string(format->name) : fmt::format("type {}", type);
}

std::string readable_ggml_types() {
  std::string names;
  for (const GgmlFormat& format : kFormats) {
    if (format.readable) names += (names.empty() ? "" : ", ") + std::string(format.name);
  }
  return names;
}

void dequantize_blocks(GgmlType type, std::span<const std::byte> blocks, std::span<float> values) {
  const ToFloats convert = to_floats(type);
  const GgmlFormat* format = try_ggml_format(static_cast<uint32_t>(type));
  if (convert == nullptr || format == nullptr) {
    fail(ErrorCode::kUnsupported, "numbers of {} are not read; those of {} are",
         ggml_type_text(static_cast<uint32_t>(type)), readable_ggml_types());
  }
  const size_t count = blocks.size() / format->bytes;
  if (blocks.size() % format->bytes != 0 || values.size() % format->values != 0 ||
      values.size() / format->values != count) {
    fail(ErrorCode::kInvalidArgument, "{} bytes of {} are not {} values", blocks.size(), format->name,
         values.size());
  }
  convert(unsigned_bytes(blocks), count, values.data());
}

bool has_integer_blocks(GgmlType type) {
  return type == GgmlType::kQ4_0 || type == GgmlType::kQ4_1 || type == GgmlType::kQ8_0;
}

GgmlIntegerBlock read_integer_block(GgmlType type, std::span<const std::byte> blocks, size_t index) {
  if (!has_integer_blocks(type)) {
    fail(ErrorCode::kUnsupported, "the integers of {} blocks are not given; those of Q4_0, Q4_1 and Q8_0 are",
         ggml_type_text(static_cast<uint32_t>(type)));
  }
  const GgmlFormat& format = *try_ggml_format(static_cast<uint32_t>(type));
  if (index >= blocks.size() / format.bytes) {
    fail(ErrorCode::kInvalidArgument, "{} bytes of {} have no block {}", blocks.size(), format.name, index);
  }
  const uint8_t* block = unsigned_bytes(blocks) + index * format.bytes;
  GgmlIntegerBlock result{};
  result.scale = ggml::load_u16(block);
  if (type == GgmlType::kQ4_0) {
    read_halves(block + 2, -8, result.integers);
  } else if (type == GgmlType::kQ4_1) {
    result.minimum = ggml::load_u16(block + 2);
    read_halves(block + 4, 0, result.integers);
  } else {
    for (size_t i = 0; i < result.integers.size(); ++i)
      result.integers[i] = static_cast<int8_t>(block[2 + i]);
  }
  return result;
}

}  // namespace halftone
