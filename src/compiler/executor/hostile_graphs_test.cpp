// Graphs that lie about sizes, or call operators with arguments that no exporter writes: the same answer as
// eager, or a typed error on both sides. Memory is guarded, so an overrun ends the test.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/executor/memory/guarded_memory.h"
#include "compiler/ops/ops.h"
#include "graph/test_support.h"
#include "halftone/compile/compile.h"
#include "halftone/quant/weight_format.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

class HostileGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    register_fused_operators();
    compiler::set_guarded_plan_memory(true);
  }
  void TearDown() override { compiler::set_guarded_plan_memory(false); }
};

using Results = std::vector<c10::IValue>;

/// The results, or nothing and the message of a halftone::Error; anything else that is thrown is a failure.
template <typename Run>
std::optional<Results> run_or_refuse(Run run, std::string& message) {
  try {
    return run();
  } catch (const Error& error) {
    EXPECT_NE(to_string(error.code()), to_string(ErrorCode::kInternal)) << error.what();
    message = error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not a halftone::Error: " << error.what();
  }
  return std::nullopt;
}

std::optional<Results> eager(const std::shared_ptr<GraphModule>& module, const Results& inputs,
                             std::string& message) {
  return run_or_refuse([&] { return Session(module).run(inputs); }, message);
}

std::optional<Results> compiled(const std::shared_ptr<GraphModule>& module, const Results& inputs,
                                std::string& message) {
  return run_or_refuse([&] { return compile(module)->run(inputs); }, message);
}

/// Both sides refuse. Gives what the compiled side says.
std::string expect_refused(const std::shared_ptr<GraphModule>& module, const Results& inputs) {
  std::string eagerly, natively;
  EXPECT_FALSE(eager(module, inputs, eagerly)) << "eager accepts it";
  EXPECT_FALSE(compiled(module, inputs, natively)) << "compiled accepts it";
  return natively;
}

/// Compiled is refused (a declaration is a lie) or gives what eager does.
void expect_same_or_refused(const std::shared_ptr<GraphModule>& module, const Results& inputs) {
  std::string message;
  const auto expected = eager(module, inputs, message);
  const auto found = compiled(module, inputs, message);
  if (!found) return;
  ASSERT_TRUE(expected) << "eager refuses it: " << message;
  for (size_t i = 0; i < found->size(); ++i) {
    if (!(*found)[i].isTensor()) continue;
    EXPECT_TRUE(at::allclose((*found)[i].toTensor(), (*expected)[i].toTensor(), 1e-4, 1e-4,
                             /*equal_nan=*/true));
  }
}

TEST_F(HostileGraphs, LyingSizesAreRefusedWithBothShapes) {
  const auto refuses = [](const std::string& call, const std::string& lie) {
    SCOPED_TRACE(call + " as " + lie);
    const auto module = module_from_text(
        "graph(%x: user \"x\" f32[4, 6], %i: user \"i\" i64[3], %w: parameter \"w\" f32[10, 6], "
        "%p: user \"p\" f32[2, 8, 6, 6]) {\n"
        "  %y: " +
            lie + " = " + call + "  @ \"block.1\" \"Block\"\n  %z: f32[4, 6] = aten::gelu(%x)\n" +
            "  return %y, %z\n}",
        {{"w", at::randn({10, 6})}});
    std::string message;
    EXPECT_FALSE(compiled(module,
                          {at::randn({4, 6}), at::zeros({3}, at::kLong),
                           at::randn({2, 8, 6, 6}).contiguous(at::MemoryFormat::ChannelsLast)},
                          message));
    EXPECT_THAT(message, HasSubstr("declared"));
    EXPECT_THAT(message, HasSubstr("block.1"));
  };
  refuses("aten::cat([%x, %x], 1)", "f32[4, 6]");
  refuses("aten::cat([%x, %x], 0)", "f32[2, 6]");
  refuses("aten::cat([%x, %x], 1)", "f32[400, 120]");
  refuses("aten::gelu(%x)", "f32[40, 60]");
  refuses("aten::relu(%x)", "f32[1]");
  refuses("aten::gelu(%x)", "f64[4, 6]");
  refuses("aten::softmax.int(%x, -1)", "f32[4, 600]");
  refuses("aten::add.Tensor(%x, %x)", "f32[4, 6, 2]");
  refuses("aten::linear(%x, %w)", "f32[4, 1000]");
  refuses("aten::layer_norm(%x, [6])", "f32[4, 7]");
  refuses("aten::embedding(%w, %i)", "f32[30, 6]");
  refuses("aten::index_select(%w, 0, %i)", "f32[30, 6]");  // found in the run
  refuses("aten::reshape(%x, [24])", "f32[240]");
  refuses("aten::clone(%x)", "f32[4, 6, 2]");
  refuses("aten::to.dtype(%x, dtype:f64)", "f32[4, 6]");
  refuses("aten::max_pool2d(%p, [2, 2])", "f32[2, 8, 30, 30]");
  refuses("aten::avg_pool2d(%p, [2, 2])", "f32[2, 8, 6, 6]");
  refuses("aten::adaptive_avg_pool2d(%p, [2, 2])", "f32[2, 8, 60, 60]");
  refuses("aten::mean.dim(%p, [2, 3])", "f32[2, 80]");
  refuses("aten::amax(%p, [2, 3])", "f32[2, 80]");
}

TEST_F(HostileGraphs, OperandsThatAreTurnedInPlace) {
  for (const char* call : {"aten::swapaxes_(%y, 0, 1)", "aten::t_(%y)", "aten::transpose_(%y, 0, 1)"}) {
    SCOPED_TRACE(call);
    const auto module = module_from_text(fmt::format(
        "graph(%x: user \"x\" f32[6, 6]) {{\n  %y: f32[6, 6] = aten::gelu(%x)\n  %t: tensor = {}\n  "
        "return %t, %y\n}}",
        call));
    std::string message;
    ASSERT_TRUE(compiled(module, {at::randn({6, 6})}, message)) << message;
    expect_same_or_refused(module, {at::randn({6, 6})});
  }
}

TEST_F(HostileGraphs, WhatEagerRefusesIsNotDropped) {
  for (const char* call :
       {"aten::expand(%x, [-5, 6])", "aten::slice.Tensor(%x, 99, 0, 4, 1)", "aten::squeeze.dim(%x, 99)",
        "aten::permute(%x, [0, 0])", "aten::transpose.int(%x, 7, 7)", "aten::reshape(%x, [5, 5])",
        "aten::view(%x, [4, 7])", "aten::narrow(%x, 0, 3, 4)", "aten::cat([%x], 9)",
        "aten::flatten.using_ints(%x, 3, 9)", "aten::unflatten.int(%x, 0, [3, 2])",
        "aten::softmax.int(%x, 5)", "aten::gelu(%x, approximate=\"nonsense\")", "aten::permute(%x, [0])"}) {
    SCOPED_TRACE(call);
    const auto module = module_from_text(fmt::format(
        "graph(%x: user \"x\" f32[4, 6]) {{\n  %y: f32[4, 6] = {}\n  %z: f32[4, 6] = aten::relu(%y)\n  "
        "return %z\n}}",
        call));
    expect_refused(module, {at::randn({4, 6})});
  }
}

TEST_F(HostileGraphs, PassesTakeNoConstantForGranted) {
  const auto check = [](const std::string& body, TensorMap tensors) {
    SCOPED_TRACE(body);
    std::string inputs = "%x: user \"x\" f32[s0, 4, 6, 6]";
    for (const auto& [name, tensor] : tensors)
      inputs += fmt::format(", %{}: parameter \"{}\" f32[{}]", name, name, fmt::join(tensor.sizes(), ", "));
    const auto module = module_from_text("graph(" + inputs + ") {\n  " + body + "\n  return %z\n}", tensors);
    expect_refused(module, {at::randn({2, 4, 6, 6})});
  };
  const std::string norm =
      "\n  %z: f32[s0, 4, 6, 6] = aten::batch_norm(%y, %g, None, %m, %v, false, 0.1, 1e-05, false)";
  const at::Tensor four = at::rand({4}), three = at::rand({3});
  const std::string y = "%y: f32[s0, 4, 6, 6] = ";
  const auto with = [&](const at::Tensor& w, const at::Tensor& g, const at::Tensor& m) {
    return TensorMap{{"w", w}, {"g", g}, {"m", m}, {"v", m}};
  };
  check(y + "aten::conv_transpose2d.input(%x, %w, None, [1, 1], [1, 1], [0, 0], 0, [1, 1])" + norm,
        with(at::randn({4, 4, 3, 3}), four, four));
  check(y + "aten::conv2d(%x, %w, None, [1, 1], [1, 1], [1, 1], 1)" + norm,
        with(at::randn({4, 4, 3, 3}), three, four));
  check(y + "aten::conv2d(%x, %w, None, [1, 1], [1, 1], [1, 1], 1)" + norm,
        with(at::randn({4, 4, 3, 3}), four, at::rand({1})));
  check(y + "aten::conv2d(%x, %w, None, [1, 1], [1, 1], [1, 1], 1)" + norm, with(at::randn({4}), four, four));
  check("%z: f32[s0, 4, 6, 6] = aten::conv2d(%x, %w, None, [0, 1], [0, 0], [1, 1], 1)",
        {{"w", at::randn({4, 4, 0, 1})}});
  check("%z: f32[s0, 4, 6, 6] = aten::conv2d(%x, %w, None, [0, 0], [0, 0], [1, 1], 1)",
        {{"w", at::randn({4, 4, 0, 0})}});
  check("%z: f32[s0, 4, 6, 6] = aten::layer_norm(%x, [5], None, None)", {});
  check("%z: f32[s0, 4, 6, 6] = aten::layer_norm(%x, [6], %w, None)", {{"w", at::randn({5})}});
  check("%z: f32[s0, 4, 6, 6] = aten::linear(%x, %w, %b)", {{"w", at::randn({6, 6})}, {"b", at::randn({5})}});
}

TEST_F(HostileGraphs, FewerValuesThanKeysAreRefused) {
  // libtorch's own kernel does not look.
  const auto module = module_from_text(R"(
graph(%x: user "x" f32[2, 4, 6, 6], %v: user "v" f32[2, 4, 5, 6]) {
  %y: f32[2, 4, 6, 6] = aten::scaled_dot_product_attention(%x, %x, %v)
  return %y
})");
  std::string message;
  EXPECT_FALSE(compiled(module, {at::randn({2, 4, 6, 6}), at::randn({2, 4, 5, 6})}, message));
  EXPECT_THAT(message, HasSubstr("as many values as keys"));
}

TEST_F(HostileGraphs, ViewsThatFitTheSampleButNotTheCallAreRefused) {
  const auto module = module_from_text(R"(
graph(%x: user "x" f32[s0, 6]) {
  %y: f32[s0, 6] = aten::view(%x, [4, 6])
  %z: f32[s0, 6] = aten::relu(%y)
  return %z
})");
  expect_same_or_refused(module, {at::randn({4, 6})});
  expect_refused(module, {at::randn({5, 6})});
}

TEST_F(HostileGraphs, AsStridedStaysWithinItsOperand) {
  const auto of = [](const std::string& arguments, const std::string& type) {
    return module_from_text("graph(%x: user \"x\" f32[4, 6]) {\n  %g: f32[4, 6] = aten::relu(%x)\n  %y: " +
                            type + " = aten::as_strided(%g, " + arguments + ")\n  %v: " + type +
                            " = aten::as_strided(%x, " + arguments + ")\n  return %y, %v\n}");
  };
  expect_same_or_refused(of("[3, 2], [2, 1], 4", "f32[3, 2]"), {at::randn({4, 6})});
  // Beyond the tensor but within the storage of an input: eager shows it, so do we.
  expect_same_or_refused(of("[2], [1], 0", "f32[2]"), {at::randn({8, 6}).slice(0, 4)});
  expect_refused(of("[1000, 1000], [1000, 1]", "f32[1000, 1000]"), {at::randn({4, 6})});
  expect_refused(of("[4, 6], [6, 1], 1", "f32[4, 6]"), {at::randn({4, 6})});
  expect_refused(of("[2], [1], -5", "f32[2]"), {at::randn({4, 6})});
  expect_refused(of("[2], [9223372036854775807]", "f32[2]"), {at::randn({4, 6})});
}

TEST_F(HostileGraphs, StridesThatLayElementsOnEachOtherAreNotBelieved) {
  for (const char* strides : {"30, 1, 4", "60, 8, 4", "0, 0, 0", "60, 1, 0", "9223372036854775807, 15, 1"}) {
    SCOPED_TRACE(strides);
    const auto module = module_from_text(fmt::format(R"(
graph(%x: user "x" f32[2, 4, 12]) {{
  %y: f32[2, 4, 15; {}] = aten::constant_pad_nd(%x, [1, 2], 0.5)
  %z: f32[2, 4, 15] = aten::relu(%y)
  return %z, %y
}})",
                                                     strides));
    expect_same_or_refused(module, {at::randn({2, 4, 12})});
  }
}

TEST_F(HostileGraphs, MasksOfOtherTypesThanEagerTakesAreRefused) {
  for (const char* dtype : {"f64", "c64"}) {
    const auto module = module_from_text(fmt::format(R"(
graph(%q: user "q" f32[1, 2, 3, 8], %m: user "m" {}[3, 3]) {{
  %y: f32[1, 2, 3, 8] = aten::scaled_dot_product_attention(%q, %q, %q, %m)
  return %y
}})",
                                                     dtype));
    const auto options = at::TensorOptions(dtype[0] == 'f' ? at::kDouble : at::kComplexFloat);
    expect_refused(module, {at::randn({1, 2, 3, 8}), at::zeros({3, 3}, options)});
  }
}

TEST_F(HostileGraphs, IndicesAreCheckedInTheRun) {
  const at::Tensor table = at::randn({10, 32});
  const auto check = [&](const std::string& type, const std::string& call, TensorMap tensors) {
    SCOPED_TRACE(call);
    std::string inputs = "%i: user \"i\" i64[3]";
    for (const auto& [name, tensor] : tensors) {
      const char* dtype = tensor.scalar_type() == at::kChar       ? "i8"
                          : tensor.scalar_type() == at::kByte     ? "u8"
                          : tensor.scalar_type() == at::kBFloat16 ? "bf16"
                                                                  : "f32";
      inputs +=
          fmt::format(", %{}: parameter \"{}\" {}[{}]", name, name, dtype, fmt::join(tensor.sizes(), ", "));
    }
    const auto module = module_from_text(
        fmt::format("graph({}) {{\n  %y: {} = {}\n  return %y\n}}", inputs, type, call), tensors);
    expect_same_or_refused(module, {at::tensor({0, 9, 4}, at::kLong)});
    for (const int64_t bad : {int64_t{10}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
      EXPECT_THAT(expect_refused(module, {at::tensor({int64_t{0}, bad, int64_t{4}}, at::kLong)}),
                  HasSubstr("ind"));
    }
  };
  check("f32[3, 32]", "aten::embedding(%w, %i)", {{"w", table}});
  check("f32[3, 32]", "halftone::bf16_embedding(%i, %w)", {{"w", table.to(at::kBFloat16)}});
  check("f32[3, 32]", "halftone::int8_embedding(%i, %q, %s)",
        {{"q", at::ones({10, 32}, at::kChar)}, {"s", at::rand({10})}});
  check("f32[3, 32]", "halftone::int4_embedding(%i, %q, %s, None, group_size=32)",
        {{"q", at::ones({10, 16}, at::kByte)}, {"s", at::rand({10, 1})}});
  check("f32[3, 32]", "aten::index_select(%w, 0, %i)", {{"w", table}});
}

TEST_F(HostileGraphs, HugeSizesAreErrorsAndNotAllocations) {
  for (const char* body : {"%y: f32[1099511627776, 64] = aten::zeros([1099511627776, 64])",
                           "%y: f32[288230376151711744, 4] = aten::expand(%x, [288230376151711744, 4])\n"
                           "  %z: f32[288230376151711744, 4] = aten::relu(%y)",
                           "%y: f32[1099511627776, 4] = aten::expand(%x, [1099511627776, 4])\n"
                           "  %z: f32[1099511627776, 4] = aten::gelu(%y)",
                           "%y: f32[1099511627776, 4] = aten::expand(%x, [1099511627776, 4])\n"
                           "  %z: f32[1099511627776, 4] = aten::tanh(%y)",
                           "%y: f32[1, 4, 1099511627776] = aten::adaptive_avg_pool1d(%p, [1099511627776])",
                           "%y: f32[0, 4, 1099511627776] = aten::adaptive_avg_pool1d(%e, [1099511627776])"}) {
    SCOPED_TRACE(body);
    const std::string text = body;
    const std::string result = text.find("%z") == std::string::npos ? "%y" : "%z";
    const auto module = module_from_text(
        "graph(%x: user \"x\" f32[1, 4], %p: user \"p\" f32[1, 4, 6], %e: user \"e\" f32[0, 4, 6]) {\n  " +
        text + "\n  return " + result + "\n}");
    const Results inputs = {at::randn({1, 4}), at::randn({1, 4, 6}), at::randn({0, 4, 6})};
    if (text.find("%e") == std::string::npos) {
      std::string message;
      EXPECT_FALSE(compiled(module, inputs, message));
    } else {
      expect_same_or_refused(module, inputs);
    }
  }
}

TEST_F(HostileGraphs, BroadcastOperandsOfFusedOperatorsAreNotOverread) {
  // aten::linear takes a bias of one element; the native step must not read more.
  for (const char* bias : {"f32[1]", "f32[]"}) {
    SCOPED_TRACE(bias);
    const std::vector<int64_t> sizes =
        std::string(bias) == "f32[1]" ? std::vector<int64_t>{1} : std::vector<int64_t>{};
    const auto module = module_from_text(
        fmt::format(
            "graph(%x: user \"x\" f32[4, 6], %w: parameter \"w\" f32[512, 6], %b: parameter \"b\" {}) {{\n"
            "  %y: f32[4, 512] = aten::linear(%x, %w, %b)\n  return %y\n}}",
            bias),
        {{"w", at::randn({512, 6})}, {"b", at::randn(sizes)}});
    expect_same_or_refused(module, {at::randn({4, 6})});
  }
}

/// Calls of operators of our own with %x f32[4, 64], %r f32[4, 64], %m f32[32, 64] (weight), %v f32[32],
/// %q u8[4, 64], %k i8[32, 64], %g u8[32, 32], %s f32[32, 2], %p u8[2, 8, 6, 6], %c f32[2, 8, 6, 6], %f
/// f32[8, 8, 3, 3], %n i8[8, 8, 3, 3], %t u8[256], %i i64[3].
class HostileCalls : public HostileGraphs {
 protected:
  static std::shared_ptr<GraphModule> module_of(const std::string& outputs, const std::string& call) {
    std::string first = outputs.substr(0, outputs.find(':'));
    return module_from_text(
        "graph(%x: user \"x\" f32[4, 64], %r: user \"r\" f32[4, 64], %q: user \"q\" u8[4, 64], %p: user "
        "\"p\" "
        "u8[2, 8, 6, 6], %c: user \"c\" f32[2, 8, 6, 6], %i: user \"i\" i64[3], %m: parameter \"m\" f32[32, "
        "64], "
        "%v: parameter \"v\" f32[32], %k: parameter \"k\" i8[32, 64], %g: parameter \"g\" u8[32, 32], %s: "
        "parameter \"s\" f32[32, 2], %f: parameter \"f\" f32[8, 8, 3, 3], %n: parameter \"n\" i8[8, 8, 3, "
        "3], %t: "
        "parameter \"t\" u8[256], %e: parameter \"e\" f32[8], %a: parameter \"a\" f32[4, 1, 4, 4]) {\n  " +
            outputs + " = " + call + "\n  return " + first + "\n}",
        {{"m", at::randn({32, 64})},
         {"v", at::rand({32})},
         {"k", at::ones({32, 64}, at::kChar)},
         {"g", at::ones({32, 32}, at::kByte)},
         {"s", at::rand({32, 2})},
         {"f", at::randn({8, 8, 3, 3})},
         {"n", at::ones({8, 8, 3, 3}, at::kChar)},
         {"t", at::ones({256}, at::kByte)},
         {"e", at::rand({8})},
         {"a", at::randn({4, 1, 4, 4})}});
  }
  static Results inputs() {
    return {at::randn({4, 64}),
            at::randn({4, 64}),
            at::randint(255, {4, 64}, at::kByte),
            at::randint(255, {2, 8, 6, 6}, at::kByte),
            at::randn({2, 8, 6, 6}),
            at::zeros({3}, at::kLong)};
  }
  static void refuses(const std::string& outputs, const std::string& call) {
    SCOPED_TRACE(call);
    expect_refused(module_of(outputs, call), inputs());
  }
  static void accepts(const std::string& outputs, const std::string& call) {
    SCOPED_TRACE(call);
    const auto module = module_of(outputs, call);
    std::string message;
    EXPECT_TRUE(compiled(module, inputs(), message)) << message;
    expect_same_or_refused(module, inputs());
  }
};

TEST_F(HostileCalls, FusedLinear) {
  const std::string out = "%y: f32[4, 32], %yq: u8[4, 32], %ys: f32[4], %yz: i32[4]";
  const auto call = [](const std::string& weight, const std::string& bias, const std::string& residual,
                       const std::string& rest) {
    return "halftone::fused_linear(%x, None, None, " + weight + ", " + bias + ", " + residual + ", " + rest +
           ")";
  };
  const std::string fp32 = R"(format="fp32", attributes=[], activation="none", symmetric=false)";
  accepts(out, call("[%m]", "%v", "None", fp32));
  refuses(out, call("[%m]", "%e", "None", fp32));
  refuses(out, call("[%m]", "%v", "%x", fp32));
  refuses(out, call("[]", "None", "None", fp32));
  refuses(out, call("[%m, %m]", "None", "None", fp32));
  refuses(out, call("[%f]", "None", "None", fp32));
  refuses(out,
          call("[%m]", "%v", "None", R"(format="fp32", attributes=[], activation="other", symmetric=false)"));
  refuses(out,
          call("[%m]", "%v", "None", R"(format="other", attributes=[], activation="none", symmetric=false)"));
  const auto rest = [](const char* format, const char* attributes) {
    return fmt::format(R"(format="{}", attributes={}, activation="none", symmetric=false)", format,
                       attributes);
  };
  accepts(out, call("[%k, %v]", "None", "None", rest("int8", "[8, 0]")));
  refuses(out, call("[%k, %v]", "None", "None", rest("int8", "[]")));
  refuses(out, call("[%k, %v]", "None", "None", rest("int8", "[9, 0]")));
  refuses(out, call("[%k, %e]", "None", "None", rest("int8", "[8, 0]")));
  refuses(out, call("[%m, %v]", "None", "None", rest("int8", "[8, 0]")));
  accepts(out, call("[%g, %s]", "None", "None", rest("int4", "[32, 0, 0]")));
  for (const char* attributes : {"[0, 0, 0]", "[-32, 1, 0]", "[64, 0, 0]", "[4294967328, 0, 0]", "[32, 0]",
                                 "[32, 0, -1]", "[32, 0, 63]", "[32, 0, 66]", "[32, 0, 9223372036854775807]"})
    refuses(out, call("[%g, %s]", "None", "None", rest("int4", attributes)));
  accepts(out,
          call("[%g, %s, %s]", "None", "None", rest("int4", "[32, 1, 0]")));  // zero points may be floats
  for (const char* zero_point : {"%v", "%g", "%k"})
    refuses(out, call(fmt::format("[%g, %s, {}]", zero_point), "None", "None", rest("int4", "[32, 1, 0]")));
  refuses(out, call("[%k, %v]", "None", "None", rest("fp8", "[0, 0]")));
  refuses(out, call("[%k]", "None", "None", rest("bf16", "[]")));
  // Rows that are said to be quantized: too few scales, floats, the other sign.
  for (const char* rows : {"%q, %v, None", "%q, %v, %v", "%x, %v, %v", "%q, None, %v"})
    refuses(out, fmt::format("halftone::fused_linear({}, [%k, %v], None, None, {})", rows,
                             rest("int8", "[8, 0]")));
}

TEST_F(HostileCalls, WeightsOfLinears) {
  const std::string y = "%y: f32[4, 32]";
  accepts(y, "halftone::int8_linear(%x, %k, %v)");
  refuses(y, "halftone::int8_linear(%x, %k, %e)");
  refuses(y, "halftone::int8_linear(%x, %m, %v)");
  refuses(y, "halftone::int8_linear(%x, %k, %v, None, weight_bits=3)");
  refuses(y, "halftone::int8_linear(%x, %k, %v, %e)");
  refuses("%y: f32[2, 8, 6, 8]", "halftone::int8_linear(%c, %n, %e)");
  accepts(y, "halftone::int8_weight_only_linear(%x, %k, %v)");
  refuses(y, "halftone::int8_weight_only_linear(%x, %k, %s)");
  accepts(y, "halftone::int4_linear(%x, %g, %s, None, None, group_size=32)");
  for (const char* group : {"0", "-32", "33", "64", "4294967328", "9223372036854775807"})
    refuses(y, fmt::format("halftone::int4_linear(%x, %g, %s, None, None, group_size={})", group));
  refuses(y, "halftone::int4_linear(%x, %g, %v, None, None, group_size=32)");
  accepts(y, "halftone::int4_linear(%x, %g, %s, %s, None, group_size=32)");
  for (const char* zero_point : {"%v", "%g", "%k"})
    refuses(y, fmt::format("halftone::int4_linear(%x, %g, %s, {}, None, group_size=32)", zero_point));
  for (const char* numbers :
       {"bits=0, in_features=64, group_size=32", "bits=4, in_features=-64, group_size=32",
        "bits=4, in_features=9223372036854775807, group_size=0", "bits=4, in_features=64, group_size=-1",
        "bits=9, in_features=64, group_size=32"})
    refuses(y, fmt::format("halftone::intx_linear(%x, %g, %s, None, None, {})", numbers));
  refuses(y, "halftone::fp8_linear(%x, %k, %v, None, quantize_activations=false, per_tensor=false)");
  refuses(y, "halftone::bf16_linear(%x, %m)");
}

TEST_F(HostileCalls, Norms) {
  const std::string out = "%y: f32[4, 64], %b: f32[4, 64], %yq: u8[4, 64], %ys: f32[4], %yz: i32[4]";
  accepts(out, R"(halftone::norm(%x, %r, None, None, kind="rms", eps=1e-5, symmetric=false))");
  refuses(out, R"(halftone::norm(%x, %r, %v, None, kind="rms", eps=1e-5, symmetric=false))");
  refuses(out, R"(halftone::norm(%x, %r, None, %e, kind="layer", eps=1e-5, symmetric=false))");
  refuses(out, R"(halftone::norm(%x, None, None, None, kind="other", eps=1e-5, symmetric=false))");
  refuses(out, R"(halftone::norm(%q, None, None, None, kind="rms", eps=1e-5, symmetric=false))");
  refuses("%y: u8[2, 8, 6, 6], %ys: f32[96], %yz: i32[96]", "halftone::quantize_rows(%p, symmetric=false)");
}

TEST_F(HostileCalls, Attention) {
  accepts("%y: f32[2, 8, 6, 6]", "halftone::attention(%c, %c, %c, None, causal=false, scale=0.5)");
  refuses("%y: f32[2, 8, 6, 6]", "halftone::attention(%c, %f, %c, None, causal=false, scale=0.5)");
  refuses("%y: f32[2, 8, 6, 3]", "halftone::attention(%c, %c, %f, None, causal=false, scale=0.5)");
  refuses("%y: f32[2, 8, 6, 6]", "halftone::attention(%c, %c, %c, %a, causal=false, scale=0.5)");
  refuses("%y: f32[4, 64]", "halftone::attention(%x, %x, %x, None, causal=false, scale=0.5)");
}

TEST_F(HostileCalls, Convolutions) {
  const auto conv = [](const std::string& bias, const std::string& numbers) {
    return "halftone::conv(%c, %f, " + bias + ", None, " + numbers + R"(, activation="none"))";
  };
  const std::string y = "%y: f32[2, 8, 6, 6]";
  accepts(y, conv("%e",
                  "stride=[1, 1], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], "
                  "groups=1"));
  refuses(y, conv("%v",
                  "stride=[1, 1], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], "
                  "groups=1"));
  for (const char* numbers :
       {"stride=[0, 1], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=1",
        "stride=[1, 1], padding=[-1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=1",
        "stride=[1, 1], padding=[1, 1], dilation=[0, 1], transposed=false, output_padding=[0, 0], groups=1",
        "stride=[1, 1], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=0",
        "stride=[1, 1], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=-1",
        "stride=[1, 1], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=3",
        "stride=[1], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=1",
        "stride=[1, 1], padding=[1, 1], dilation=[9, 9], transposed=false, output_padding=[0, 0], groups=1",
        "stride=[1, 1, 1, 1], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], "
        "groups=1",
        "stride=[9223372036854775807, 1], padding=[1, 1], dilation=[1, 1], transposed=true, "
        "output_padding=[0, 0], groups=1"})
    refuses(y, conv("None", numbers));
}

TEST_F(HostileCalls, StaticInt8Products) {
  const auto conv = [](const std::string& tensors, const std::string& numbers, const std::string& params) {
    return "halftone::int8_conv(%p, " + tensors + ", None, " + numbers +
           ", transposed=false, output_padding=[0, 0], " + params + ")";
  };
  const std::string y = "%y: u8[2, 8, 6, 6]", numbers = "stride=[1, 1], padding=[1, 1], dilation=[1, 1]",
                    params = "groups=1, x_scale=0.1, x_zero_point=3, x_max=255";
  accepts(y, conv("%n, %e, %e", numbers, params));
  refuses(y, conv("%n, %v, %e", numbers, params));
  refuses(y, conv("%n, %e, %v", numbers, params));
  refuses(y, conv("%f, %e, %e", numbers, params));
  refuses(y, conv("%k, %e, %e", numbers, params));
  refuses(y, conv("%n, %e, %e", "stride=[0, 1], padding=[1, 1], dilation=[1, 1]", params));
  refuses(y, conv("%n, %e, %e", "stride=[1, 1], padding=[-1, 1], dilation=[1, 1]", params));
  for (const char* bad : {"groups=0, x_scale=0.1, x_zero_point=3, x_max=255",
                          "groups=-8, x_scale=0.1, x_zero_point=3, x_max=255",
                          "groups=1, x_scale=0.0, x_zero_point=3, x_max=255",
                          "groups=1, x_scale=0.1, x_zero_point=300, x_max=255",
                          "groups=1, x_scale=0.1, x_zero_point=3, x_max=2",
                          "groups=4611686018427387904, x_scale=0.1, x_zero_point=3, x_max=255"})
    refuses(y, conv("%n, %e, %e", numbers, bad));
  refuses("%y: u8[4, 32]",
          "halftone::int8_static_linear(%q, %k, %e, None, None, x_scale=0.1, x_zero_point=3, x_max=255)");
  refuses("%y: u8[4, 32]",
          "halftone::int8_static_linear(%q, %k, %v, None, %q, x_scale=0.1, x_zero_point=3, x_max=255)");
}

TEST_F(HostileCalls, StaticInt8Elementwise) {
  const std::string y = "%y: u8[2, 8, 6, 6]";
  refuses(y, "halftone::int8_lookup(%p, %q)");
  refuses(y, "halftone::int8_lookup(%p, %e)");
  refuses("%y: u8[4, 64]", "halftone::int8_lookup(%x, %t)");
  const std::string pair = "a_zero_point=0, b_scale=1.0, b_zero_point=0, out_scale=1.0, out_zero_point=0";
  accepts(y, "halftone::int8_add(%p, %p, a_scale=1.0, " + pair + ")");
  refuses(y, "halftone::int8_add(%p, %p, a_scale=0.0, " + pair + ")");
  refuses(y, "halftone::int8_add(%p, %q, a_scale=1.0, " + pair + ")");
  refuses(y, "halftone::int8_mul(%p, %c, a_scale=1.0, " + pair + ")");
  const std::string out = "out_scale=1.0, out_zero_point=0";
  refuses("%y: u8[2, 16, 6, 6]",
          "halftone::int8_cat([%p, %p], 1, scales=[1.0], zero_points=[0, 0], " + out + ")");
  refuses("%y: u8[2, 16, 6, 6]",
          "halftone::int8_cat([%p, %p], 9, scales=[1.0, 1.0], zero_points=[0, 0], " + out + ")");
  refuses("%y: u8[2, 16, 6, 6]",
          "halftone::int8_cat([%p, %q], 1, scales=[1.0, 1.0], zero_points=[0, 0], " + out + ")");
  refuses("%y: u8[2, 16, 6, 6]",
          "halftone::int8_cat([%p, %p], 1, scales=[1.0, -1.0], zero_points=[0, 0], " + out + ")");
  refuses("%y: u8[4, 64]", "halftone::quantize_per_tensor(%x, 0.0, 0, 0, 255, dtype:u8)");
  refuses("%y: u8[4, 64]", "halftone::quantize_per_tensor(%x, 1.0, 0, -5, 955, dtype:u8)");
  refuses("%y: f32[4, 64]", "halftone::quantize_per_tensor(%x, 1.0, 0, 0, 255, dtype:f32)");
  refuses("%y: f32[4, 64]", "halftone::dequantize_per_tensor(%x, 1.0, 0)");
  accepts("%y: f32[4, 64]", "halftone::dequantize_per_tensor(%q, 1.0, 5000000000)");
}

TEST_F(HostileCalls, StaticInt8Images) {
  const std::string y = "%y: u8[2, 8, 3, 3]";
  const auto pool = [](const std::string& window) {
    return "halftone::int8_max_pool(%p, " + window + ", ceil_mode=false)";
  };
  accepts(y, pool("kernel=[2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1]"));
  for (const char* window :
       {"kernel=[0, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1]",
        "kernel=[2, 2], stride=[0, 2], padding=[0, 0], dilation=[1, 1]",
        "kernel=[2, 2], stride=[2, 2], padding=[5, 0], dilation=[1, 1]",
        "kernel=[2, 2], stride=[2, 2], padding=[-1, 0], dilation=[1, 1]",
        "kernel=[2, 2], stride=[2, 2], padding=[0, 0], dilation=[0, 1]",
        "kernel=[2], stride=[2, 2], padding=[0, 0], dilation=[1, 1]",
        "kernel=[9223372036854775807, 2], stride=[2, 2], padding=[4611686018427387903, 0], dilation=[1, 1]",
        "kernel=[2, 2, 2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1]"})
    refuses(y, pool(window));
  const std::string params = "x_scale=1.0, x_zero_point=0, out_scale=1.0, out_zero_point=0";
  refuses(y, "halftone::int8_adaptive_avg_pool(%p, output_size=[0, 3], " + params + ")");
  refuses(y, "halftone::int8_adaptive_avg_pool(%p, output_size=[9223372036854775807, 3], " + params + ")");
  refuses(y, "halftone::int8_adaptive_avg_pool(%c, output_size=[3, 3], " + params + ")");
  for (const char* how :
       {R"(output_size=[], scales=[1e300, 1.0], mode="nearest")",
        R"(output_size=[], scales=[-1.0, 1.0], mode="nearest")",
        R"(output_size=[3, 3], scales=[0.5], mode="nearest")",
        R"(output_size=[3, 3], scales=[], mode="cubic")", R"(output_size=[], scales=[], mode="nearest")"})
    refuses(y, fmt::format("halftone::int8_interpolate(%p, {}, {})", how, params));
}

}  // namespace
}  // namespace halftone
