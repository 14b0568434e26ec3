#include "quant/weight/arithmetic/bits.h"

#include "quant/weight/test_support.h"

namespace halftone {
namespace {

TEST(Bits, ComeBackForEveryWidthAndLength) {
  for (int bits = 2; bits <= 8; ++bits) {
    for (const int64_t k : {0, 1, 2, 3, 7, 8, 9, 31, 64}) {
      const int64_t most = int64_t{1} << (bits - 1);
      const at::Tensor q = at::randint(-most, most, {5, k}, at::kChar);
      const at::Tensor packed = pack_bits(q, bits);
      EXPECT_EQ(packed.sizes(), (at::IntArrayRef{5, (k * bits + 7) / 8}));
      EXPECT_TRUE(unpack_bits(packed, bits, k).equal(q)) << bits << " bits, k = " << k;
      EXPECT_EQ(unpack_bits(packed.to(at::kMeta), bits, k).sizes(), q.sizes());
    }
  }
}

// The layout is a file format: it must never change.
TEST(Bits, StandWhereTheFormatSays) {
  const at::Tensor nibbles = pack_bits(at::tensor({1, -1, 7, -8}, at::kChar).unsqueeze(0), 4);
  EXPECT_TRUE(nibbles.equal(at::tensor({0xf1, 0x87}, at::kByte).unsqueeze(0)));
  // 001 111 011, from the lowest: 0b11111001, 0b0.
  const at::Tensor threes = pack_bits(at::tensor({1, -1, 3}, at::kChar).unsqueeze(0), 3);
  EXPECT_TRUE(threes.equal(at::tensor({0xf9, 0x00}, at::kByte).unsqueeze(0)));
}

TEST(Bits, TakeStridedTensors) {
  const at::Tensor q = at::randint(-8, 8, {6, 10}, at::kChar);
  EXPECT_TRUE(pack_bits(q.t(), 4).equal(pack_bits(q.t().contiguous(), 4)));
  const at::Tensor packed = pack_bits(q, 4);
  EXPECT_TRUE(unpack_bits(packed.t().contiguous().t(), 4, 10).equal(q));
}

}  // namespace
}  // namespace halftone
