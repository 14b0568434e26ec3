// bf16_linear for AVX-512 (no more than AVX-512F; the instructions for bfloat16 round their sums otherwise).
// Compiled for AVX-512 (or emulated, for tests): no inline code from elsewhere.
#include "kernels/fp32_linear/x86_avx512_vectors.h"
// After the AVX-512 intrinsics, whichever they are.
#include "kernels/bf16_linear/kernels.h"
#include "kernels/fp32_linear/x86_multiply.h"

namespace halftone::kernels {
namespace {

struct Bfloat16s : Avx512Vectors {
  static constexpr int kElementBytes = 2;
  static void load(const unsigned char* at, Vector& w0, Vector& w1) {
    const __m512i lanes = _mm512_loadu_si512(at);
    w0 = _mm512_castsi512_ps(shift_up16(lanes));
    w1 = _mm512_castsi512_ps(_mm512_and_si512(lanes, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
  }
};

}  // namespace

void HALFTONE_AVX512_NAME(bf16_multiply_avx512vnni)(const Fp32LinearStep& s) {
  multiply_up_to_12<Bfloat16s>(s);
}

}  // namespace halftone::kernels
