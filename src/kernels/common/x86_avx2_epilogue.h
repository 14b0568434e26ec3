// The epilogue for eight neighbouring columns of one row, for files compiled for AVX2 or more. Internal
// linkage: see x86_avx2_math.h.
#pragma once

#include "kernels/common/x86_avx2_math.h"

namespace halftone::kernels {
namespace {  // NOLINT(google-build-namespaces)

/// y = activation(sums + bias) + residual, stored as float or bfloat16 at (row, column). `count` columns
/// exist, at most 8. kQuantizedRows never comes here: a whole row must be known first, so the drivers send it
/// through float scratch.
inline void finish8(__m256 sums, const Epilogue& e, int64_t row, int64_t column, int count) {
  if (count <= 0) return;
  __m256 y = sums;
  if (e.bias != nullptr) y = _mm256_add_ps(y, load_part8(e.bias + column, count));
  y = activate8(y, e.activation);
  if (e.residual != nullptr) {
    y = _mm256_add_ps(y, load_part8(e.residual + row * e.residual_stride + column, count));
  }
  const int64_t offset = row * e.out_stride + column;
  if (e.type == OutputType::kBFloat16) {
    uint16_t* out = static_cast<uint16_t*>(e.out) + offset;
    if (count >= 8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), to_bfloat16x8(y));
    } else {
      alignas(16) uint16_t part[8];
      _mm_store_si128(reinterpret_cast<__m128i*>(part), to_bfloat16x8(y));
      for (int i = 0; i < count; ++i) out[i] = part[i];
    }
  } else {
    store_part8(static_cast<float*>(e.out) + offset, y, count);
  }
}

/// Whole vectors to float: the commonest case, without questions for every eight. sums(r, c) gives the sums
/// of row r and columns c to c + 7 of a tile, whose first is (row, column) of the output.
template <Activation A, typename Sums>
inline void finish_as(const Sums& sums, const Epilogue& e, int64_t row, int64_t column, int rows,
                      int columns) {
  for (int c = 0; c < columns; c += 8) {
    const __m256 bias =
        e.bias != nullptr ? _mm256_loadu_ps(e.bias + column + c) : _mm256_set1_ps(-0.0f);  // x + -0 is x
    float* out = static_cast<float*>(e.out) + row * e.out_stride + column + c;
    if (e.residual == nullptr) {
      for (int r = 0; r < rows; ++r, out += e.out_stride)
        _mm256_storeu_ps(out, activate8(_mm256_add_ps(sums(r, c), bias), A));
    } else {
      const float* residual = e.residual + row * e.residual_stride + column + c;
      for (int r = 0; r < rows; ++r, out += e.out_stride, residual += e.residual_stride) {
        const __m256 y = activate8(_mm256_add_ps(sums(r, c), bias), A);
        _mm256_storeu_ps(out, _mm256_add_ps(y, _mm256_loadu_ps(residual)));
      }
    }
  }
}

/// A tile of rows x columns; `columns` may end inside a vector, up to which sums() must be readable.
template <typename Sums>
inline void finish_block(const Sums& sums, const Epilogue& e, int64_t row, int64_t column, int rows,
                         int columns) {
  if (e.type == OutputType::kFloat32 && columns % 8 == 0) {
    switch (e.activation) {
      case Activation::kNone:
        return finish_as<Activation::kNone>(sums, e, row, column, rows, columns);
      case Activation::kRelu:
        return finish_as<Activation::kRelu>(sums, e, row, column, rows, columns);
      case Activation::kGeluErf:
        return finish_as<Activation::kGeluErf>(sums, e, row, column, rows, columns);
      case Activation::kGeluTanh:
        return finish_as<Activation::kGeluTanh>(sums, e, row, column, rows, columns);
      case Activation::kSilu:
        return finish_as<Activation::kSilu>(sums, e, row, column, rows, columns);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; c += 8) finish8(sums(r, c), e, row + r, column + c, columns - c);
  }
}

}  // namespace
}  // namespace halftone::kernels
