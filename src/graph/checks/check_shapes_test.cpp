#include "graph/checks/check_shapes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"

namespace halftone {
namespace {

/// A graph of one call on %x f32[4, 6], %i i64[3] and %w f32[10, 4], its result declared as `type`.
std::string graph_of(const std::string& call, const std::string& type) {
  return "graph(%w: parameter \"w\" f32[10, 4], %x: user \"x\" f32[4, 6], %i: user \"i\" i64[3]) {\n  %y: " +
         type + " = " + call + "  @ \"encoder.layer\" \"Layer\"\n  return %y, %i\n}";
}

std::shared_ptr<GraphModule> module_of(const std::string& call, const std::string& type) {
  return module_from_text(graph_of(call, type), {{"w", at::randn({10, 4})}});
}

TEST(CheckShapes, TrueDeclarationsPass) {
  for (const auto& [call, type] : std::vector<std::pair<std::string, std::string>>{
           {"aten::expand(%x, [4, 6])", "f32[4, 6]"},
           {"aten::cat([%x, %x], 1)", "f32[4, 12]"},
           {"aten::embedding(%w, %i)", "f32[3, 4]"},
           {"aten::index_select(%w, 0, %i)", "f32[3, 4]"},  // not known to the meta device: believed
           {"aten::add.Tensor(%x, 1)", "f32[4, 6]"},
           {"aten::zeros([4, 5])", "f32[4, 5]"},
           {"aten::to.device(%x, device:cpu, dtype:f64)", "f64[4, 6]"},
           {"aten::adaptive_avg_pool1d(%x, [2])", "f32[4, 2]"},
           {"aten::layer_norm(%x, [6])", "f32[4, 6]"}}) {
    SCOPED_TRACE(call);
    try {
      check_shapes(*module_of(call, type));
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(CheckShapes, OtherSizesAreAnErrorThatNamesBoth) {
  expect_error(ErrorCode::kInvalidArgument, {"aten::cat (%y)", "\"encoder.layer\"", "[4, 6]", "[4, 12]"},
               [] { check_shapes(*module_of("aten::cat([%x, %x], 1)", "f32[4, 6]")); });
  expect_error(ErrorCode::kInvalidArgument, {"aten::embedding", "[3, 40]", "[3, 4]"},
               [] { check_shapes(*module_of("aten::embedding(%w, %i)", "f32[3, 40]")); });
  expect_error(ErrorCode::kInvalidArgument, {"float64 [4, 6]", "float32 [4, 6]"},
               [] { check_shapes(*module_of("aten::gelu(%x)", "f64[4, 6]")); });
}

TEST(CheckShapes, WhatEagerRefusesIsRefused) {
  for (const auto& [call, type] :
       std::vector<std::pair<std::string, std::string>>{{"aten::expand(%x, [-5, 6])", "f32[4, 6]"},
                                                        {"aten::slice.Tensor(%x, 99, 0, 4, 1)", "f32[4, 6]"},
                                                        {"aten::squeeze.dim(%x, 99)", "f32[4, 6]"},
                                                        {"aten::permute(%x, [0, 0])", "f32[4, 6]"},
                                                        {"aten::transpose.int(%x, 0, 7)", "f32[4, 6]"},
                                                        {"aten::reshape(%x, [5, 5])", "f32[4, 6]"},
                                                        {"aten::view(%x, [4, 7])", "f32[4, 6]"},
                                                        {"aten::select.int(%x, 0, 9)", "f32[6]"},
                                                        {"aten::cat([%x, %x], 9)", "f32[4, 12]"},
                                                        {"aten::softmax.int(%x, 5)", "f32[4, 6]"},
                                                        {"aten::linear(%x, %w)", "f32[4, 10]"},
                                                        {"aten::embedding(%w, %x)", "f32[4, 6, 4]"},
                                                        {"aten::adaptive_avg_pool1d(%x, [-2])", "f32[4, 2]"},
                                                        {"aten::as_strided(%x, [4, 7], [7, 1])", "f32[4, 7]"},
                                                        {"aten::as_strided(%x, [2], [1], 23)", "f32[2]"},
                                                        {"aten::narrow(%x, 0, 3, 4)", "f32[4, 6]"}}) {
    SCOPED_TRACE(call);
    const auto module = module_of(call, type);
    message_of(ErrorCode::kInvalidArgument, [&] { check_shapes(*module); });
    message_of(ErrorCode::kInvalidArgument, [&] {
      Session(module).run({at::randn({4, 6}), at::zeros({3}, at::kLong)});
    });
  }
}

TEST(CheckShapes, NothingLargerThanTheMachineIsDeclared) {
  expect_error(ErrorCode::kInvalidArgument, {"more memory"}, [] {
    check_shapes(*module_of("aten::zeros([1099511627776, 64])", "f32[1099511627776, 64]"));
  });
  expect_error(ErrorCode::kInvalidArgument, {"aten::index_select", "more memory"},
               [] { check_shapes(*module_of("aten::index_select(%w, 0, %i)", "f32[1099511627776, 64]")); });
  message_of(ErrorCode::kInvalidArgument, [] {
    check_shapes(*module_of("aten::zeros([4611686018427387904, 64])", "f32[4611686018427387904, 64]"));
  });
  // No element, but products of its sizes do not fit.
  message_of(ErrorCode::kInvalidArgument, [] {
    check_shapes(*module_of("aten::zeros([0, 4611686018427387904, 64])", "f32[0, 4611686018427387904, 64]"));
  });
}

TEST(CheckShapes, SymbolsAreThoseOfTheSample) {
  const char* text = R"(
graph(%x: user "x" f32[s0, s1]) {
  %n: int = aten::sym_size.int(%x, 0)
  %y: f32[s0*s1] = aten::view(%x, [-1])
  %z: f32[s0, s1] = aten::view(%y, [%n, -1])
  %a: f32[s0, s1 + 1] = aten::cat([%z, %z], 1)
  return %a
})";
  const auto module = module_from_text(text);
  check_shapes(*module);  // nothing is known
  module->sample_inputs = {at::randn({3, 1})};
  check_shapes(*module);  // true by chance
  module->sample_inputs = {at::randn({3, 2})};
  expect_error(ErrorCode::kInvalidArgument, {"[3, 3]", "[3, 4]"}, [&] { check_shapes(*module); });
  expect_error(ErrorCode::kInvalidArgument, {"[5, 7]", "[5, 12]"}, [&] {
    check_shapes(*module, {at::randn({5, 6})}, {{"s0", 5}, {"s1", 6}});
  });
}

TEST(CheckShapes, NumbersAreComparedToo) {
  const auto module = module_from_text(R"(
graph(%x: user "x" f32[4, 6]) {
  %n: int(s0 + 2) = aten::sym_size.int(%x, 0)
  %y: f32[4, 6] = aten::view(%x, [%n, -1])
  return %y
})");
  expect_error(ErrorCode::kInvalidArgument, {"aten::sym_size.int", "s0 + 2 = 5", "gives 4"}, [&] {
    check_shapes(*module, {at::randn({4, 6})}, {{"s0", 3}});
  });
}

TEST(CheckShapes, DataDependentSizesAndWritesAreNoReasonToRefuse) {
  const auto module = module_from_text(R"(
graph(%x: user "x" f32[4, 6]) {
  %i: i64[u0, 2] = aten::nonzero(%x)
  %f: i64[u0*2] = aten::view(%i, [-1])
  %c: f32[4, 6] = aten::clone(%x)
  %a: f32[4, 6] = aten::add_.Tensor(%c, 1)
  %l: list = aten::split.Tensor(%a, 2)
  %p: f32[2, 6], %q: f32[2, 6] = builtin::unpack(%l)
  return %f, %p, %q
})");
  module->sample_inputs = {at::randn({4, 6})};
  check_shapes(*module);
}

TEST(CheckShapes, AsStridedMayReachTheWholeMemoryOfAnInput) {
  const auto module = module_of("aten::as_strided(%x, [2, 6], [6, 1], 0)", "f32[2, 6]");
  const at::Tensor whole = at::randn({8, 6});
  check_shapes(*module, {whole.slice(0, 4), at::zeros({3}, at::kLong)}, {});
  const auto beyond = module_of("aten::as_strided(%x, [2, 6], [6, 1], 37)", "f32[2, 6]");
  expect_error(ErrorCode::kInvalidArgument, {"196 bytes", "192"}, [&] {
    check_shapes(*beyond, {whole.slice(0, 4), at::zeros({3}, at::kLong)}, {});
  });
}

/// Every kind of control flow on %x f32[4, 6]; BRANCH, BODY, STEP, TURN and DECLARED are types.
constexpr const char* kControlFlow = R"(
graph(%x: user "x" f32[4, 6], %p: user "p" bool[]) {
  %c: f32[4, 6] = builtin::cond(%p, graph(%a: user "a" f32[4, 6]) {
      %b: BRANCH = aten::relu(%a)
      return %b
    }, graph(%a: user "a" f32[4, 6]) {
      return %a
    }, [%x])  @ "switch"
  %w: f32[4, 6] = builtin::while_loop(graph(%u: user "u" f32[4, 6], %k: user "k" f32[4, 6]) {
      %s: f32[] = aten::sum(%u)
      %t: bool[] = aten::lt.Scalar(%s, 10)
      return %t
    }, graph(%u: user "u" f32[4, 6], %k: user "k" f32[4, 6]) {
      %v: BODY = aten::add.Tensor(%u, %k)
      return %v
    }, [%c], [%x])
  %m: DECLARED = builtin::map(graph(%r: user "r" f32[6], %k: user "k" f32[4, 6]) {
      %q: STEP = aten::mv(%k, %r)
      return %q
    }, [%w], [%x])
  %l: f32[6], %all: f32[4, 6] = builtin::scan(graph(%h: user "h" f32[6], %r: user "r" f32[6]) {
      %n: TURN = aten::add.Tensor(%h, %r)
      return %n, %n
    }, [%zero], [%w], [])
  return %c, %m, %l, %all
})";

std::shared_ptr<GraphModule> control_flow(const std::map<std::string, std::string>& lies = {}) {
  std::map<std::string, std::string> types = {{"BRANCH", "f32[4, 6]"},
                                              {"BODY", "f32[4, 6]"},
                                              {"STEP", "f32[4]"},
                                              {"TURN", "f32[6]"},
                                              {"DECLARED", "f32[4, 4]"},
                                              {"%l: f32[6]", "%l: f32[6]"},
                                              {"\"r\" f32[6]", "\"r\" f32[6]"},
                                              {"%all: f32[4, 6]", "%all: f32[4, 6]"}};
  for (const auto& [what, type] : lies) types[what] = type;
  std::string text = kControlFlow;
  const std::string zero = "  %zero: f32[6] = aten::select.int(%x, 0, 0)\n";
  text.insert(text.find("  %c:"), zero);
  for (const auto& [what, type] : types) text.replace(text.find(what), what.size(), type);
  auto module = module_from_text(text);
  module->sample_inputs = {at::randn({4, 6}), at::scalar_tensor(true, at::kBool)};
  return module;
}

TEST(CheckShapes, SubgraphsAreCheckedWithTheSizesOfTheirOperands) {
  check_shapes(*control_flow());
  struct Lie {
    std::string what, type, node, inner;
  };
  for (const auto& [what, type, node, inner] :
       {Lie{"BRANCH", "f32[400, 6]", "builtin::cond (%c) in layer \"switch\"", "aten::relu (%b)"},
        Lie{"BODY", "f32[4, 60]", "builtin::while_loop", "aten::add.Tensor (%v)"},
        Lie{"STEP", "f64[4]", "builtin::map", "aten::mv (%q)"},
        Lie{"TURN", "f32[7]", "builtin::scan", "aten::add.Tensor (%n)"},
        Lie{"DECLARED", "f32[4, 5]", "builtin::map (%m)", "the operator gives float32 [4, 4]"},
        Lie{"%l: f32[6]", "%l: f32[8]", "builtin::scan (%l)", "the operator gives float32 [6]"},
        Lie{"%all: f32[4, 6]", "%all: f32[4, 7]", "builtin::scan (%l)", "the operator gives float32 [4, 6]"},
        Lie{"\"r\" f32[6]", "\"r\" f32[600]", "builtin::map (%m)", "input %r of its subgraph"}}) {
    SCOPED_TRACE(what + " " + type);
    const auto module = control_flow({{what, type}});
    expect_error(ErrorCode::kInvalidArgument, {node, inner}, [&] { check_shapes(*module); });
  }
}

TEST(CheckShapes, GroupNormTakesChannelsLast) {
  const auto make = [](const std::string& groups) {
    const auto module = module_from_text(R"(
graph(%x: user "x" f32[2, 8, 4, 4; 128, 1, 32, 8]) {
  %y: f32[2, 8, 4, 4; 128, 1, 32, 8] = aten::group_norm(%x, )" +
                                         groups + ")\n  return %y\n}");
    module->sample_inputs = {at::ones({2, 8, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast)};
    return module;
  };
  check_shapes(*make("2"));
  for (const char* groups : {"0", "3", "-2"})
    expect_error(ErrorCode::kInvalidArgument, {"aten::group_norm (%y) in layer \"\": the channels of x"},
                 [&] { check_shapes(*make(groups)); });
}

TEST(CheckShapes, SequencesWithoutElementsAndUnknownOperandsAreBelieved) {
  const auto module = module_from_text(R"(
graph(%x: user "x" f32[s0, 6]) {
  %m: f32[s0, 6] = builtin::map(graph(%r: user "r" f32[6]) {
      %q: f32[6] = aten::relu(%r)
      return %q
    }, [%x], [])
  %i: i64[u0, 2] = aten::nonzero(%m)
  %n: i64[u0, 2] = builtin::map(graph(%r: user "r" i64[2]) {
      %q: i64[2] = aten::neg(%r)
      return %q
    }, [%i], [])
  return %m, %n
})");
  check_shapes(*module);
  for (const int64_t length : {0, 3}) {
    module->sample_inputs = {at::randn({length, 6})};
    check_shapes(*module);
  }
}

}  // namespace
}  // namespace halftone
