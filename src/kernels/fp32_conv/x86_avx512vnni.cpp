// fp32_conv for AVX-512: tiles of up to 12 pixels times 32 channels, 24 sums in registers.
// Compiled for AVX-512 (or emulated, for tests): no inline code from elsewhere.
#include "kernels/fp32_linear/x86_avx512_vectors.h"
// After the AVX-512 intrinsics, whichever they are.
#include "kernels/fp32_conv/kernels.h"
#include "kernels/fp32_conv/x86_conv_multiply.h"

namespace halftone::kernels {
namespace {

void conv_multiply_avx512(const Fp32ConvStep& s) {
  static constexpr ConvMultiplyRows kMore[] = {
      conv_multiply_rows<Avx512Vectors, 7, 1>,  conv_multiply_rows<Avx512Vectors, 8, 1>,
      conv_multiply_rows<Avx512Vectors, 9, 1>,  conv_multiply_rows<Avx512Vectors, 10, 1>,
      conv_multiply_rows<Avx512Vectors, 11, 1>, conv_multiply_rows<Avx512Vectors, 12, 1>};
  if (s.count <= 6) return kConvUpTo6<Avx512Vectors>[s.count - 1](s);
  kMore[s.count - 7](s);
}

}  // namespace

#if defined(HALFTONE_EMULATE_AVX512)
const Fp32ConvFunctions kFp32ConvAvx512Emulated
#else
const Fp32ConvFunctions kFp32ConvAvx512
#endif
    = {conv_multiply_avx512,      conv_finish_avx2,           conv_depthwise_avx2,
       conv_winograd4_input_avx2, conv_winograd4_output_avx2, conv_winograd2_input_avx2,
       conv_winograd2_output_avx2};

}  // namespace halftone::kernels
