// quantized_ops on contiguous elements: every kernel gives the bytes of the formulas.
#include "kernels/quantized_ops/quantized_ops.h"

#include <gtest/gtest.h>

#include <limits>

#include "halftone/base/error.h"
#include "kernels/quantized_ops/test_formulas.h"

namespace halftone::kernels {
namespace {

using testing::dequantized;
using testing::Guarded;
using testing::quantized;
using testing::Random;
using testing::some_targets;

constexpr int64_t kCounts[] = {0, 1, 7, 8, 31, 32, 33, 64, 100, 257};

template <typename Each>
void for_each_kernel(Each each) {
  for (const QuantizedOpsKernel& kernel : testing::runnable(quantized_ops_kernels())) {
    SCOPED_TRACE(kernel.name);
    each(kernel);
  }
}

TEST(QuantizedOps, TableIsWellFormed) {
  testing::expect_well_formed(quantized_ops_kernels(), "quantized_ops");
  EXPECT_EQ(choose_quantized_ops(Isa::kScalar).isa, Isa::kScalar);
  if (quantized_ops_kernels().size() > 1) {
    EXPECT_EQ(choose_quantized_ops(Isa::kAvx512Vnni).isa, Isa::kAvx2);
  }
}

TEST(QuantizedOps, QuantizeRoundsToNearestEvenAndClamps) {
  Random random(1);
  SerialFor serial;
  for_each_kernel([&](const QuantizedOpsKernel& kernel) {
    for (const QuantTarget& target : some_targets()) {
      for (int64_t count : kCounts) {
        Guarded<float> x(count);
        Guarded<uint8_t> y(count, 99);
        for (int64_t i = 0; i < count; ++i)
          x[i] = i % 3 == 0 ? target.params.scale * (static_cast<float>(random.integer(-300, 300)) + 0.5f)
                            : random.normal(100.0f * target.params.scale);
        quantize_all(kernel, x.data(), y.data(), count, target, serial);
        for (int64_t i = 0; i < count; ++i) ASSERT_EQ(y[i], quantized(x[i], target)) << x[i];
      }
    }
  });
}

TEST(QuantizedOps, QuantizeIsDefinedForEveryFloat) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> odd = {kInf,   -kInf, std::nanf(""), 3.4e38f, -3.4e38f,
                                  1e-40f, -0.0f, 2.2e9f,        -2.2e9f};
  SerialFor serial;
  for_each_kernel([&](const QuantizedOpsKernel& kernel) {
    for (const QuantTarget& target : some_targets()) {
      std::vector<uint8_t> y(odd.size());
      quantize_all(kernel, odd.data(), y.data(), static_cast<int64_t>(odd.size()), target, serial);
      EXPECT_EQ(y[0], static_cast<uint8_t>(target.hi));
      EXPECT_EQ(y[1], static_cast<uint8_t>(target.lo));
      EXPECT_EQ(y[2], static_cast<uint8_t>(target.hi)) << "NaN";
      for (size_t i = 0; i < odd.size(); ++i) EXPECT_EQ(y[i], quantized(odd[i], target)) << odd[i];
    }
  });
}

TEST(QuantizedOps, DequantizeEveryByte) {
  SerialFor serial;
  for_each_kernel([&](const QuantizedOpsKernel& kernel) {
    for (const QuantTarget& target : some_targets()) {
      for (int64_t count : {256, 251, 3}) {
        Guarded<uint8_t> x(count);
        Guarded<float> y(count);
        for (int64_t i = 0; i < count; ++i) x[i] = static_cast<uint8_t>(i);
        dequantize_all(kernel, x.data(), y.data(), count, target.params, target.is_signed, serial);
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(y[i], dequantized(x[i], target.params, target.is_signed));
      }
    }
  });
}

TEST(QuantizedOps, AddAndMulOfEveryPairOfBytes) {
  SerialFor serial;
  Guarded<uint8_t> a(65536 + 5), b(a.size()), y(a.size());
  for (int64_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<uint8_t>(i);
    b[i] = static_cast<uint8_t>(i / 256);
  }
  for_each_kernel([&](const QuantizedOpsKernel& kernel) {
    for (const QuantTarget& target : some_targets()) {
      for (const bool relu : {false, true}) {
        const bool s = target.is_signed;
        const QuantizedPair pair{a.data(), b.data(), {0.031f, s ? -5 : 100}, {0.077f, s ? 20 : 33}, relu};
        const auto want = [&](float x) { return quantized(relu ? std::max(x, 0.0f) : x, target); };
        quantized_add(kernel, pair, y.data(), a.size(), target, serial);
        for (int64_t i = 0; i < a.size(); ++i)
          ASSERT_EQ(y[i], want(dequantized(a[i], pair.a_params, s) + dequantized(b[i], pair.b_params, s)));
        quantized_mul(kernel, pair, y.data(), a.size(), target, serial);
        for (int64_t i = 0; i < a.size(); ++i)
          ASSERT_EQ(y[i], want(dequantized(a[i], pair.a_params, s) * dequantized(b[i], pair.b_params, s)));
      }
    }
  });
}

TEST(QuantizedOps, TheResultMayTakeAnInputsPlace) {
  Random random(2);
  SerialFor serial;
  for_each_kernel([&](const QuantizedOpsKernel& kernel) {
    Guarded<uint8_t> a(77), b(77), y(77);
    testing::fill_bytes(a, random);
    testing::fill_bytes(b, random);
    const QuantTarget target{{0.1f, 9}};
    const QuantizedPair pair{a.data(), b.data(), {0.05f, 1}, {0.07f, 2}, false};
    quantized_add(kernel, pair, y.data(), 77, target, serial);
    quantized_add(kernel, pair, a.data(), 77, target, serial);
    EXPECT_EQ(a.copy(), y.copy());
  });
}

TEST(QuantizedOps, RequantizedRowsMakeAConcatenation) {
  Random random(3);
  SerialFor serial;
  for_each_kernel([&](const QuantizedOpsKernel& kernel) {
    for (const auto& [first, second] : {std::pair<int64_t, int64_t>{3, 40}, {32, 64}, {1, 1}}) {
      const int64_t rows = 6, all = first + second;
      Guarded<uint8_t> a(rows * first), b(rows * second), y(rows * all, 1);
      testing::fill_bytes(a, random);
      testing::fill_bytes(b, random);
      const QuantTarget to{{0.02f, 50}};
      const QuantParams other{0.05f, 128};
      requantize_rows(kernel, {a.data(), first, y.data(), all, rows, first}, to.params, to, serial);
      requantize_rows(kernel, {b.data(), second, y.data() + first, all, rows, second}, other, to, serial);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t c = 0; c < first; ++c) ASSERT_EQ(y[i * all + c], a[i * first + c]) << "a plain copy";
        for (int64_t c = 0; c < second; ++c)
          ASSERT_EQ(y[i * all + first + c], quantized(dequantized(b[i * second + c], other), to));
      }
    }
  });
}

TEST(QuantizedOps, ClampAndLookup) {
  Random random(4);
  SerialFor serial;
  const QuantTarget to{{1.0f / 256, 0}};
  const QuantParams from{0.06f, 120};
  const auto sigmoid = [](float x) { return 1.0f / (1.0f + std::exp(-x)); };
  uint8_t table[256];
  make_quantized_table(sigmoid, from, to, table);
  EXPECT_EQ(table[120], 128);
  for_each_kernel([&](const QuantizedOpsKernel& kernel) {
    for (int64_t count : {0, 1, 31, 32, 256, 1000}) {
      Guarded<uint8_t> x(count), y(count);
      for (int64_t i = 0; i < count; ++i) x[i] = static_cast<uint8_t>(i);
      quantized_lookup(kernel, x.data(), y.data(), count, table, serial);
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(y[i], quantized(sigmoid(dequantized(x[i], from)), to));
      quantized_clamp(kernel, x.data(), y.data(), count, 30, 200, serial);
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(y[i], std::clamp<int>(x[i], 30, 200));
    }
  });
}

TEST(QuantizedOps, TwoThreadsReallyRun) {
  testing::CountingParallelFor witness;
  std::vector<uint8_t> x(1 << 20, 3), y(x.size());
  quantized_clamp(choose_quantized_ops(), x.data(), y.data(), 1 << 20, 5, 9, witness);
  EXPECT_EQ(witness.threads_seen(), 2u);
  EXPECT_EQ(y, std::vector<uint8_t>(x.size(), 5));
}

TEST(QuantizedOps, BadArgumentsAreRefused) {
  SerialFor serial;
  const QuantizedOpsKernel& kernel = choose_quantized_ops();
  float x = 0;
  uint8_t y = 0;
  const auto quantize_with = [&](const QuantTarget& t) { quantize_all(kernel, &x, &y, 1, t, serial); };
  EXPECT_NO_THROW(quantize_with({{1.0f, 0}}));
  for (float scale : {0.0f, -1.0f, 1e-39f, std::numeric_limits<float>::infinity(), std::nanf("")})
    EXPECT_THROW(quantize_with({{scale, 0}}), Error) << scale;
  EXPECT_THROW(quantize_with({{1.0f, 256}}), Error);
  EXPECT_THROW(quantize_with({{1.0f, -1}}), Error);
  EXPECT_THROW(quantize_with({{1.0f, 0}, 9, 8}), Error);
  EXPECT_THROW(quantize_with({{1.0f, 0}, -1, 8}), Error);
  EXPECT_THROW(quantize_with({{1.0f, 128}, -128, 127, true}), Error);
  EXPECT_THROW(quantize_all(kernel, &x, &y, -1, {}, serial), Error);
  EXPECT_THROW(quantized_clamp(kernel, &y, &y, 1, 9, 8, serial), Error);
  EXPECT_THROW(requantize_rows(kernel, {&y, 1, &y, 1, 2, 2}, {}, {}, serial), Error);
}

}  // namespace
}  // namespace halftone::kernels
