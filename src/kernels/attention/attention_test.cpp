#include "kernels/attention/attention.h"

#include <gtest/gtest.h>

#include "halftone/base/error.h"
#include "kernels/attention/attention_test_support.h"

namespace halftone::kernels {
namespace {

using testing::AttentionCase;
using testing::Guarded;
using testing::MaskKind;

AttentionProblem square(int64_t m, int64_t n, int64_t d) {
  return {1, 1, 1, m, n, d, d};
}

TEST(Attention, TableIsWellFormedAndEachLevelGetsItsKernel) {
  testing::expect_well_formed(attention_kernels(), "attention");
  for (const AttentionKernel& kernel : attention_kernels()) {
    EXPECT_STREQ(choose_attention(square(1, 1, 1), kernel.isa).name, kernel.name);
  }
}

TEST(Attention, EdgeSizesAreWithinTheBound) {
  for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 13, 20}) {
    for (int64_t n : {1, 2, 7, 8, 15, 16, 17, 24, 33, 65}) {
      for (int64_t d : {1, 3, 8, 15, 16, 17, 31, 32, 40}) {
        AttentionCase(square(m, n, d)).expect_within_bound();
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Attention, CommonWidthsAndDifferentValuesAreWithinTheBound) {
  for (int64_t d : {32, 64, 80, 96, 128, 200}) {
    AttentionCase(square(9, 20, d)).expect_within_bound();
    AttentionCase(square(1, 20, d)).expect_within_bound();
  }
  AttentionCase({1, 1, 1, 7, 30, 16, 33}).expect_within_bound();
  AttentionCase({1, 1, 1, 2, 30, 33, 16}).expect_within_bound();
  AttentionCase({1, 1, 1, 7, 30, 0, 5}).expect_within_bound();  // no columns: every key counts the same
}

TEST(Attention, LongSequencesAreWithinTheBound) {
  for (int64_t n : {255, 256, 257, 272, 511, 512, 513, 1030}) {
    for (int64_t m : {1, 3, 7, 60}) AttentionCase(square(m, n, 17)).expect_within_bound();
  }
  AttentionCase(square(600, 600, 8)).expect_within_bound();
}

TEST(Attention, ARisingMaximumIsFollowed) {
  for (float step : {0.3f, -0.3f}) {
    AttentionCase one(square(5, 700, 1));
    one.scale = 1.0f;
    for (int64_t i = 0; i < 5; ++i) one.q[i] = 1.0f;
    for (int64_t j = 0; j < 700; ++j) one.k[j] = step * static_cast<float>(j);
    one.expect_within_bound();
  }
}

TEST(Attention, MasksOfEveryKindAreWithinTheBound) {
  for (MaskKind kind : {MaskKind::kAdded, MaskKind::kKeep}) {
    for (int64_t n : {1, 7, 16, 25, 300}) {
      for (int64_t m : {1, 2, 9}) AttentionCase({2, 3, 3, m, n, 8, 8}, kind).expect_within_bound();
    }
  }
}

TEST(Attention, MasksAreRepeatedWhereTheirStrideIsZero) {
  for (MaskKind kind : {MaskKind::kAdded, MaskKind::kKeep}) {
    for (AttentionMaskStrides strides :
         {AttentionMaskStrides{0, 0, 0, 1}, AttentionMaskStrides{20, 0, 0, 1},
          AttentionMaskStrides{0, 20, 0, 1}, AttentionMaskStrides{0, 0, 20, 1},
          AttentionMaskStrides{7, 0, 1, 0}, AttentionMaskStrides{0, 1, 40, 2}}) {
      for (int64_t m : {1, 5}) {
        AttentionCase one({2, 3, 3, m, 20, 8, 8}, kind);
        one.mask_strides = strides;
        one.expect_within_bound();
      }
    }
  }
}

TEST(Attention, CausalIsAlignedAtTheTopLeftAndCanBeMoved) {
  for (int64_t m : {1, 2, 5, 16, 30}) {
    for (int64_t n : {1, 4, 16, 30, 47}) {
      for (int64_t offset : {int64_t{0}, n - m, int64_t{3}, int64_t{-2}, int64_t{-100}, int64_t{100}}) {
        AttentionProblem p = square(m, n, 9);
        p.causal = true;
        p.causal_offset = offset;
        AttentionCase(p).expect_within_bound();
        if (HasFatalFailure()) return;
      }
    }
  }
  AttentionProblem p = square(400, 600, 9);
  for (int64_t offset : {0, 200, -300}) {
    p.causal = true;
    p.causal_offset = offset;
    AttentionCase(p).expect_within_bound();
    AttentionCase(p, MaskKind::kAdded).expect_within_bound();
  }
}

TEST(Attention, GroupedQueriesShareTheirKeys) {
  for (int64_t m : {1, 2, 10}) {
    for (int64_t n : {12, 300}) {
      AttentionCase({2, 6, 2, m, n, 16, 8}).expect_within_bound();
      AttentionCase({2, 6, 1, m, n, 16, 8}, MaskKind::kAdded).expect_within_bound();
      AttentionProblem p{1, 8, 2, m, n, 16, 8};
      p.causal = true;
      p.causal_offset = n - m;
      AttentionCase(p).expect_within_bound();
    }
  }
}

// q, k, v and y as the slices of [batch][rows][heads][columns], which a model's projections write and read.
TEST(Attention, InterleavedHeadsAreReadAndWrittenInPlace) {
  constexpr int64_t kBatch = 2, kHeads = 3, kRows = 11, kWidth = 20;
  const AttentionCase plain({kBatch, kHeads, kHeads, kRows, kRows, kWidth, kWidth});
  constexpr int64_t kRow = kHeads * kWidth + 1;  // odd, so that nothing is aligned
  const AttentionStrides strides{kRows * kRow, kWidth, kRow};
  const auto spread = [&](const Guarded<float>& from, Guarded<float>& to) {
    for (int64_t i = 0; i < from.size(); ++i) {
      const int64_t b = i / (kHeads * kRows * kWidth), h = i / (kRows * kWidth) % kHeads,
                    r = i / kWidth % kRows;
      to[b * strides.batch + h * strides.head + r * strides.row + i % kWidth] = from[i];
    }
  };
  Guarded<float> q(kBatch * kRows * kRow), k(kBatch * kRows * kRow), v(kBatch * kRows * kRow);
  spread(plain.q, q);
  spread(plain.k, k);
  spread(plain.v, v);
  SerialFor serial;
  for (const AttentionKernel& kernel : testing::test_attention_kernels()) {
    Guarded<float> y(kBatch * kRows * kRow, -3.0f);
    AttentionArgs a = plain.args();
    a.q = q.data();
    a.k = k.data();
    a.v = v.data();
    a.y = y.data();
    a.q_strides = a.k_strides = a.v_strides = a.y_strides = strides;
    plain.run(kernel, a, serial);
    const std::vector<float> packed = plain.floats(kernel, serial);
    Guarded<float> want(kBatch * kRows * kRow, -3.0f), flat(static_cast<int64_t>(packed.size()));
    std::memcpy(flat.data(), packed.data(), packed.size() * sizeof(float));
    spread(flat, want);
    EXPECT_EQ(y.copy(), want.copy()) << kernel.name;
  }
}

TEST(Attention, ThreadsGiveTheSameBits) {
  for (const AttentionProblem& p :
       {AttentionProblem{2, 5, 5, 70, 300, 16, 16}, AttentionProblem{1, 1, 1, 500, 90, 16, 16},
        AttentionProblem{1, 12, 4, 1, 700, 32, 32}}) {
    const AttentionCase one(p);
    SerialFor serial;
    for (const AttentionKernel& kernel : testing::test_attention_kernels()) {
      const std::vector<float> want = one.floats(kernel, serial);
      for (int threads : {2, 3}) {
        ThreadPool pool(threads);
        EXPECT_EQ(one.floats(kernel, pool), want) << kernel.name;
      }
    }
  }
}

TEST(Attention, TwoThreadsReallyRun) {
  const AttentionCase one({1, 8, 8, 128, 128, 64, 64});
  testing::CountingParallelFor parallel_for;
  for (int i = 0; i < 50 && parallel_for.threads_seen() < 2; ++i) {
    one.floats(choose_attention(one.p, machine_isa()), parallel_for);
  }
  EXPECT_EQ(parallel_for.threads_seen(), 2u);
}

}  // namespace
}  // namespace halftone::kernels
