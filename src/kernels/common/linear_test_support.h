// Shared by the tests of several linears.
#pragma once

#include "cpu/thread_pool.h"
#include "kernels/common/epilogue.h"
#include "kernels/common/test_support.h"
#include "kernels/quantize_rows/quantize_rows.h"

namespace halftone::kernels::testing {

/// `run(epilogue, ParallelFor)` runs a linear whose float output [m][n] is `floats`; the other output formats
/// must be made from exactly those.
template <typename Run>
void expect_output_formats(const std::vector<float>& floats, int64_t n, Run run) {
  const int64_t m = static_cast<int64_t>(floats.size()) / n;
  ThreadPool pool(2);
  Guarded<uint16_t> halves(m * n);
  Epilogue e;
  e.type = OutputType::kBFloat16;
  e.out = halves.data();
  e.out_stride = n;
  run(e, pool);
  for (int64_t i = 0; i < m * n; ++i) EXPECT_EQ(halves[i], to_bfloat16(floats[static_cast<size_t>(i)])) << i;
  for (RowFormat format : {RowFormat::kU8, RowFormat::kS8}) {
    Guarded<uint8_t> bytes(m * n);
    Guarded<float> scale(m);
    Guarded<int32_t> zero(m, -1);
    e.type = OutputType::kQuantizedRows;
    e.row_format = format;
    e.out = bytes.data();
    e.out_scale = scale.data();
    e.out_zero_point = zero.data();
    run(e, pool);
    std::vector<uint8_t> q(static_cast<size_t>(n));
    for (int64_t r = 0; r < m; ++r) {
      const RowScale want = quantize_rows_kernels().back().row(floats.data() + r * n, n, format, q.data());
      EXPECT_EQ(scale[r], want.scale) << r;
      EXPECT_EQ(zero[r], want.zero_point) << r;
      EXPECT_EQ(std::memcmp(q.data(), bytes.data() + r * n, q.size()), 0) << r;
    }
  }
}

/// Rounds `x` to what bfloat16 holds exactly, and gives its bits.
inline void round_to_bfloat16(Guarded<float>& x, Guarded<uint16_t>& bits) {
  for (int64_t i = 0; i < x.size(); ++i) {
    bits[i] = to_bfloat16(x[i]);
    x[i] = from_bfloat16(bits[i]);
  }
}

}  // namespace halftone::kernels::testing
