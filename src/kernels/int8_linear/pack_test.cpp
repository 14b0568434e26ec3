#include "kernels/int8_linear/pack.h"

#include <gtest/gtest.h>

#include <cmath>

#include "halftone/base/error.h"
#include "kernels/common/test_support.h"

namespace halftone::kernels {
namespace {

using testing::Aligned;

constexpr Int8Tile kTiles[] = {{16, 4}, {32, 4}};

TEST(Int8Pack, PlacesEachWeightWhereTheHeaderSays) {
  constexpr int64_t kN = 37, kK = 10;
  std::vector<int8_t> w(kN * kK);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<int8_t>(i % 255 - 127);
  const std::vector<float> scale(kN, 0.5f);
  for (Int8Tile tile : kTiles) {
    Aligned block(int8_packed_bytes(kN, kK, tile));
    pack_int8_weights({w.data(), kK, scale.data(), kN, kK, 8}, tile, block.data());
    const Int8Packed packed = open_int8_packed(block.data(), tile);
    EXPECT_EQ(packed.header->n, kN);
    EXPECT_EQ(packed.header->k, kK);
    EXPECT_EQ(packed.panel_count, (kN + tile.n - 1) / tile.n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(packed.panels) % 64, 0u);
    for (int64_t c = 0; c < packed.panel_count * tile.n; ++c) {
      int32_t sum = 0;
      for (int64_t k = 0; k < 12; ++k) {
        const int8_t stored =
            packed.panels[c / tile.n * packed.panel_bytes + (k / 4 * tile.n + c % tile.n) * 4 + k % 4];
        const int8_t want = c < kN && k < kK ? w[static_cast<size_t>(c * kK + k)] : int8_t{0};
        ASSERT_EQ(stored, want) << c << " " << k;
        sum += want;
      }
      EXPECT_EQ(packed.sum[c], sum);
      EXPECT_EQ(packed.scale[c], c < kN ? 0.5f : 0.0f);
    }
  }
}

TEST(Int8Pack, RejectsWhatItCannotHold) {
  std::vector<int8_t> w = {1, 2, -65, 4};
  std::vector<float> scale = {1.0f, 1.0f};
  Aligned block(int8_packed_bytes(2, 2, kTiles[0]));
  const auto pack = [&](int bits) {
    pack_int8_weights({w.data(), 2, scale.data(), 2, 2, bits}, kTiles[0], block.data());
  };
  EXPECT_NO_THROW(pack(8));
  EXPECT_THROW(pack(7), Error);  // -65
  EXPECT_THROW(pack(4), Error);
  for (float bad : {-1.0f, NAN, INFINITY}) {
    scale[1] = bad;
    EXPECT_THROW(pack(8), Error);
  }
  scale[1] = 0.0f;
  EXPECT_NO_THROW(pack(8));
  EXPECT_THROW(int8_packed_bytes(1, 65794, kTiles[0]), Error);
  EXPECT_THROW(int8_packed_bytes(-1, 2, kTiles[0]), Error);
  EXPECT_THROW(pack_int8_weights({w.data(), 2, scale.data(), 2, 2, 8}, kTiles[0],
                                 static_cast<char*>(block.data()) + 8),
               Error);
}

TEST(Int8Pack, OpensOnlyItsOwnKind) {
  const std::vector<int8_t> w(4);
  const std::vector<float> scale(2, 1.0f);
  Aligned block(int8_packed_bytes(2, 2, kTiles[0]));
  pack_int8_weights({w.data(), 2, scale.data(), 2, 2, 8}, kTiles[0], block.data());
  EXPECT_NO_THROW(open_int8_packed(block.data(), kTiles[0]));
  EXPECT_THROW(open_int8_packed(block.data(), kTiles[1]), Error);
  EXPECT_THROW(open_int8_packed(block.data(), {16, 8}), Error);
  EXPECT_THROW(open_int8_packed(nullptr, kTiles[0]), Error);
  static_cast<PackedHeader*>(block.data())->version = 99;
  EXPECT_THROW(open_int8_packed(block.data(), kTiles[0]), Error);
}

}  // namespace
}  // namespace halftone::kernels
