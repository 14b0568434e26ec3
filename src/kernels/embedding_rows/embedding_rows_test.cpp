#include "kernels/embedding_rows/embedding_rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/common/test_support.h"
#include "kernels/embedding_rows/pack.h"

namespace halftone::kernels {
namespace {

using testing::Guarded;
using testing::Random;

struct Table {
  EmbeddingRowsProblem p;
  Guarded<int8_t> q;  // plain integers
  Guarded<uint8_t> bytes;
  Guarded<float> scale;
  Guarded<int8_t> zero_point;
  Guarded<int64_t> index;

  explicit Table(EmbeddingRowsProblem problem)
      : p(problem),
        q(p.rows * p.width),
        bytes(p.rows * p.row_bytes()),
        scale(p.rows * p.groups()),
        zero_point(p.rows * p.groups()),
        index(p.count) {
    Random random(7);
    const int most = p.format == EmbeddingFormat::kInt8 ? 127 : 7;
    for (int64_t i = 0; i < q.size(); ++i) q[i] = static_cast<int8_t>(random.integer(-most - 1, most));
    if (p.format == EmbeddingFormat::kInt4) {
      pack_int4_rows(q.data(), p.width, p.rows, p.width, bytes.data());
    } else {
      std::memcpy(bytes.data(), q.data(), static_cast<size_t>(q.size()));
    }
    for (int64_t i = 0; i < scale.size(); ++i) scale[i] = 0.01f * static_cast<float>(random.integer(1, 300));
    for (int64_t i = 0; i < scale.size(); ++i)
      zero_point[i] = static_cast<int8_t>(random.integer(-most - 1, most));
    for (int64_t i = 0; i < index.size(); ++i) index[i] = random.integer(0, static_cast<int>(p.rows) - 1);
  }

  EmbeddingRowsArgs args(bool zero_points = true) const {
    EmbeddingRowsArgs a;
    a.index64 = index.data();
    a.table = bytes.data();
    a.row_stride = p.row_bytes();
    a.scale = scale.data();
    a.zero_point = zero_points ? zero_point.data() : nullptr;
    a.out_stride = p.width;
    return a;
  }

  float want(int64_t i, int64_t c, bool zero_points) const {
    const int64_t row = index[i], at = row * p.groups() + (p.group == 0 ? 0 : c / p.group);
    return static_cast<float>(q[row * p.width + c] - (zero_points ? zero_point[at] : 0)) * scale[at];
  }

  void expect_right(ParallelFor& parallel_for) const {
    for (const EmbeddingRowsKernel& kernel : testing::runnable(embedding_rows_kernels())) {
      for (bool zero_points : {false, true}) {
        EmbeddingRowsArgs a = args(zero_points);
        Guarded<float> floats(p.count * p.width, -7.0f);
        a.out = floats.data();
        embedding_rows(kernel, p, a, parallel_for);
        Guarded<uint16_t> half(p.count * p.width, 1);
        a.out = half.data();
        a.type = OutputType::kBFloat16;
        embedding_rows(kernel, p, a, parallel_for);
        for (int64_t i = 0; i < floats.size(); ++i) {
          const float y = want(i / p.width, i % p.width, zero_points);
          ASSERT_EQ(floats[i], y) << kernel.name << " width " << p.width << " at " << i;
          ASSERT_EQ(half[i], to_bfloat16(y)) << kernel.name << " width " << p.width << " at " << i;
        }
      }
    }
  }
};

TEST(EmbeddingRows, TableIsWellFormedAndEachLevelGetsItsKernel) {
  testing::expect_well_formed(embedding_rows_kernels(), "embedding_rows");
  for (const EmbeddingRowsKernel& kernel : embedding_rows_kernels()) {
    EXPECT_STREQ(choose_embedding_rows({1, 1, 1}, kernel.isa).name, kernel.name);
  }
}

TEST(EmbeddingRows, EveryWidthIsExact) {
  SerialFor serial;
  for (EmbeddingFormat format : {EmbeddingFormat::kInt8, EmbeddingFormat::kInt4}) {
    for (int64_t width = 1; width < 70; ++width) Table({9, 5, width, format}).expect_right(serial);
  }
}

TEST(EmbeddingRows, GroupsAreExact) {
  SerialFor serial;
  for (EmbeddingFormat format : {EmbeddingFormat::kInt8, EmbeddingFormat::kInt4}) {
    for (int group : {32, 64, 128, 256}) Table({7, 11, 512, format, group}).expect_right(serial);
    Table({7, 11, 96, format, 32}).expect_right(serial);
    for (int64_t width : {1, 31, 33, 100, 300}) {  // the last group is shorter
      Table({7, 11, width, format, 32}).expect_right(serial);
      Table({7, 11, width, format, 128}).expect_right(serial);
    }
  }
}

TEST(EmbeddingRows, ThreadsStridesAndNarrowIndicesWork) {
  const Table table({700, 50, 384, EmbeddingFormat::kInt4, 64});
  ThreadPool pool(3);
  table.expect_right(pool);
  std::vector<int32_t> narrow(700);
  for (int64_t i = 0; i < 700; ++i) narrow[static_cast<size_t>(i)] = static_cast<int32_t>(table.index[i]);
  Guarded<uint8_t> apart(50 * 200);
  for (int64_t r = 0; r < 50; ++r) std::memcpy(apart.data() + r * 200, table.bytes.data() + r * 192, 192);
  for (const EmbeddingRowsKernel& kernel : testing::runnable(embedding_rows_kernels())) {
    EmbeddingRowsArgs a = table.args();
    a.index64 = nullptr;
    a.index32 = narrow.data();
    a.table = apart.data();
    a.row_stride = 200;
    Guarded<float> out(700 * 390, -3.0f);
    a.out = out.data();
    a.out_stride = 390;
    embedding_rows(kernel, table.p, a, pool);
    for (int64_t i = 0; i < 700; ++i) {
      for (int64_t c = 0; c < 384; ++c) ASSERT_EQ(out[i * 390 + c], table.want(i, c, true)) << kernel.name;
      EXPECT_EQ(out[i * 390 + 384], -3.0f);
    }
  }
}

TEST(EmbeddingRows, ScalesThatAreNotFiniteComeOut) {
  SerialFor serial;
  for (float bad : {NAN, INFINITY}) {
    Table table({3, 1, 40, EmbeddingFormat::kInt8});
    table.scale[0] = bad;
    for (int64_t c = 0; c < 40; ++c) table.bytes[c] = static_cast<uint8_t>(c + 1);
    for (const EmbeddingRowsKernel& kernel : testing::runnable(embedding_rows_kernels())) {
      EmbeddingRowsArgs a = table.args(false);
      Guarded<float> out(120);
      a.out = out.data();
      embedding_rows(kernel, table.p, a, serial);
      for (int64_t i = 0; i < 120; ++i) EXPECT_EQ(std::isnan(out[i]), std::isnan(bad)) << kernel.name;
    }
  }
}

TEST(EmbeddingRows, AnIndexOutsideIsNamedAndNothingIsWritten) {
  SerialFor serial;
  for (int64_t bad : {int64_t{5}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    Table table({6, 5, 20, EmbeddingFormat::kInt8});
    table.index[4] = bad;
    EmbeddingRowsArgs a = table.args();
    Guarded<float> out(120, -3.0f);
    a.out = out.data();
    try {
      embedding_rows(embedding_rows_kernels().front(), table.p, a, serial);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(e.what()).find("index " + std::to_string(bad) + " at position 4"),
                std::string::npos);
    }
    EXPECT_EQ(out.copy(), std::vector<float>(120, -3.0f));
  }
}

TEST(EmbeddingRows, TwoThreadsReallyRun) {
  const Table table({2000, 50, 384, EmbeddingFormat::kInt8});
  Guarded<float> out(2000 * 384);
  EmbeddingRowsArgs a = table.args();
  a.out = out.data();
  testing::CountingParallelFor parallel_for;
  for (int i = 0; i < 50 && parallel_for.threads_seen() < 2; ++i) {
    embedding_rows(embedding_rows_kernels().back(), table.p, a, parallel_for);
  }
  EXPECT_EQ(parallel_for.threads_seen(), 2u);
}

TEST(EmbeddingRows, EmptySizesAndBadArgumentsAreDefined) {
  SerialFor serial;
  const EmbeddingRowsKernel& kernel = embedding_rows_kernels().back();
  EXPECT_NO_THROW(embedding_rows(kernel, {0, 5, 8}, {}, serial));
  EXPECT_THROW(choose_embedding_rows({-1, 5, 8}), Error);
  EXPECT_THROW(choose_embedding_rows({1, 5, 96, EmbeddingFormat::kInt4, 48}), Error);
  const Table table({2, 3, 8});
  Guarded<float> out(16);
  EmbeddingRowsArgs good = table.args();
  good.out = out.data();
  EXPECT_NO_THROW(embedding_rows(kernel, table.p, good, serial));
  EmbeddingRowsArgs bad = good;
  bad.index64 = nullptr;
  EXPECT_THROW(embedding_rows(kernel, table.p, bad, serial), Error);
  bad = good;
  bad.row_stride = 7;
  EXPECT_THROW(embedding_rows(kernel, table.p, bad, serial), Error);
  bad = good;
  bad.out = nullptr;
  EXPECT_THROW(embedding_rows(kernel, table.p, bad, serial), Error);
  bad = good;
  bad.type = OutputType::kQuantizedRows;
  EXPECT_THROW(embedding_rows(kernel, table.p, bad, serial), Error);
  const int8_t nine = 9;
  uint8_t byte = 0;
  EXPECT_THROW(pack_int4_rows(&nine, 1, 1, 1, &byte), Error);
}

}  // namespace
}  // namespace halftone::kernels
