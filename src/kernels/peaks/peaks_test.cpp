#include "kernels/peaks/peaks.h"

#include <gtest/gtest.h>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"

namespace halftone::kernels {
namespace {

TEST(Peaks, OrderedAsTheInstructionsAre) {
  ThreadPool pool(1);
  Peaks peaks = measure_peaks(pool, 1);
  if (machine_isa() < Isa::kAvx2) {
    EXPECT_EQ(peaks.fma_gmac, 0);
    return;
  }
  // A round that another program disturbs measures less than the machine can do, never more: best of many.
  const auto ordered = [&] {
    return peaks.chain_gmac > peaks.fma_gmac && peaks.chain_gmac > 0.95 * peaks.exact8_gmac;
  };
  for (int round = 0; round < 200 && !ordered(); ++round) peaks = larger(peaks, measure_peaks(pool, 1));
  EXPECT_GT(peaks.read_gbs, 0.5);
  EXPECT_GT(peaks.fma_gmac, 1);
  // Four products an instruction more than fp32, and never cheaper with the extra xor.
  EXPECT_GT(peaks.chain_gmac, peaks.fma_gmac);
  EXPECT_GT(peaks.chain_gmac, 0.95 * peaks.exact8_gmac);
}

}  // namespace
}  // namespace halftone::kernels
