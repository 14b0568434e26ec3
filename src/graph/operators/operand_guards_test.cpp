// Operands with which ATen reads outside its tensors or traps: an error, before ATen sees them.
#include "graph/operators/operand_guards.h"

#include <ATen/ATen.h>

#include "graph/test_support.h"

namespace halftone {
namespace {

/// One node on inputs %x, %y and %z, given its operands and how many results it has.
std::vector<c10::IValue> run_node(const std::string& call, std::vector<c10::IValue> inputs, int results = 1) {
  std::string text = "graph(";
  const char* const names[] = {"%x", "%y", "%z"};
  for (size_t i = 0; i < inputs.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::string(names[i]) + ": user tensor";
  text += ") {\n  %r0: tensor";
  for (int i = 1; i < results; ++i) text += ", %r" + std::to_string(i) + ": tensor";
  const auto module = module_from_text(text + " = " + call + "\n  return %r0\n}");
  return Session(module).run(std::move(inputs));
}

void expect_refused(const std::string& call, std::vector<c10::IValue> inputs, const std::string& reason,
                    int results = 1) {
  expect_error(ErrorCode::kInvalidArgument, {reason}, [&] { run_node(call, std::move(inputs), results); });
}

TEST(OperandGuards, BatchNormNeedsOneNumberForEachChannel) {
  const at::Tensor x = at::ones({3, 5, 4});
  const std::string call =
      "aten::_native_batch_norm_legit_functional(%x, None, None, %y, %z, true, 0.1, 0.00001)";
  EXPECT_EQ(run_node(call, {x, at::ones(5), at::ones(5)}, 5)[0].toTensor().sizes(), x.sizes());
  expect_refused(call, {x, at::ones(5), at::ones(0)}, "each channel", 5);
  expect_refused(call, {x, at::ones(1), at::ones(5)}, "each channel", 5);
  expect_refused("aten::_native_batch_norm_legit_no_training(%x, None, None, %y, %z, 0.1, 0.00001)",
                 {x, at::ones(4), at::ones(4)}, "each channel", 3);
}

TEST(OperandGuards, FourierTransformsNeedDimensionsOfTheirInput) {
  EXPECT_EQ(run_node("aten::_fft_r2c(%x, [0], 0, true)", {at::ones(8)})[0].toTensor().size(0), 5);
  expect_refused("aten::_fft_r2c(%x, [-2], 0, true)", {at::ones(8)}, "does not have");
  expect_refused("aten::_fft_r2c(%x, [1099511627776], 0, true)", {at::ones(8)}, "does not have");
  const at::Tensor z = at::ones({4, 6}, at::kComplexFloat);
  expect_refused("aten::_fft_c2c(%x, [7, 1], 0, true)", {z}, "does not have");
  expect_refused("aten::_fft_c2r(%x, [1], 0, -9223372036854775808)", {z}, "does not fit");
  EXPECT_EQ(run_node("aten::_fft_c2r(%x, [1], 0, 10)", {z})[0].toTensor().size(1), 10);
}

TEST(OperandGuards, AttentionNeedsOperandsThatFit) {
  const std::string call = "aten::_scaled_dot_product_flash_attention_for_cpu(%x, %y, %z)";
  const auto make = [](int64_t heads, int64_t length) { return at::ones({1, heads, length, 8}); };
  EXPECT_EQ(run_node(call, {make(4, 3), make(2, 6), make(2, 6)}, 2)[0].toTensor().size(1), 4);
  expect_refused(call, {make(4, 0), make(4, 6), make(4, 6)}, "none of them 0", 2);
  expect_refused(call, {make(4, 3), make(3, 6), make(3, 6)}, "do not fit", 2);
  expect_refused(call, {make(4, 3), make(4, 6), make(4, 5)}, "do not fit", 2);
}

TEST(OperandGuards, TheLeastIntegerIsNotDividedByMinusOne) {
  const at::Tensor least = at::full({3}, std::numeric_limits<int64_t>::min(), at::kLong);
  const at::Tensor minus = at::full({3}, -1, at::kLong);
  for (const char* call :
       {"aten::div.Tensor_mode(%x, %y, rounding_mode=\"floor\")", "aten::floor_divide(%x, %y)",
        "aten::remainder.Tensor(%x, %y)", "aten::fmod.Tensor(%x, %y)"}) {
    expect_refused(call, {least, minus}, "least integer");
    EXPECT_EQ(run_node(call, {minus, minus})[0].toTensor().numel(), 3);
  }
  expect_refused("aten::remainder.Scalar(%x, -1)", {least}, "least integer");
  const at::Tensor small = at::full({3}, std::numeric_limits<int32_t>::min(), at::kInt);
  expect_refused("aten::floor_divide(%x, %y)", {small, minus.to(at::kInt)}, "least integer");
}

TEST(OperandGuards, RepeatsAreCounted) {
  const std::string call = "aten::repeat_interleave.Tensor(%x)";
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(run_node(call, {at::full({2}, 3, at::kLong)})[0].toTensor().numel(), 6);
  expect_refused(call, {at::full({3}, most, at::kLong)}, "too many");
  expect_refused(call, {at::full({3}, -1, at::kLong)}, "negative");
  expect_refused("aten::_pdist_forward(%x)", {at::ones({5, 5, 0})}, "matrix");
}

TEST(OperandGuards, WeightNormNeedsANumberForEachIndex) {
  const std::string call = "aten::_weight_norm(%x, %y, 0)";
  const at::Tensor v = at::ones({32, 4});
  EXPECT_EQ(run_node(call, {v, at::ones({32, 1})})[0].toTensor().sizes(), v.sizes());
  EXPECT_EQ(run_node("aten::_weight_norm(%x, %y, 1)", {v, at::ones({1, 4})})[0].toTensor().sizes(),
            v.sizes());
  expect_refused(call, {v, at::ones({1, 4, 1})}, "as many numbers");
  expect_refused(call, {at::ones({32}), at::ones({1, 4, 1})}, "as many numbers");
  expect_refused(call, {v, at::ones({32, 1}, at::kDouble)}, "one floating-point type");
  expect_refused("aten::_weight_norm(%x, %y, 9)", {v, at::ones({32, 1})}, "does not have");
  expect_refused("aten::_weight_norm_interface(%x, %y, 1)", {v, at::ones({1, 2})}, "as many numbers", 2);
}

TEST(OperandGuards, GroupNormNeedsGroupsOfItsInput) {
  const at::Tensor x = at::ones({2, 6, 4});
  const auto call = [](const std::string& numbers) {
    return "aten::native_group_norm(%x, None, None, " + numbers + ", 0.00001)";
  };
  EXPECT_EQ(run_node(call("2, 6, 4, 3"), {x}, 3)[0].toTensor().sizes(), x.sizes());
  for (const char* numbers : {"2, 6, 4, 0", "2, 6, 4, -3", "2, 6, 4, 4", "3, 6, 4, 3", "2, 7, 4, 7",
                              "2147483648, 6, 4, 3", "2, 6, -2, 3"})
    expect_refused(call(numbers), {x}, "not those of its input", 3);
  expect_refused(call("2, 6, 5, 3"), {x}, "another number of elements", 3);
}

TEST(OperandGuards, ListsOfMillionsOfTensorsAreRefused) {
  const at::Tensor wide = at::ones({1}).expand({int64_t{1} << 40});
  for (const char* call : {"aten::tensor_split.sections(%x, 2147483647)", "aten::unbind.int(%x)",
                           "aten::split.Tensor(%x, 1)", "aten::unsafe_split.Tensor(%x, 1)",
                           "aten::chunk(%x, 1099511627776)", "aten::hsplit.int(%x, 1099511627776)"})
    expect_refused(call, {wide}, "more than a million tensors");
  expect_refused("aten::tensor_split.tensor_indices_or_sections(%x, %y)",
                 {wide, at::scalar_tensor(int64_t{1} << 40, at::kLong)}, "more than a million tensors");
}

}  // namespace
}  // namespace halftone
