// attention's two products for AVX-512: blocks of up to 6 rows, twelve sums in registers. Compiled for
// AVX-512 (or emulated, for tests): no inline code from elsewhere.
#include "kernels/fp32_linear/x86_avx512_vectors.h"
// After the AVX-512 intrinsics, whichever they are.
#include "kernels/attention/kernels.h"
#include "kernels/attention/x86_products.h"

namespace halftone::kernels {
namespace {

struct Columns : Avx512Vectors {
  static Vector load(const float* p) { return read(p); }
  static void store(float* p, Vector v) { write(p, v); }
};

// Whole vectors of columns here, the rest as AVX2 does it.
template <int R, int C>
void all_columns(const AttentionValuesStep& s) {
  int64_t column = 0;
  for (; column + 16 * C <= s.columns; column += 16 * C) values<R, C>(s, column, Columns{});
  for (; column + 16 <= s.columns; column += 16) values<R, 1>(s, column, Columns{});
  if (column == s.columns) return;
  AttentionValuesStep rest = s;
  rest.v += column;
  rest.out += column;
  rest.columns -= column;
  attention_values_avx2(rest);
}

}  // namespace

void HALFTONE_AVX512_NAME(attention_scores_avx512vnni)(const AttentionScoresStep& s) {
  scores_up_to_6<Avx512Vectors>(s);
}

void HALFTONE_AVX512_NAME(attention_values_avx512vnni)(const AttentionValuesStep& s) {
  using Values = void (*)(const AttentionValuesStep&);
  static constexpr Values kRows[] = {all_columns<1, 8>, all_columns<2, 4>, all_columns<3, 4>,
                                     all_columns<4, 2>, all_columns<5, 2>, all_columns<6, 2>};
  kRows[s.count - 1](s);
}

}  // namespace halftone::kernels
