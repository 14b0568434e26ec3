// File dtypes as torch dtypes, and tensors that live in a file's bytes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "archive/bytes/dtype.h"

namespace halftone {

c10::ScalarType scalar_type_of(DType dtype);
/// Nothing if files have no such dtype (quantized types, for instance).
std::optional<DType> try_dtype_of(c10::ScalarType type);

/// A row-major tensor on `bytes`, which `owner` keeps alive; a copy where the bytes are misaligned for the
/// dtype. The caller has checked that dtype and sizes give exactly bytes.size().
at::Tensor tensor_on_bytes(std::span<std::byte> bytes, DType dtype, const std::vector<int64_t>& sizes,
                           const std::shared_ptr<void>& owner);

}  // namespace halftone
