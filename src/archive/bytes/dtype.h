// Element types as files name them, without torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace halftone {

enum class DType {
  kBool,
  kUint8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint16,
  kUint32,
  kUint64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
  kFloat8E4m3,
  kFloat8E5m2,
};

/// Bytes of one element.
size_t dtype_size(DType dtype);
/// The name in safetensors headers ("F32", "BF16", "F8_E4M3", "C64", …); empty for complex128, which the
/// format lacks.
std::string_view safetensors_name(DType dtype);
std::optional<DType> dtype_from_safetensors(std::string_view name);

/// Bytes of a contiguous tensor. Nothing if a size is negative or if the product overflows 63 bits,
/// zeros counted as ones, because strides are computed with them so.
std::optional<int64_t> tensor_bytes(std::span<const int64_t> sizes, DType dtype);

}  // namespace halftone
