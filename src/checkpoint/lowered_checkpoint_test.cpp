// Static int8 graphs in .ht files.
#include "checkpoint/lowered_test_model.h"
#include "checkpoint/test_support.h"
#include "halftone/compile/compile.h"
#include "quant/weight/packing_cache.h"

namespace halftone {
namespace {

class LoweredCheckpoint : public CheckpointTest {};

TEST_F(LoweredCheckpoint, RoundTripGivesTheSameBytes) {
  const auto module = lowered_model();
  const at::Tensor expected = run_sample(module);
  save_checkpoint(*module, path());
  const auto loaded = load_checkpoint(path());
  EXPECT_EQ(print_graph(loaded->graph()), print_graph(module->graph()));
  EXPECT_TRUE(run_sample(loaded).equal(expected));
  EXPECT_THAT(verify_checkpoint(path()).findings, testing::IsEmpty());
  const auto compiled = compile(loaded);
  EXPECT_TRUE(compiled->run(loaded->sample_inputs)[0].toTensor().equal(expected));
  EXPECT_THAT(compiled->report(loaded->sample_inputs).left_to_aten, testing::IsEmpty());
}

TEST_F(LoweredCheckpoint, PackedCopiesAreUsed) {
  const auto module = lowered_model();
  const at::Tensor expected = run_sample(module);
  save_checkpoint(*module, path("plain.ht"));
  save_checkpoint(*module, path(), {.packed = true});
  EXPECT_GT(std::filesystem::file_size(path()), std::filesystem::file_size(path("plain.ht")));
  EXPECT_THAT(verify_checkpoint(path()).findings, testing::IsEmpty());
  const size_t packed_before = packing_cache_stats().packed;
  const auto loaded = load_checkpoint(path());
  EXPECT_TRUE(run_sample(loaded).equal(expected));
  EXPECT_EQ(packing_cache_stats().packed, packed_before) << "nothing had to be packed again";
  EXPECT_THAT(loaded->notes, testing::IsEmpty());
}

}  // namespace
}  // namespace halftone
