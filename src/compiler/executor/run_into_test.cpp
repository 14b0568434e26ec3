#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"
#include "halftone/compile/compile.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

/// A linear, a view of the input, a number.
std::shared_ptr<GraphModule> three_results() {
  return module_from_text(R"(
graph(%w: parameter "weight" f32[6, 4], %x: user "x" f32[s0, 4]) {
  %n: int(s0) = aten::sym_size.int(%x, 0)
  %y: f32[s0, 6] = aten::linear(%x, %w, None)  @ "layer" "Linear"
  %t: f32[4, s0; 1, 4] = aten::t(%x)
  return %y, %t, %n
})",
                          {{"weight", at::randn({6, 4})}});
}

TEST(RunInto, WritesWhereTheCallerSays) {
  const auto compiled = compile(three_results());
  const at::Tensor x = at::randn({5, 4});
  const auto expected = compiled->run({x});
  const std::vector<at::Tensor> outputs = {at::empty({5, 6}), at::empty({4, 5}), at::Tensor()};
  const void* before = outputs[0].data_ptr();
  compiled->run_into({x}, outputs);
  EXPECT_EQ(outputs[0].data_ptr(), before);
  EXPECT_TRUE(outputs[0].equal(expected[0].toTensor()));
  EXPECT_TRUE(outputs[1].equal(expected[1].toTensor()));
}

TEST(RunInto, OutputsOfAnyStridesAndOverTheirInputs) {
  const auto compiled = compile(three_results());
  const at::Tensor memory = at::randn({5, 24});
  const at::Tensor x = memory.slice(1, 0, 4);
  const auto expected = compiled->run({x.clone()});
  // The first output lies over the input that the second is a view of.
  const std::vector<at::Tensor> outputs = {memory.slice(1, 0, 12, 2), at::empty({5, 4}).t(), at::Tensor()};
  compiled->run_into({x}, outputs);
  EXPECT_TRUE(outputs[0].equal(expected[0].toTensor()));
  EXPECT_TRUE(outputs[1].equal(expected[1].toTensor()));
}

TEST(RunInto, SaysWhatDoesNotFit) {
  const auto compiled = compile(three_results());
  const at::Tensor x = at::randn({5, 4});
  const at::Tensor y = at::empty({5, 6}), t = at::empty({4, 5});
  const auto message = [&](const std::vector<at::Tensor>& outputs) {
    return message_of(ErrorCode::kInvalidArgument, [&] { compiled->run_into({x}, outputs); });
  };
  EXPECT_THAT(message({y, t}), HasSubstr("2 outputs were given, the model has 3"));
  EXPECT_THAT(message({y, at::Tensor(), {}}), HasSubstr("output 1"));
  EXPECT_THAT(message({y, t, t}), HasSubstr("output 2"));
  EXPECT_THAT(message({at::empty({6, 5}), t, {}}), HasSubstr("output 0: float32 [5, 6]"));
  EXPECT_THAT(message({y.to(at::kHalf), t, {}}), HasSubstr("float16 [5, 6] was given"));
  EXPECT_THAT(message({y.to(at::kMeta), t, {}}), HasSubstr("on the CPU"));
}

TEST(RunInto, InterpretedGraphsToo) {
  const auto compiled = compile(module_from_text(R"(
graph(%x: user "x" f32[4]) {
  %i: i64[u0, 1; ?] = aten::nonzero(%x)
  %y: f32[4] = aten::relu(%x)
  return %i, %y
})"));
  const at::Tensor x = at::tensor({0.f, 1.f, 0.f, -2.f});
  const std::vector<at::Tensor> outputs = {at::empty({2, 1}, at::kLong), at::empty({4})};
  compiled->run_into({x}, outputs);
  EXPECT_TRUE(outputs[0].equal(at::tensor({int64_t{1}, int64_t{3}}).unsqueeze(1)));
  EXPECT_TRUE(outputs[1].equal(at::relu(x)));
}

TEST(RunInto, LazyNegativesAndForeignTensorsAreNoPlainInputs) {
  const auto compiled = compile(three_results());
  const at::Tensor x = at::randn({5, 4});
  const at::Tensor complex = at::complex(at::zeros({5, 4}), x);
  const at::Tensor lazy = at::imag(complex.conj());  // carries the negative bit
  ASSERT_TRUE(lazy.is_neg());
  const auto expected = compiled->run({x.neg()});
  EXPECT_TRUE(at::allclose(compiled->run({lazy})[0].toTensor(), expected[0].toTensor(), 1e-5, 1e-6));
  // The sizes are known by now; the memory is not the CPU's.
  EXPECT_THROW(compiled->run({x.to(at::kMeta)}), Error);
  EXPECT_THROW(compiled->run({x.to_sparse()}), Error);
  EXPECT_THROW(compiled->run({x, x}), Error);
}

TEST(CompiledGraph, ThreadsAreLimitedByTheModel) {
  const auto module = three_results();
  const auto one = compile(module, {.threads = 1});
  const at::Tensor x = at::randn({64, 4});
  const int all = at::get_num_threads();
  at::set_num_threads(2);
  EXPECT_EQ(one->report({x}).threads, 1);
  EXPECT_EQ(compile(module)->report({x}).threads, 2);
  EXPECT_EQ(compile(module, {.threads = 3})->report({x}).threads, 2);
  at::set_num_threads(all);
  EXPECT_TRUE(one->run({x})[0].toTensor().equal(compile(module)->run({x})[0].toTensor()));
}

}  // namespace
}  // namespace halftone
