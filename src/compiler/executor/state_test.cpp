// State that compiled models write in place, and index_copy as a native step.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"
#include "halftone/compile/compile.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

/// A cache of 16 rows in 3 blocks. `nodes` come after the write; `result` is the user's.
std::shared_ptr<GraphModule> cache_model(const std::string& nodes, const std::string& result) {
  const std::string text =
      "graph(%cache: buffer \"cache\" f32[3, 16, 4], %at: user \"at\" i64[s0], %rows: user \"rows\" f32[3, "
      "s0, 4]) {\n"
      "  %new: f32[3, 16, 4] = aten::index_copy(%cache, 1, %at, %rows)\n" +
      nodes + "  return buffer_mutation \"cache\" %new, " + result + "\n}";
  return module_from_text(text, {{"cache", at::randn({3, 16, 4})}});
}

const std::string kSumOfNew = "  %sum: f32[3, 4] = aten::sum.dim_IntList(%new, [1])\n";

std::string kernel_of(const CompiledGraph& compiled, std::string_view target,
                      const std::vector<c10::IValue>& inputs) {
  for (const StepReport& step : compiled.report(inputs).steps) {
    if (step.target == target) return step.kernel;
  }
  return "no such step";
}

std::vector<c10::IValue> tokens(int64_t first, int64_t count) {
  return {at::arange(first, first + count), at::randn({3, count, 4})};
}

/// Both sessions give the same results and have the same state, call after call.
void expect_same_calls(const std::shared_ptr<GraphModule>& module) {
  Session eager(module), ours(module, compile(module));
  for (int64_t i = 0; i < 12; ++i) {
    const auto inputs = tokens(i, i % 3 + 1);
    const auto expected = eager.run(inputs), found = ours.run(inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t k = 0; k < found.size(); ++k)
      EXPECT_TRUE(at::allclose(found[k].toTensor(), expected[k].toTensor()))
          << "call " << i << ", result " << k;
    EXPECT_TRUE(at::equal(ours.state("cache"), eager.state("cache"))) << "call " << i;
  }
}

TEST(State, IsWrittenWhereItLies) {
  const auto module = cache_model(kSumOfNew, "%sum");
  const auto compiled = compile(module);
  EXPECT_EQ(kernel_of(*compiled, "aten::index_copy", tokens(0, 1)), "index_copy_in_place");
  expect_same_calls(module);
  Session session(module, compiled), other(module, compiled);
  const void* memory = session.state("cache").const_data_ptr();
  const at::Tensor before = other.state("cache").clone();
  session.run(tokens(5, 2));
  EXPECT_EQ(session.state("cache").const_data_ptr(), memory);
  EXPECT_FALSE(at::equal(session.state("cache"), before));
  EXPECT_TRUE(at::equal(other.state("cache"), before)) << "another session";
  EXPECT_TRUE(at::equal(module->tensor("cache"), before)) << "the module's own tensor";
}

TEST(State, MayBeReadBeforeItIsWritten) {
  const auto module = module_from_text(R"(
graph(%cache: buffer "cache" f32[3, 16, 4], %at: user "at" i64[s0], %rows: user "rows" f32[3, s0, 4]) {
  %old: f32[3, 4] = aten::sum.dim_IntList(%cache, [1])
  %new: f32[3, 16, 4] = aten::index_copy(%cache, 1, %at, %rows)
  return buffer_mutation "cache" %new, %old
})",
                                       {{"cache", at::randn({3, 16, 4})}});
  EXPECT_EQ(kernel_of(*compile(module), "aten::index_copy", tokens(0, 1)), "index_copy_in_place");
  expect_same_calls(module);
}

TEST(State, IsCopiedWhereTheOldContentIsStillNeeded) {
  const std::pair<std::string, std::string> models[] = {
      {"  %old: f32[3, 4] = aten::sum.dim_IntList(%cache, [1])\n", "%old"},
      {"  %view: f32[48, 4] = aten::view(%cache, [48, 4])\n  %r: f32[48, 4] = aten::neg(%view)\n", "%r"},
      {"", "%cache"},  // the caller keeps it
      {"", "%new"},    // the caller would see what the next call writes
      {"  %view: f32[48, 4] = aten::view(%new, [48, 4])\n", "%view"},
  };
  for (const auto& [nodes, result] : models) {
    SCOPED_TRACE(nodes + result);
    const auto module = cache_model(nodes, result);
    EXPECT_EQ(kernel_of(*compile(module), "aten::index_copy", tokens(0, 1)), "index_copy");
    expect_same_calls(module);
  }
}

TEST(State, WithTwoNamesIsCopied) {
  const at::Tensor both = at::randn({4, 2});
  const auto module = module_from_text(R"(
graph(%a: buffer "a" f32[4, 2], %b: buffer "b" f32[4, 2], %at: user "at" i64[1], %row: user "row" f32[1, 2]) {
  %new: f32[4, 2] = aten::index_copy(%a, 0, %at, %row)
  %old: f32[4, 2] = aten::neg(%b)
  return buffer_mutation "a" %new, %old
})",
                                       {{"a", both}, {"b", both}});
  EXPECT_EQ(kernel_of(*compile(module), "aten::index_copy", {at::tensor({int64_t{1}}), at::ones({1, 2})}),
            "index_copy");
}

TEST(State, ThatTheCallerGivesAsAnInputIsNotWrittenWhileItIsRead) {
  const auto module = module_from_text(R"(
graph(%cache: buffer "cache" f32[4, 2], %at: user "at" i64[1], %row: user "row" f32[1, 2], %x: user "x" f32[4, 2]) {
  %new: f32[4, 2] = aten::index_copy(%cache, 0, %at, %row)
  %y: f32[4, 2] = aten::neg(%x)
  return buffer_mutation "cache" %new, %y
})",
                                       {{"cache", at::zeros({4, 2})}});
  const auto compiled = compile(module);
  Session session(module, compiled);
  const at::Tensor at = at::tensor({int64_t{1}}), row = at::ones({1, 2});
  EXPECT_EQ(kernel_of(*compiled, "aten::index_copy", {at, row, at::zeros({4, 2})}), "index_copy_in_place");
  const auto results = session.run({at, row, session.state("cache")});
  EXPECT_TRUE(at::equal(results[0].toTensor(), at::zeros({4, 2}))) << "x as it was when the call began";
  EXPECT_EQ(session.state("cache").sum().item<float>(), 2);
}

TEST(State, StaysWhenAnIndexIsRefused) {
  const auto module = cache_model(kSumOfNew, "%sum");
  Session session(module, compile(module));
  const at::Tensor before = session.state("cache").clone();
  for (const int64_t wrong : {int64_t{16}, int64_t{-1}}) {
    const auto call = [&] { session.run({at::tensor({int64_t{0}, wrong}), at::randn({3, 2, 4})}); };
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, call), HasSubstr("is out of range of 16 rows"));
    EXPECT_TRUE(at::equal(session.state("cache"), before));
  }
}

/// Along `dim` three of the elements of a [5, 6, 7] are replaced; rows of any layout.
void expect_index_copy(const std::string& dtype, int64_t dim) {
  std::vector<int64_t> sizes = {5, 6, 7};
  sizes[static_cast<size_t>(dim < 0 ? dim + 3 : dim)] = 3;
  const std::string rows_type = fmt::format("{}[{}; ?]", dtype, fmt::join(sizes, ", "));
  const auto module = module_from_text(fmt::format(R"(
graph(%x: user "x" {0}[5, 6, 7], %at: user "at" i64[3], %rows: user "rows" {1}) {{
  %y: {0}[5, 6, 7] = aten::index_copy(%x, {2}, %at, %rows)
  return %y
}})",
                                                   dtype, rows_type, dim));
  const auto type = module->graph().inputs()[0].value->meta()->dtype;
  const at::Tensor x = at::randn({5, 6, 7}).mul(3).to(type);
  const at::Tensor at = at::tensor({int64_t{4}, int64_t{0}, int64_t{2}});
  const std::vector<int64_t> turned(sizes.rbegin(), sizes.rend());
  const at::Tensor dense = at::randn(sizes).mul(3).to(type);
  const at::Tensor strided = at::randn(turned).mul(3).to(type).permute({2, 1, 0});
  const auto compiled = compile(module);
  EXPECT_EQ(kernel_of(*compiled, "aten::index_copy", {x, at, dense}), "index_copy");
  for (const at::Tensor& rows : {dense, strided}) {
    EXPECT_TRUE(at::equal(compiled->run({x, at, rows})[0].toTensor(), at::index_copy(x, dim, at, rows)))
        << dtype << ", dimension " << dim;
  }
}

TEST(IndexCopy, IsAsInEagerForAllDimensionsAndTypes) {
  for (const char* dtype : {"f32", "f64", "i64", "bool", "bf16"}) {
    for (int64_t dim = -3; dim < 3; ++dim) expect_index_copy(dtype, dim);
  }
}

TEST(IndexCopy, LastOfEqualIndicesStays) {
  const auto module = module_from_text(R"(
graph(%x: user "x" f32[4, 4, 65536], %at: user "at" i64[3], %rows: user "rows" f32[4, 3, 65536]) {
  %y: f32[4, 4, 65536] = aten::index_copy(%x, 1, %at, %rows)
  return %y
})");
  const at::Tensor x = at::zeros({4, 4, 65536}), rows = at::randn({4, 3, 65536});
  const at::Tensor at = at::tensor({int64_t{2}, int64_t{2}, int64_t{2}});
  for (const int threads : {1, 2, 4}) {
    const at::Tensor y = compile(module, {.threads = threads})->run({x, at, rows})[0].toTensor();
    EXPECT_TRUE(at::equal(y.select(1, 2), rows.select(1, 2))) << threads << " threads";
  }
}

}  // namespace
}  // namespace halftone
