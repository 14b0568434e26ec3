// attention on numbers that are not finite, rows without keys, empty sizes and arguments that do not fit.
#include <gtest/gtest.h>

#include "halftone/base/error.h"
#include "kernels/attention/attention_test_support.h"

namespace halftone::kernels {
namespace {

using testing::AttentionCase;
using testing::Guarded;
using testing::MaskKind;

TEST(AttentionSpecial, RowsWithoutKeysAreZero) {
  SerialFor serial;
  for (int64_t m : {2, 9}) {
    for (int64_t n : {5, 40, 600}) {
      for (MaskKind kind : {MaskKind::kAdded, MaskKind::kKeep}) {
        AttentionCase one({1, 1, 1, m, n, 8, 12}, kind);
        for (int64_t j = 0; j < n; ++j) {
          if (kind == MaskKind::kAdded) one.mask[n + j] = -INFINITY;
          if (kind == MaskKind::kKeep) one.keep[n + j] = 0;
        }
        for (const AttentionKernel& kernel : testing::test_attention_kernels()) {
          const std::vector<float> y = one.floats(kernel, serial);
          one.expect_within_bound(y, kernel.name);
          for (size_t c = 0; c < 12; ++c) EXPECT_EQ(y[12 + c], 0.0f) << kernel.name;
        }
      }
    }
  }
}

TEST(AttentionSpecial, KeysMaskedInTheFirstBlockOnlyAreFollowed) {
  AttentionCase one({1, 1, 1, 7, 600, 8, 8}, MaskKind::kAdded);
  for (int64_t i = 0; i < 7; ++i) {
    for (int64_t j = 0; j < 300; ++j) one.mask[i * 600 + j] = -INFINITY;
  }
  for (int64_t i = 0; i < 8; ++i) one.q[i] = -50.0f;  // the first maximum that counts is far below 0
  one.expect_within_bound();
}

// `bad` in q, k or v: which elements come out as NaN, and that the others are right.
TEST(AttentionSpecial, NotFiniteQueriesReachTheirRowOnly) {
  SerialFor serial;
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    for (int64_t n : {9, 300}) {
      for (int64_t m : {2, 14}) {
        AttentionCase one({1, 2, 2, m, n, 8, 8});
        one.q[1 * 8 + 3] = bad;
        for (const AttentionKernel& kernel : testing::test_attention_kernels()) {
          const std::vector<float> y = one.floats(kernel, serial);
          for (size_t i = 0; i < y.size(); ++i) {
            EXPECT_EQ(std::isnan(y[i]), i / 8 == 1) << kernel.name << " " << i;
          }
        }
      }
    }
  }
}

TEST(AttentionSpecial, NotFiniteKeysReachEveryRowOfTheirHead) {
  SerialFor serial;
  for (int64_t n : {9, 300}) {
    for (int64_t m : {2, 14}) {
      for (MaskKind kind : {MaskKind::kNone, MaskKind::kKeep}) {
        AttentionCase one({1, 2, 2, m, n, 8, 8}, kind);
        for (int64_t c = 0; c < 8; ++c) one.k[(n + n - 2) * 8 + c] = NAN;
        for (const AttentionKernel& kernel : testing::test_attention_kernels()) {
          const std::vector<float> y = one.floats(kernel, serial);
          for (size_t i = 0; i < y.size(); ++i) {
            EXPECT_EQ(std::isnan(y[i]), i >= y.size() / 2) << kernel.name << " " << i;
          }
        }
      }
    }
  }
}

TEST(AttentionSpecial, NotFiniteValuesReachTheirColumn) {
  SerialFor serial;
  for (float bad : {NAN, INFINITY}) {
    for (int64_t n : {9, 300}) {
      for (int64_t m : {2, 14}) {
        AttentionCase one({1, 1, 1, m, n, 8, 20});
        one.v[(n - 2) * 20 + 5] = bad;
        for (const AttentionKernel& kernel : testing::test_attention_kernels()) {
          const std::vector<float> y = one.floats(kernel, serial);
          for (size_t i = 0; i < y.size(); ++i) {
            EXPECT_EQ(std::isfinite(y[i]), i % 20 != 5) << kernel.name << " " << i;
            EXPECT_EQ(std::isnan(y[i]), i % 20 == 5 && std::isnan(bad)) << kernel.name << " " << i;
          }
        }
      }
    }
  }
}

TEST(AttentionSpecial, CausalHidesScoresThatAreNotFinite) {
  SerialFor serial;
  AttentionProblem p{1, 1, 1, 20, 20, 8, 8};
  p.causal = true;
  AttentionCase one(p);
  one.k[10 * 8] = NAN;
  for (const AttentionKernel& kernel : testing::test_attention_kernels()) {
    const std::vector<float> y = one.floats(kernel, serial);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 8 >= 10) << kernel.name << " " << i;
  }
}

TEST(AttentionSpecial, ExtremeScoresAreWithinTheBound) {
  for (int64_t m : {2, 9}) {
    AttentionCase outlier({1, 1, 1, m, 33, 4, 8});
    outlier.k[9 * 4] = 1e30f;  // its weight is 1 or 0
    for (int64_t i = 0; i < m; ++i) outlier.q[i * 4] = i % 2 == 0 ? 1.0f : -1.0f;
    SerialFor serial;
    for (const AttentionKernel& kernel : testing::test_attention_kernels()) {
      const std::vector<float> y = outlier.floats(kernel, serial);
      for (size_t c = 0; c < 8; ++c)
        EXPECT_EQ(y[c], outlier.v[9 * 8 + static_cast<int64_t>(c)]) << kernel.name;
      for (float value : y) EXPECT_TRUE(std::isfinite(value)) << kernel.name;
    }
    AttentionCase zeros({1, 1, 1, m, 33, 4, 8}), denormals({1, 1, 1, m, 33, 4, 8});
    for (int64_t i = 0; i < m * 4; ++i) {
      zeros.q[i] = 0.0f;
      denormals.q[i] = 1e-42f;
    }
    zeros.expect_within_bound();
    denormals.expect_within_bound();
    AttentionCase spread({1, 1, 1, m, 300, 4, 8});
    spread.scale = 30.0f;  // weights down to exp(-700)
    spread.expect_within_bound();
  }
}

TEST(AttentionSpecial, EmptySizesAreDefined) {
  SerialFor serial;
  for (const AttentionKernel& kernel : testing::test_attention_kernels()) {
    EXPECT_TRUE(AttentionCase({0, 2, 2, 3, 4, 8, 8}).floats(kernel, serial).empty());
    EXPECT_TRUE(AttentionCase({1, 2, 2, 0, 4, 8, 8}).floats(kernel, serial).empty());
    EXPECT_TRUE(AttentionCase({1, 2, 2, 3, 4, 8, 0}).floats(kernel, serial).empty());
    EXPECT_EQ(AttentionCase({1, 2, 2, 3, 0, 8, 8}).floats(kernel, serial), std::vector<float>(48, 0.0f));
    EXPECT_EQ(AttentionCase({1, 2, 2, 7, 0, 8, 8}).floats(kernel, serial), std::vector<float>(112, 0.0f));
  }
}

TEST(AttentionSpecial, ArgumentsThatDoNotFitAreRefused) {
  SerialFor serial;
  EXPECT_THROW(choose_attention({1, -2, 2, 3, 4, 8, 8}), Error);
  EXPECT_THROW(choose_attention({1, 5, 2, 3, 4, 8, 8}), Error);
  EXPECT_THROW(choose_attention({1, 5, 0, 3, 4, 8, 8}), Error);
  const AttentionCase one({1, 2, 2, 5, 4, 8, 8}, MaskKind::kAdded);
  const AttentionKernel& kernel = attention_kernels().back();
  std::vector<float> y(80);
  std::vector<char> workspace(attention_workspace_bytes(one.p, 1));
  AttentionArgs good = one.args();
  good.y = y.data();
  good.workspace = workspace.data();
  good.workspace_bytes = workspace.size();
  EXPECT_NO_THROW(attention(kernel, one.p, good, serial));
  AttentionArgs bad = good;
  bad.workspace_bytes = 100;
  EXPECT_THROW(attention(kernel, one.p, bad, serial), Error);
  bad = good;
  const uint8_t keep[20] = {};
  bad.keep = keep;
  EXPECT_THROW(attention(kernel, one.p, bad, serial), Error);
  bad = good;
  bad.y = nullptr;
  EXPECT_THROW(attention(kernel, one.p, bad, serial), Error);
  bad = good;
  bad.k = nullptr;
  EXPECT_THROW(attention(kernel, one.p, bad, serial), Error);
}

}  // namespace
}  // namespace halftone::kernels
