#include "backend/test_support.h"
#include "halftone/base/log.h"

namespace halftone {
namespace {

TEST(TorchScript, RefusesArithmeticOnSizesAndSubgraphsByNode) {
  const auto sizes = module_from_text(R"(
graph(%x: user "x" f32[s0, 3]) {
  %n: int(s0) = aten::sym_size.int(%x, 0)
  %m: int(2*s0) = sym::mul(%n, 2)  @ "head" "Head"
  %y: f32[2*s0] = aten::zeros([%m])
  return %y
})");
  expect_error(ErrorCode::kUnsupported, {"sym::mul (%m)", "head", "sizes"},
               [&] { compile_with("ts", sizes); });
  const auto subgraphs = module_from_text(R"(
graph(%x: user "x" f32[3], %c: user "c" bool[]) {
  %y: f32[3] = builtin::cond(%c, graph(%a: user f32[3]) {
    return %a
  }, graph(%a: user f32[3]) {
    %b: f32[3] = aten::neg(%a)
    return %b
  }, [%x])
  return %y
})");
  expect_error(ErrorCode::kUnsupported, {"builtin::cond (%y)", "subgraphs"},
               [&] { compile_with("ts", subgraphs); });
}

TEST(TorchScript, RefusesANumberWhereATensorIsNeeded) {
  const auto module = module_from_text(R"(
graph(%x: user "x" f32[s0, 3]) {
  %n: int(s0) = aten::sym_size.int(%x, 0)
  %y: f32[s0, 3] = aten::mul.Tensor(%x, %n)
  return %y
})");
  expect_error(ErrorCode::kUnsupported, {"aten::mul.Tensor (%y)", "%n"}, [&] { compile_with("ts", module); });
}

TEST(TorchScript, ErrorsOfOperatorsNameTheNode) {
  const auto module = module_from_text(R"(
graph(%x: user "x" tensor) {
  %y: tensor = aten::reshape(%x, [7])  @ "head" "Head"
  return %y
})");
  expect_error(ErrorCode::kInvalidArgument,
               {"TorchScript: aten::reshape (%y) in layer \"head\": shape '[7]' is invalid"},
               [&] { compile_with("ts", module)({at::ones({2})}); });
}

TEST(TorchScript, DrawsRandomNumbersAsEagerDoes) {
  const auto module = module_from_text(R"(
graph(%x: user "x" f32[100]) {
  %a: f32[100], %m: bool[100] = aten::native_dropout(%x, 0.5, true)
  %b: f32[100], %n: bool[100] = aten::native_dropout(%x, 0.5, true)
  %c: f32[100] = aten::dropout(%x, 0.5, true)
  %d: f32[100] = aten::rand_like(%x)
  %e: f32[100] = aten::rand_like(%x)
  return %a, %b, %c, %d, %e
})");
  const auto scripted = compile_with("ts", module);
  const auto eager = compile_with("eager", module);
  for (int call = 0; call < 4; ++call) {
    at::manual_seed(3);
    const auto expected = eager({at::ones({100})});
    at::manual_seed(3);
    expect_same(scripted({at::ones({100})}), expected, "random");
    EXPECT_FALSE(at::equal(expected[0].toTensor(), expected[1].toTensor()));
  }
}

TEST(TorchScript, KeepsWritesWhoseResultNobodyUses) {
  const auto module = module_from_text(R"(
graph(%x: user "x" f32[3]) {
  %v: f32[1; ?] = aten::slice.Tensor(%x, 0, 0, 1)
  %z: f32[1; ?] = aten::fill_.Scalar(%v, 9.0)
  return None
})");
  const auto function = compile_with("ts", module);
  for (int call = 0; call < 3; ++call) {
    const at::Tensor x = at::zeros({3});
    function({x});
    EXPECT_TRUE(at::equal(x, at::tensor({9.0F, 0.0F, 0.0F})));
  }
}

TEST(TorchScript, WarnsOfChecksThatItDrops) {
  const auto module = module_from_text(R"(
graph(%x: user "x" f32[3], %c: user "c" bool[]) {
  aten::_assert_async.msg(%c, "c must hold")  @ "head" "Head"
  %y: f32[3] = aten::neg(%x)
  return %y
})");
  std::string warnings;
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::kWarning) warnings += text;
  });
  const auto function = compile_with("ts", module);
  set_log_sink({});
  EXPECT_NE(warnings.find("aten::_assert_async.msg in layer \"head\": the check is dropped"),
            std::string::npos)
      << warnings;
  EXPECT_NO_THROW(function({at::ones({3}), at::scalar_tensor(false, at::kBool)}));
}

TEST(TorchScript, KeepsBatchNormStatisticsOfTraining) {
  const auto build = [] {
    return module_from_text(R"(
graph(%mean: buffer "mean" f32[2], %var: buffer "var" f32[2], %x: user "x" f32[4, 2]) {
  %y: f32[4, 2] = aten::batch_norm(%x, None, None, %mean, %var, true, 0.1, 1e-05, false)
  %z: f32[4, 2] = aten::batch_norm(%x, None, None, %mean, %var, true, 0.1, 1e-05, false)
  return %y
})",
                            {{"mean", at::zeros({2})}, {"var", at::ones({2})}});
  };
  const auto scripted = build();
  const auto eager = build();
  const auto one = compile_with("ts", scripted);
  const auto other = compile_with("eager", eager);
  for (int call = 0; call < 3; ++call) {
    const at::Tensor x = at::arange(8, at::kFloat).reshape({4, 2}) + call;
    expect_same(one({x}), other({x}), "batch norm");
    expect_same({scripted->tensor("mean"), scripted->tensor("var")},
                {eager->tensor("mean"), eager->tensor("var")}, "statistics");
  }
}

}  // namespace
}  // namespace halftone
