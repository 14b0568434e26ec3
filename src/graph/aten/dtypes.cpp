#include "graph/aten/dtypes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/errors.h"

namespace halftone {
namespace {

using c10::ScalarType;

constexpr std::array kPairs = {
    std::pair{DType::kBool, ScalarType::Bool},
    std::pair{DType::kUint8, ScalarType::Byte},
    std::pair{DType::kInt8, ScalarType::Char},
    std::pair{DType::kInt16, ScalarType::Short},
    std::pair{DType::kInt32, ScalarType::Int},
    std::pair{DType::kInt64, ScalarType::Long},
    std::pair{DType::kUint16, ScalarType::UInt16},
    std::pair{DType::kUint32, ScalarType::UInt32},
    std::pair{DType::kUint64, ScalarType::UInt64},
    std::pair{DType::kFloat16, ScalarType::Half},
    std::pair{DType::kBfloat16, ScalarType::BFloat16},
    std::pair{DType::kFloat32, ScalarType::Float},
    std::pair{DType::kFloat64, ScalarType::Double},
    std::pair{DType::kComplex64, ScalarType::ComplexFloat},
    std::pair{DType::kComplex128, ScalarType::ComplexDouble},
    std::pair{DType::kFloat8E4m3, ScalarType::Float8_e4m3fn},
    std::pair{DType::kFloat8E5m2, ScalarType::Float8_e5m2},
};

}  // namespace

ScalarType scalar_type_of(DType dtype) {
  for (const auto& [file, torch] : kPairs) {
    if (file == dtype) return torch;
  }
  fail(ErrorCode::kInternal, "a file dtype has no torch dtype");
}

std::optional<DType> try_dtype_of(ScalarType type) {
  for (const auto& [file, torch] : kPairs) {
    if (torch == type) return file;
  }
  return std::nullopt;
}

at::Tensor tensor_on_bytes(std::span<std::byte> bytes, DType dtype, const std::vector<int64_t>& sizes,
                           const std::shared_ptr<void>& owner) {
  const auto options = at::TensorOptions().dtype(scalar_type_of(dtype));
  if (bytes.empty()) return at::empty(sizes, options);
  const size_t alignment = std::min<size_t>(dtype_size(dtype), alignof(double));
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) {
    return at::from_blob(
        bytes.data(), sizes, [owner](void*) {}, options);
  }
  at::Tensor copy = at::empty(sizes, options);
  std::memcpy(copy.mutable_data_ptr(), bytes.data(), bytes.size());
  return copy;
}

}  // namespace halftone
