// Refusals of int8_conv and its packing.
#include <gtest/gtest.h>

#include <limits>

#include "halftone/base/error.h"
#include "kernels/int8_conv/test_kernels.h"

namespace halftone::kernels {
namespace {

using testing::Aligned;
using testing::ConvCase;

template <typename Call>
std::string refusal_of(Call call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    return e.what();
  }
  return "";
}

Int8ConvProblem small_problem() {
  Int8ConvProblem p{{}, 7, 7};
  p.shape.in_channels = 8;
  p.shape.out_channels = 5;
  p.shape.in = p.shape.out = {1, 3, 3};
  p.shape.kernel = {1, 3, 3};
  p.shape.pad = {0, 1, 1};
  return p;
}

ConvCase small_case() {
  return ConvCase(small_problem(), testing::constant(3), testing::constant(2));
}

/// A deep block with extra quads, as a file might hold it.
struct StoredBlock {
  StoredBlock() {
    p.shape.in_channels = 512;
    p.shape.out_channels = 40;
    for (int64_t i = 0; i < w.size(); ++i) w[i] = static_cast<int8_t>(i % 1499 == 0 ? 127 : i * 7 % 29 - 14);
    pack_int8_conv(p, w.data(), tile, block.data());
  }
  Int8ConvPacked open() { return open_int8_conv_packed(p, block.data(), tile); }
  std::string refusal() {
    return refusal_of([&] { check_int8_conv_packed(p, w.data(), tile, block.data()); });
  }

  Int8ConvProblem p{{}, 8, 8};
  const Int8ConvTile tile{16, true};
  testing::Guarded<int8_t> w{512 * 40};
  Aligned block{[] {
    Int8ConvProblem sizes{{}, 8, 8};
    sizes.shape.in_channels = 512;
    sizes.shape.out_channels = 40;
    return int8_conv_packed_bytes(sizes, {16, true});
  }()};
};

TEST(Int8ConvErrors, StoredBlocksThatSayWhereElseToRead) {
  EXPECT_EQ(StoredBlock().refusal(), "");
  const auto changed = [](const auto& change) {
    StoredBlock stored;
    change(stored.open());
    return stored.refusal();
  };
  int64_t panel = 0;
  StoredBlock good;
  while (panel < 3 && good.open().extras[panel] == 0) ++panel;
  ASSERT_LT(panel, 3) << "a panel with extra quads";
  const int64_t at = panel * good.open().max_extras;
  for (const int depth : {0, 3, 16, 255}) {
    const auto set = [&](const Int8ConvPacked& b) {
      const_cast<uint8_t&>(b.depth[panel]) = static_cast<uint8_t>(depth);
    };
    EXPECT_NE(changed(set), "") << depth;
  }
  for (const int32_t extras : {-1, 1 << 20, INT32_MAX, INT32_MIN}) {
    const auto set = [&](const Int8ConvPacked& b) { const_cast<int32_t&>(b.extras[panel]) = extras; };
    EXPECT_NE(changed(set), "") << extras;
  }
  for (const int32_t value : {-1, -4, 1 << 20, INT32_MAX, INT32_MIN, 2, 512}) {
    const auto offset = [&](const Int8ConvPacked& b) {
      const_cast<Int8ExtraQuad&>(b.extra_quads[at]).offset = value;
    };
    EXPECT_NE(changed(offset), "") << value;
    const auto tap = [&](const Int8ConvPacked& b) {
      const_cast<Int8ExtraQuad&>(b.extra_quads[at]).tap = value;
    };
    EXPECT_NE(changed(tap), "") << value;
  }
  EXPECT_NE(changed([](const Int8ConvPacked& b) { const_cast<int32_t&>(b.sum[39]) += 1; }), "");
}

TEST(Int8ConvErrors, ProblemsOutOfRange) {
  Int8ConvProblem p = small_problem();
  p.weight_bits = 6;
  EXPECT_NE(refusal_of([&] { choose_int8_conv(p, Isa::kScalar); }).find("8 or 7 bits"), std::string::npos);
  p = small_problem();
  p.shape.in_channels = kInt8ConvMaxK / 9 + 1;
  EXPECT_NE(refusal_of([&] { choose_int8_conv(p, Isa::kScalar); }).find("at most"), std::string::npos);
  p = small_problem();
  p.shape.groups = 2;
  EXPECT_NE(refusal_of([&] { int8_conv_packed_bytes(p, {16}); }).find("groups"), std::string::npos);
  p = small_problem();
  p.shape.stride[1] = 0;
  EXPECT_NE(refusal_of([&] { choose_int8_conv(p, Isa::kScalar); }).find("stride"), std::string::npos);
}

TEST(Int8ConvErrors, WeightsOutsideOfSevenBitsAreNamed) {
  ConvCase c = small_case();
  c.w[4 * 72 + 5] = 65;
  Aligned packed(int8_conv_packed_bytes(c.p, {16}));
  const std::string what = refusal_of([&] { pack_int8_conv(c.p, c.w.data(), {16}, packed.data()); });
  EXPECT_NE(what.find("channel 4 has the weight 65"), std::string::npos) << what;
}

TEST(Int8ConvErrors, PackedForAnotherConvolution) {
  ConvCase c = small_case();
  Aligned packed(int8_conv_packed_bytes(c.p, {16}));
  pack_int8_conv(c.p, c.w.data(), {16}, packed.data());
  EXPECT_NO_THROW(open_int8_conv_packed(c.p, packed.data(), {16}));
  EXPECT_THROW(open_int8_conv_packed(c.p, packed.data(), {32}), Error);
  EXPECT_THROW(open_int8_conv_packed(c.p, static_cast<char*>(packed.data()) + 1, {16}), Error);
  Int8ConvProblem other = c.p;
  other.shape.kernel = {3, 1, 3};
  EXPECT_THROW(open_int8_conv_packed(other, packed.data(), {16}), Error);
  other = c.p;
  other.activation_bits = 8;
  EXPECT_THROW(open_int8_conv_packed(other, packed.data(), {16}), Error);
  other = c.p;
  other.shape.in = other.shape.out = {1, 9, 9};
  EXPECT_NO_THROW(open_int8_conv_packed(other, packed.data(), {16})) << "the image's size does not matter";
}

TEST(Int8ConvErrors, ArgumentsThatDoNotFit) {
  const ConvCase c = small_case();
  SerialFor serial;
  testing::Guarded<uint8_t> y(c.residual.size());
  const auto refused = [&](auto change) {
    Int8ConvArgs args = c.args;
    args.out = y.data();
    change(args);
    return refusal_of([&] { c.run(choose_int8_conv(c.p), args, serial); });
  };
  float f = 0;
  EXPECT_EQ(refused([](Int8ConvArgs&) {}), "");
  EXPECT_NE(refused([](Int8ConvArgs& a) { a.x_stride = 7; }).find("input"), std::string::npos);
  EXPECT_NE(refused([](Int8ConvArgs& a) { a.out_stride = 4; }).find("output"), std::string::npos);
  EXPECT_NE(refused([&](Int8ConvArgs& a) { a.residual = y.data(); }).find("residual"), std::string::npos);
  EXPECT_NE(refused([](Int8ConvArgs& a) { a.x_zero_point = 128; }).find("[0, 127]"), std::string::npos);
  EXPECT_NE(refused([](Int8ConvArgs& a) { a.out_zero_point = -1; }).find("zero point"), std::string::npos);
  EXPECT_NE(refused([](Int8ConvArgs& a) { a.lo = 251; }).find("lower limit"), std::string::npos);
  EXPECT_NE(refused([](Int8ConvArgs& a) { a.hi = 256; }).find("upper limit"), std::string::npos);
  EXPECT_NE(refused([](Int8ConvArgs& a) { a.out = nullptr; }).find("one output"), std::string::npos);
  EXPECT_NE(refused([&](Int8ConvArgs& a) { a.out_f32 = &f; }).find("one output"), std::string::npos);
  EXPECT_NE(refused([](Int8ConvArgs& a) { a.offset = nullptr; }).find("offsets"), std::string::npos);
}

TEST(Int8ConvErrors, WorkspaceAndKernel) {
  const ConvCase c = small_case();
  SerialFor serial;
  const Int8ConvKernel& kernel = choose_int8_conv(c.p);
  Aligned packed(int8_conv_packed_bytes(c.p, kernel.tile));
  pack_int8_conv(c.p, c.w.data(), kernel.tile, packed.data());
  testing::Guarded<uint8_t> y(c.residual.size());
  char small[16];
  Int8ConvArgs args = c.args;
  args.out = y.data();
  args.weights = packed.data();
  args.workspace = small;
  args.workspace_bytes = sizeof(small);
  EXPECT_NE(refusal_of([&] { int8_conv(kernel, c.p, args, serial); }).find("workspace"), std::string::npos);
  for (const Int8ConvKernel& other : int8_conv_kernels()) {
    if (other.refuse(c.p) == nullptr) continue;
    EXPECT_NE(refusal_of([&] { int8_conv(other, c.p, args, serial); }).find(other.name), std::string::npos);
  }
}

TEST(Int8ConvErrors, EmptyBatchDoesNothing) {
  Int8ConvProblem p = small_problem();
  p.shape.batch = 0;
  const ConvCase c(p, testing::constant(0), testing::constant(1));
  SerialFor serial;
  for (const Int8ConvKernel& kernel : testing::int8_conv_test_kernels())
    if (kernel.refuse(p) == nullptr) {
      EXPECT_TRUE(c.bytes_of(kernel, serial).empty());
    }
}

TEST(Int8ConvErrors, FactorsAreRoundedOnceAndChecked) {
  const float weight_scale[] = {0.25f, 0.1f}, bias[] = {1.0f, -3.0f};
  float multiplier[2], offset[2];
  int8_conv_factors(0.3f, weight_scale, bias, 0.7f, multiplier, offset);
  EXPECT_EQ(multiplier[1], static_cast<float>(double{0.3f} * 0.1f / 0.7f));
  EXPECT_EQ(offset[1], static_cast<float>(-3.0 / 0.7f));
  int8_conv_factors(0.3f, weight_scale, nullptr, 0.0f, multiplier, offset);
  EXPECT_EQ(multiplier[0], static_cast<float>(double{0.3f} * 0.25f));
  EXPECT_EQ(offset[0], 0.0f);
  const float bad[] = {0.5f, std::numeric_limits<float>::quiet_NaN()};
  const auto what = refusal_of([&] { int8_conv_factors(0.3f, bad, nullptr, 0.7f, multiplier, offset); });
  EXPECT_NE(what.find("channel 1"), std::string::npos) << what;
  EXPECT_THROW(int8_conv_factors(-1.0f, weight_scale, bias, 0.7f, multiplier, offset), Error);
  EXPECT_THROW(int8_conv_factors(1e30f, weight_scale, bias, 1e-30f, multiplier, offset), Error);
}

}  // namespace
}  // namespace halftone::kernels
