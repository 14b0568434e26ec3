// Every decomposition against its operator, and what tracers rely on.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "autograd/decompositions/cases/recorder.h"

namespace halftone {
namespace {

using at::Tensor;

double precision_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return 1e-12;
    case at::kFloat:
      return 1e-6;
    default:
      return 8e-3;  // bfloat16 has 8 bits
  }
}

/// Those of dimensions that have more than one element: others are never used.
std::vector<int64_t> used_strides(const Tensor& tensor) {
  std::vector<int64_t> strides;
  for (int64_t i = 0; i < tensor.dim() && tensor.numel() > 0; ++i) {
    if (tensor.size(i) > 1) strides.push_back(tensor.stride(i));
  }
  return strides;
}

void expect_same(const Tensor& actual, const Tensor& expected, const Case& call) {
  ASSERT_EQ(actual.defined(), expected.defined());
  if (!expected.defined()) return;
  EXPECT_EQ(actual.scalar_type(), expected.scalar_type());
  ASSERT_EQ(actual.sizes(), expected.sizes());
  EXPECT_EQ(used_strides(actual), used_strides(expected));
  if (expected.numel() == 0) return;
  const bool is_complex = expected.is_complex();
  const Tensor wanted = is_complex ? at::view_as_real(expected).to(at::kDouble) : expected.to(at::kDouble);
  const Tensor got = is_complex ? at::view_as_real(actual).to(at::kDouble) : actual.to(at::kDouble);
  const Tensor finite = at::where(wanted.isfinite(), wanted, at::zeros({}, at::kDouble));
  const double precision = precision_of(call.type);
  const double largest = finite.abs().max().item<double>();
  const double absolute = precision * (call.sums ? largest : std::min(1.0, largest));
  EXPECT_TRUE(at::allclose(got, wanted, precision, absolute, /*equal_nan=*/true))
      << "largest difference " << (got - wanted).abs().max().item<double>() << " of " << largest;
}

torch::jit::Stack run_operator(const Case& call) {
  torch::jit::Stack stack = call.operands;
  at::NoGradGuard no_grad;
  call.handle().callBoxed(stack);
  return stack;
}

std::vector<std::string> keys_of(const DecompositionTable& table) {
  std::vector<std::string> keys;
  for (const auto& [key, decomposition] : table) keys.push_back(key);
  return keys;
}

class Decompositions : public testing::TestWithParam<std::string> {
 protected:
  static const std::vector<Case>& cases_of(const std::string& op) {
    static const std::map<std::string, std::vector<Case>> by_op = [] {
      std::map<std::string, std::vector<Case>> cases;
      for (Case& call : all_cases()) cases[call.op].push_back(std::move(call));
      return cases;
    }();
    static const std::vector<Case> none;
    const auto found = by_op.find(op);
    return found == by_op.end() ? none : found->second;
  }
  static const DecompositionTable& table() {
    static const DecompositionTable table = core_decompositions();
    return table;
  }
};

TEST_P(Decompositions, GiveWhatTheOperatorGives) {
  ASSERT_FALSE(cases_of(GetParam()).empty()) << "no case";
  for (const Case& call : cases_of(GetParam())) {
    SCOPED_TRACE(call.describe());
    const torch::jit::Stack expected = run_operator(call);
    const Expansion expansion = expand(table().at(call.op), call);
    ASSERT_EQ(expansion.results.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE(fmt::format("result {}", i));
      ASSERT_EQ(expansion.results[i].isTensor(), expected[i].isTensor());
      if (expected[i].isTensor()) {
        expect_same(expansion.results[i].toTensor(), expected[i].toTensor(), call);
      } else {
        EXPECT_EQ(expansion.results[i], expected[i]);
      }
    }
  }
}

TEST_P(Decompositions, CallOnlyWhatATracerTakes) {
  for (const Case& call : cases_of(GetParam())) {
    SCOPED_TRACE(call.describe());
    const Expansion expansion = expand(table().at(call.op), call);
    EXPECT_TRUE(expansion.faults.empty()) << expansion.faults.front();
    EXPECT_EQ(std::count(expansion.operators.begin(), expansion.operators.end(), call.op), 0)
        << "it calls the operator that it stands for";
  }
}

INSTANTIATE_TEST_SUITE_P(Core, Decompositions, testing::ValuesIn(keys_of(core_decompositions())),
                         [](const auto& info) {
                           std::string name = info.param.substr(info.param.find(':') + 2);
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace halftone
