// Every test draws the same random numbers in every run, alone or after others: torch's generator is seeded
// before each. And whatever measures does not look whether the machine is busy: tests may run beside others.
// Linked into all test programs that know torch (halftone_test() in cmake/HalftoneBuild.cmake).
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace {

constexpr uint64_t kSeed = 20261116;

class SeedEachTest : public testing::EmptyTestEventListener {
  // Suites draw too, in SetUpTestSuite.
  void OnTestSuiteStart(const testing::TestSuite&) override { at::manual_seed(kSeed); }
  void OnTestStart(const testing::TestInfo&) override { at::manual_seed(kSeed); }
};

// GoogleTest owns its listeners.
const bool registered = [] {
  setenv("HALFTONE_BUSY", "ignore", /*overwrite=*/0);
  testing::UnitTest::GetInstance()->listeners().Append(new SeedEachTest);
  return true;
}();

}  // namespace
