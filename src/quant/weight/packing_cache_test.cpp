#include "quant/weight/packing_cache.h"

#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>

#include <cstring>

#include "quant/weight/test_support.h"

namespace halftone {
namespace {

constexpr PackLayout kLayout{"test", 1, 16};

/// A block of 128 bytes whose first says how many were packed before.
at::Tensor block_of(const std::vector<at::Tensor>& parts, int& packed, PackLayout layout = kLayout,
                    size_t bytes = 128) {
  return packed_block(parts, layout, bytes,
                      [&](void* out) { *static_cast<uint8_t*>(out) = static_cast<uint8_t>(packed++); });
}

TEST(PackingCache, PacksOnceForAllHandlesOfAWeight) {
  int packed = 0;
  const at::Tensor weight = randn({4, 8}, 1), scale = randn({4}, 2);
  const at::Tensor block = block_of({weight, scale}, packed);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block.const_data_ptr()) % 64, 0u);
  EXPECT_EQ(block_of({weight, scale}, packed).const_data_ptr(), block.const_data_ptr());
  EXPECT_EQ(block_of({weight.detach(), scale.view({4})}, packed).const_data_ptr(), block.const_data_ptr());
  EXPECT_EQ(packed, 1);
  block_of({weight.narrow(0, 0, 2), scale}, packed);
  block_of({weight.t(), scale}, packed);
  block_of({weight, scale, scale}, packed);
  EXPECT_EQ(packed, 4);
}

TEST(PackingCache, LayoutsAndSizesAreDifferentBlocks) {
  int packed = 0;
  const at::Tensor weight = randn({4, 8}, 1);
  block_of({weight}, packed);
  block_of({weight}, packed, {"test", 1, 32});
  block_of({weight}, packed, {"test", 2, 16});
  block_of({weight}, packed, {"other", 1, 16});
  block_of({weight}, packed, kLayout, 256);
  EXPECT_EQ(packed, 5);
  EXPECT_EQ(packed_of({weight}).size(), 5u);
  EXPECT_EQ(packed_of({weight}).front().layout, "other/v1/16x1");
}

TEST(PackingCache, UndefinedPartsAreNone) {
  int packed = 0;
  const at::Tensor weight = randn({4, 8}, 1);
  block_of({weight, at::Tensor()}, packed);
  block_of({weight}, packed);
  EXPECT_EQ(packed, 1);
}

TEST(PackingCache, SeesWritesAndReplacements) {
  int packed = 0;
  at::Tensor weight = randn({4, 8}, 1);
  const at::Tensor scale = randn({4}, 2);
  block_of({weight, scale}, packed);
  weight.add_(1);
  block_of({weight, scale}, packed);
  scale.mul_(2);
  block_of({weight, scale}, packed);
  EXPECT_EQ(packed, 3);
  EXPECT_EQ(packed_of({weight, scale}).size(), 1u);
  weight.set_(randn({4, 8}, 3));
  block_of({weight, scale}, packed);
  EXPECT_EQ(packed, 4);
}

// Memory of a freed weight is soon given to another one of the same size: the address alone must not be
// believed.
TEST(PackingCache, ANewWeightAtAnOldAddressIsANewWeight) {
  int packed = 0;
  for (int i = 0; i < 20; ++i) {
    const at::Tensor weight = randn({64, 64}, 1);
    block_of({weight}, packed);
    EXPECT_EQ(packed, i + 1);
  }
}

TEST(PackingCache, FreesBlocksOfDeadWeights) {
  const PackingCacheStats before = packing_cache_stats();
  at::Tensor watched;
  {
    int packed = 0;
    const at::Tensor weight = randn({4, 8}, 1), scale = randn({4}, 1);
    watched = block_of({weight, scale}, packed);
    EXPECT_EQ(packing_cache_stats().entries, before.entries + 1);
    EXPECT_EQ(packing_cache_stats().bytes, before.bytes + 128);
    EXPECT_EQ(watched.use_count(), 2u);
  }
  // Lookups of others purge too, without being asked.
  int packed = 0;
  const at::Tensor other = randn({4, 8}, 1);
  for (int i = 0; i < 3000; ++i) block_of({other}, packed);
  EXPECT_EQ(watched.use_count(), 1u);
}

TEST(PackingCache, ADeadScaleEndsABlockToo) {
  int packed = 0;
  const PackingCacheStats before = packing_cache_stats();
  const at::Tensor weight = randn({4, 8}, 1);
  block_of({weight, randn({4}, 1)}, packed);
  EXPECT_EQ(packing_cache_stats().entries, before.entries);
}

TEST(PackingCache, ForgetsOnRequest) {
  int packed = 0;
  const at::Tensor weight = randn({4, 8}, 1), scale = randn({4}, 1);
  block_of({weight, scale}, packed);
  forget_packed(scale);
  EXPECT_TRUE(packed_of({weight, scale}).empty());
  block_of({weight, scale}, packed);
  EXPECT_EQ(packed, 2);
}

TEST(PackingCache, TensorsWithoutAVersionWork) {
  const c10::InferenceMode inference;
  int packed = 0;
  const at::Tensor weight = randn({4, 8}, 1);
  block_of({weight}, packed);
  block_of({weight}, packed);
  EXPECT_EQ(packed, 1);
  weight.add_(1);
  forget_packed(weight);
  block_of({weight}, packed);
  EXPECT_EQ(packed, 2);
}

/// What packs 128 bytes of 42s, as `stored` blocks below have them.
at::Tensor block_of_42s(const at::Tensor& weight, int& packed, PackLayout layout = kLayout,
                        size_t bytes = 128) {
  return packed_block({weight}, layout, bytes, [&](void* out) {
    std::memset(out, 42, bytes);
    ++packed;
  });
}

TEST(PackingCache, UsesAnAdoptedBlockOfTheRightLayoutOnly) {
  int packed = 0;
  const at::Tensor weight = randn({4, 8}, 1);
  const at::Tensor stored = at::full({128}, 42, at::kByte);
  adopt_packed({weight}, {"test/v1/16x1", stored});
  EXPECT_EQ(block_of_42s(weight, packed).const_data_ptr(), stored.const_data_ptr());
  EXPECT_EQ(packed, 1);  // once, to compare
  EXPECT_EQ(block_of_42s(weight, packed).const_data_ptr(), stored.const_data_ptr());
  EXPECT_EQ(packed, 1);
  EXPECT_NE(block_of_42s(weight, packed, {"test", 1, 32}).const_data_ptr(), stored.const_data_ptr());
  EXPECT_EQ(packed, 2);
  EXPECT_EQ(packed_of({weight}).size(), 2u);
}

TEST(PackingCache, AnAdoptedBlockThatTheWeightsDoNotGiveIsCorrupt) {
  int packed = 0;
  for (const auto& [stored, why] : {std::pair(at::full({128}, 41, at::kByte), "not what the weights give"),
                                    {at::full({192}, 42, at::kByte), "192 bytes, the weights give 128"}}) {
    const at::Tensor weight = randn({4, 8}, 1);
    adopt_packed({weight}, {"test/v1/16x1", stored});
    EXPECT_THAT(message_of(ErrorCode::kCorruptFile, [&, &weight = weight] { block_of_42s(weight, packed); }),
                testing::HasSubstr(why));
  }
}

TEST(PackingCache, RefusesBlocksThatKernelsCannotRead) {
  const at::Tensor weight = randn({4, 8}, 1);
  for (const at::Tensor& bad :
       {at::Tensor(), at::zeros({128}), at::zeros({129}, at::kByte).narrow(0, 1, 128),
        at::zeros({256}, at::kByte).slice(0, 0, 256, 2), at::zeros({2, 64}, at::kByte)}) {
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                           [&] {
                             adopt_packed({weight}, {"test/v1/16x1", bad});
                           }),
                testing::HasSubstr("test/v1/16x1"));
  }
}

// What a checkpoint does: pack by an empty batch, store, adopt into fresh tensors.
TEST(PackingCache, ABlockOfAnOperatorCanBeStoredAndAdopted) {
  const QuantizedWeight a = quantize_weight(randn({40, 64}, 1), Int4WeightOnlyConfig{}, "layer");
  const at::Tensor x = randn({3, 64}, 2);
  a.format->linear(x.narrow(0, 0, 0), a, {});
  const std::vector<PackedBlock> blocks = packed_of({a.part("weight"), a.part("scale")});
  ASSERT_EQ(blocks.size(), 1u);
  QuantizedWeight b = a;
  for (auto& [name, part] : b.parts) part = part.clone();
  adopt_packed({b.part("weight"), b.part("scale")}, {blocks[0].layout, blocks[0].bytes.clone()});
  const size_t packed = packing_cache_stats().packed;
  EXPECT_TRUE(b.format->linear(x, b, {}).equal(a.format->linear(x, a, {})));
  EXPECT_EQ(packing_cache_stats().packed, packed);
}

}  // namespace
}  // namespace halftone
