// int8_weight_only_linear for AVX-512: bytes become floats in registers, blocks of up to 12 rows times 32
// columns. Compiled for AVX-512 (or emulated, for tests): no inline code from elsewhere.
#include "kernels/fp32_linear/x86_avx512_vectors.h"
// After the AVX-512 intrinsics, whichever they are.
#include "kernels/fp32_linear/x86_multiply.h"
#include "kernels/int8_weight_only_linear/kernels.h"

namespace halftone::kernels {
namespace {

struct Bytes : Avx512Vectors {
  static constexpr int kElementBytes = 1;
  static void load(const unsigned char* q, Vector& w0, Vector& w1) {
    w0 = bytes_to_floats16(q);
    w1 = bytes_to_floats16(q + 16);
  }
};

}  // namespace

void HALFTONE_AVX512_NAME(int8_multiply_avx512vnni)(const Fp32LinearStep& step) {
  multiply_up_to_12<Bytes>(step);
}

}  // namespace halftone::kernels
