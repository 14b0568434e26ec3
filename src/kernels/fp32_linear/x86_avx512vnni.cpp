// fp32_linear for AVX-512: blocks of up to 12 rows times 32 columns, 24 sums in registers.
// Compiled for AVX-512 (or emulated, for tests): no inline code from elsewhere.
#include "kernels/fp32_linear/x86_avx512_vectors.h"
// After the AVX-512 intrinsics, whichever they are.
#include "kernels/fp32_linear/kernels.h"
#include "kernels/fp32_linear/x86_multiply.h"

namespace halftone::kernels {
namespace {

struct Floats : Avx512Vectors {
  static constexpr int kElementBytes = 4;
  static void load(const unsigned char* at, Vector& w0, Vector& w1) {
    w0 = _mm512_loadu_ps(reinterpret_cast<const float*>(at));
    w1 = _mm512_loadu_ps(reinterpret_cast<const float*>(at) + 16);
  }
};

}  // namespace

void HALFTONE_AVX512_NAME(fp32_multiply_avx512vnni)(const Fp32LinearStep& s) {
  multiply_up_to_12<Floats>(s);
}

}  // namespace halftone::kernels
