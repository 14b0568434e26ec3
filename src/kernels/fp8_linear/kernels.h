// The kernels of fp8_linear, one set of files for each instruction set. Contracts: fp8_linear.h and float8.h.
#pragma once

#include "kernels/fp8_linear/fp8_linear.h"

namespace halftone::kernels {

void float8_encode_scalar(const float* x, int64_t count, Float8Format format, uint8_t* bytes);
void float8_decode_scalar(const uint8_t* bytes, int64_t count, Float8Format format, float* x);
float fp8_round_row_scalar(const float* x, int64_t k, float* y);
void fp8_expand_scalar(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out);

#if defined(HALFTONE_X86)
void float8_encode_avx2(const float* x, int64_t count, Float8Format format, uint8_t* bytes);
void float8_decode_avx2(const uint8_t* bytes, int64_t count, Float8Format format, float* x);
float fp8_round_row_avx2(const float* x, int64_t k, float* y);
void fp8_expand_avx2(const void* packed, int64_t panel, int64_t k, int64_t steps, float* out);
/// For panels of 16 and of 32.
void fp8_multiply_rows_avx2(const void* packed, const float* rows, int count, int64_t panel, int panels,
                            float* sums);
/// As Fp32LinearKernel::multiply, on panels of bytes; the factors are left to the sums.
void fp8_multiply_e4m3fn_avx512vnni(const Fp32LinearStep& step);
void fp8_multiply_e5m2_avx512vnni(const Fp32LinearStep& step);
/// The same source through SIMDe, linked only into tests.
void fp8_multiply_e4m3fn_avx512vnni_emulated(const Fp32LinearStep& step);
void fp8_multiply_e5m2_avx512vnni_emulated(const Fp32LinearStep& step);
#else
inline constexpr auto float8_encode_avx2 = float8_encode_scalar;
inline constexpr auto float8_decode_avx2 = float8_decode_scalar;
#endif

}  // namespace halftone::kernels
