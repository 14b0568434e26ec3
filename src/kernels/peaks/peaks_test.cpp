#include "kernels/peaks/peaks.h"

#include <gtest/gtest.h>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"

namespace halftone::kernels {
namespace {

TEST(Peaks, OrderedAsTheInstructionsAre) {
  ThreadPool pool(1);
  const Peaks peaks = measure_peaks(pool, 1);
  if (machine_isa() < Isa::kAvx2) {
    EXPECT_EQ(peaks.fma_gmac, 0);
    return;
  }
  EXPECT_GT(peaks.read_gbs, 0.5);
  EXPECT_GT(peaks.fma_gmac, 1);
  // Four products an instruction more than fp32, and never cheaper with the extra xor.
  EXPECT_GT(peaks.chain_gmac, peaks.fma_gmac);
  EXPECT_GT(peaks.chain_gmac, 0.95 * peaks.exact8_gmac);
}

}  // namespace
}  // namespace halftone::kernels
