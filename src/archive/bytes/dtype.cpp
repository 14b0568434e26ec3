#include "archive/bytes/dtype.h"

#include <algorithm>
#include <array>

#include "base/checked.h"

namespace halftone {
namespace {

struct DtypeRow {
  DType dtype;
  size_t size;
  std::string_view safetensors;
};

constexpr std::array kRows = {
    DtypeRow{DType::kBool, 1, "BOOL"},
    DtypeRow{DType::kUint8, 1, "U8"},
    DtypeRow{DType::kInt8, 1, "I8"},
    DtypeRow{DType::kInt16, 2, "I16"},
    DtypeRow{DType::kInt32, 4, "I32"},
    DtypeRow{DType::kInt64, 8, "I64"},
    DtypeRow{DType::kUint16, 2, "U16"},
    DtypeRow{DType::kUint32, 4, "U32"},
    DtypeRow{DType::kUint64, 8, "U64"},
    DtypeRow{DType::kFloat16, 2, "F16"},
    DtypeRow{DType::kBfloat16, 2, "BF16"},
    DtypeRow{DType::kFloat32, 4, "F32"},
    DtypeRow{DType::kFloat64, 8, "F64"},
    DtypeRow{DType::kComplex64, 8, "C64"},
    DtypeRow{DType::kComplex128, 16, ""},
    DtypeRow{DType::kFloat8E4m3, 1, "F8_E4M3"},
    DtypeRow{DType::kFloat8E5m2, 1, "F8_E5M2"},
};

constexpr bool rows_stand_at_their_value() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].dtype) != i) return false;
  }
  return true;
}
static_assert(rows_stand_at_their_value());

}  // namespace

size_t dtype_size(DType dtype) {
  return kRows[static_cast<size_t>(dtype)].size;
}

std::string_view safetensors_name(DType dtype) {
  return kRows[static_cast<size_t>(dtype)].safetensors;
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const DtypeRow& row : kRows) {
    if (row.safetensors == name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<int64_t> tensor_bytes(std::span<const int64_t> sizes, DType dtype) {
  std::optional<int64_t> bytes = static_cast<int64_t>(dtype_size(dtype));
  bool empty = false;
  for (const int64_t size : sizes) {
    if (size < 0) return std::nullopt;
    empty = empty || size == 0;
    bytes = checked_mul(*bytes, std::max<int64_t>(size, 1));
    if (!bytes) return std::nullopt;
  }
  return empty ? 0 : bytes;
}

}  // namespace halftone
