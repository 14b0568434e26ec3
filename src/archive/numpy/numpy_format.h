// Shared by the reader and the writer of numpy's files.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "archive/bytes/dtype.h"

namespace halftone::numpy {

inline constexpr std::string_view kMagic = "\x93NUMPY";
inline constexpr std::string_view kExtension = ".npy";

/// The kind and the size that follow the byte order.
inline constexpr std::array<std::pair<DType, std::string_view>, 14> kDtypes = {{{DType::kBool, "b1"},
                                                                                {DType::kUint8, "u1"},
                                                                                {DType::kInt8, "i1"},
                                                                                {DType::kInt16, "i2"},
                                                                                {DType::kInt32, "i4"},
                                                                                {DType::kInt64, "i8"},
                                                                                {DType::kUint16, "u2"},
                                                                                {DType::kUint32, "u4"},
                                                                                {DType::kUint64, "u8"},
                                                                                {DType::kFloat16, "f2"},
                                                                                {DType::kFloat32, "f4"},
                                                                                {DType::kFloat64, "f8"},
                                                                                {DType::kComplex64, "c8"},
                                                                                {DType::kComplex128, "c16"}}};

}  // namespace halftone::numpy
