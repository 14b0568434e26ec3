#include <filesystem>
#include <fstream>

#include "backend/test_support.h"
#include "halftone/compile/minify.h"
#include "halftone/graph/tensor_file.h"

namespace halftone {
namespace {

/// Thirteen layers of linear, sigmoid and a sum; one relu in the middle: forty nodes.
GraphCase perceptron(const char* activation = "aten::relu") {
  std::string text =
      R"(graph(%w: parameter "w" f32[4, 4], %x: user "x" f32[s0, 4], %unused: user "unused" f32[2]) {)";
  std::string last = "x";
  int nodes = 0;
  const auto add = [&](const std::string& call) {
    const std::string name = fmt::format("v{}", nodes++);
    text += fmt::format("\n  %{}: f32[s0, 4] = {}  @ \"layer{}\" \"Layer\"", name, call, nodes / 3);
    last = name;
  };
  for (int layer = 0; layer < 13; ++layer) {
    const std::string before = last;
    add(fmt::format("aten::linear(%{}, %w)", last));
    add(fmt::format("aten::sigmoid(%{})", last));
    add(fmt::format("aten::add.Tensor(%{}, %{})", last, before));
    if (layer == 6) add(fmt::format("{}(%{})", activation, last));
  }
  text += fmt::format("\n  return %{}, %v5, %v11\n}}", last);
  at::manual_seed(5);
  return {module_from_text(text, {{"w", at::randn({4, 4})}}), {at::randn({3, 4}), at::ones({2})}};
}

class Minifier : public testing::TestWithParam<std::pair<const char*, FailureKind>> {};
INSTANTIATE_TEST_SUITE_P(Failures, Minifier,
                         testing::Values(std::pair("relu_compile_error", FailureKind::kCompileError),
                                         std::pair("relu_runtime_error", FailureKind::kRunError),
                                         std::pair("relu_accuracy_error", FailureKind::kAccuracy)),
                         [](const auto& info) { return std::string(info.param.first); });

TEST_P(Minifier, FindsTheOneNodeThatFails) {
  const auto [name, kind] = GetParam();
  const GraphCase start = perceptron();
  const std::string text = print_graph(start.module->graph());
  int64_t reported = 0;
  MinifyOptions options;
  options.progress = [&](int64_t done, int64_t total, std::string_view what) {
    EXPECT_EQ(done, ++reported);
    EXPECT_EQ(total, options.max_trials);
    EXPECT_NE(what.find("nodes"), std::string::npos);
  };
  const MinifiedCase found = minify(start, lookup_compiler(name), options);
  EXPECT_EQ(found.nodes_before, 40U);
  EXPECT_EQ(found.nodes_after, 1U);
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.trials, reported);
  EXPECT_LT(found.trials, 100);
  EXPECT_EQ(to_string(found.failure.kind), to_string(kind));
  const Graph& graph = found.smallest.module->graph();
  EXPECT_TRUE(graph.nodes().front()->is("aten::relu"));
  EXPECT_EQ(graph.inputs().size(), 1U);
  EXPECT_EQ(graph.outputs().size(), 1U);
  EXPECT_TRUE(lint(graph).empty());
  // Its input is what the relu read in the whole graph.
  const auto whole = Session(start.module).run(start.inputs);
  EXPECT_EQ(found.smallest.inputs.at(0).toTensor().sizes(), whole.at(0).toTensor().sizes());
  EXPECT_EQ(print_graph(start.module->graph()), text);
}

TEST_P(Minifier, KeepsTheFailureInAFolder) {
  const auto [name, kind] = GetParam();
  const std::string folder = testing::TempDir() + "/minified_" + name;
  std::filesystem::remove_all(folder);
  save_case(folder, minify(perceptron(), lookup_compiler(name)), name);
  std::ifstream readme(folder + "/README.txt");
  const std::string text((std::istreambuf_iterator<char>(readme)), {});
  EXPECT_NE(text.find(std::string("halftone minify --check . --backend ") + name), std::string::npos) << text;
  const SavedCase saved = load_case(folder);
  EXPECT_EQ(saved.backend, name);
  EXPECT_EQ(saved.failure.kind, kind);
  const auto failure = find_failure(saved.graph_case, lookup_compiler(name));
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind, kind);
  EXPECT_EQ(failure->message, saved.failure.message);
  EXPECT_FALSE(find_failure(saved.graph_case, lookup_compiler("eager")).has_value());
}

TEST(MinifierTrials, AreLimited) {
  MinifyOptions options;
  options.max_trials = 2;
  const MinifiedCase found = minify(perceptron(), lookup_compiler("relu_runtime_error"), options);
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.trials, 2);
  EXPECT_LT(found.nodes_after, 40U);
  EXPECT_TRUE(find_failure(found.smallest, lookup_compiler("relu_runtime_error")).has_value());
}

TEST(MinifierErrors, AGraphThatDoesNotFail) {
  expect_error(ErrorCode::kInvalidArgument, {"test model", "does not fail"},
               [] { minify(perceptron("aten::tanh"), lookup_compiler("relu_compile_error")); });
  expect_error(ErrorCode::kInvalidArgument, {"does not fail"},
               [] { minify(perceptron(), lookup_compiler("eager")); });
}

TEST(MinifierErrors, AGraphThatFailsInTheInterpreterToo) {
  const GraphCase broken{module_from_text(R"(
graph(%x: user "x" tensor) {
  %y: tensor = aten::reshape(%x, [7])
  return %y
})"),
                         {at::ones({2})}};
  expect_error(ErrorCode::kInvalidArgument, {"aten::reshape (%y)"},
               [&] { minify(broken, lookup_compiler("relu_compile_error")); });
}

/// Fails where a sigmoid reads a linear, as a fusion of the two might.
CompiledFunction bad_fusion(const std::shared_ptr<GraphModule>& module,
                            const std::vector<c10::IValue>& examples, const CompilerOptions& options) {
  for (const auto& node : module->graph().nodes()) {
    const Value* operand = node->inputs().empty() ? nullptr : node->input(0).value();
    if (node->is("aten::sigmoid") && operand && operand->producer() &&
        operand->producer()->is("aten::linear"))
      throw std::runtime_error("cannot fuse %" + operand->name());
  }
  return lookup_compiler("eager")(module, examples, options);
}

TEST(Minify, KeepsTheTwoNodesThatFailTogether) {
  const MinifiedCase found = minify(perceptron(), bad_fusion);
  ASSERT_EQ(found.nodes_after, 2U);
  EXPECT_TRUE(found.smallest.module->graph().nodes().front()->is("aten::linear"));
  EXPECT_TRUE(found.smallest.module->graph().nodes().back()->is("aten::sigmoid"));
  EXPECT_EQ(found.smallest.module->graph().outputs().size(), 1U);
}

TEST(Minify, DoesNotTakeAnotherFailureForTheSame) {
  // A relu alone fails too, but in another way.
  const GraphCompiler backend = [](const std::shared_ptr<GraphModule>& module,
                                   const std::vector<c10::IValue>& examples, const CompilerOptions& options) {
    const auto& nodes = module->graph().nodes();
    if (nodes.size() < 3) throw std::runtime_error("too small");
    return lookup_compiler("relu_compile_error")(module, examples, options);
  };
  const MinifiedCase found = minify(perceptron(), backend);
  EXPECT_EQ(found.nodes_after, 3U);
  EXPECT_NE(found.failure.message.find("relu_compile_error"), std::string::npos);
}

TEST(Minify, GraphsThatWriteAndHaveState) {
  const GraphCase start{module_from_text(R"(
graph(%total: buffer "total" f32[3], %x: user "x" f32[3]) {
  %y: f32[3] = aten::add_.Tensor(%x, 1.0)
  %sum: f32[3] = aten::add.Tensor(%total, %y)
  %r: f32[3] = aten::relu(%sum)
  %z: f32[3] = aten::neg(%r)
  return buffer_mutation "total" %z, %sum
})",
                                         {{"total", at::ones({3})}}),
                        {at::ones({3})}};
  for (const char* name : {"relu_compile_error", "relu_runtime_error", "relu_accuracy_error"}) {
    const MinifiedCase found = minify(start, lookup_compiler(name));
    EXPECT_EQ(found.nodes_after, 1U) << name << print_graph(found.smallest.module->graph());
    EXPECT_TRUE(at::equal(found.smallest.inputs.at(0).toTensor(), at::full({3}, 3.0F)));
  }
  EXPECT_TRUE(at::equal(start.inputs[0].toTensor(), at::ones({3})));
  EXPECT_TRUE(at::equal(start.module->tensor("total"), at::ones({3})));
}

TEST(Minify, GraphsWithListsAndNumbers) {
  const GraphCase start{module_from_text(R"(
graph(%x: user "x" f32[s0, 6]) {
  %n: int(s0) = aten::sym_size.int(%x, 0)
  %m: int(2*s0) = sym::mul(%n, 2)
  %parts: list = aten::split.Tensor(%x, 3, 1)
  %a: f32[s0, 3; ?], %b: f32[s0, 3; ?] = builtin::unpack(%parts)
  %cat: f32[2*s0, 3] = aten::cat([%a, %b])
  %v: f32[2*s0, 3] = aten::reshape(%cat, [%m, 3])
  %t: f32[3, 2*s0; ?] = aten::t(%v)
  %r: f32[3, 2*s0; ?] = aten::relu(%t)
  return %r, %m, %parts
})"),
                        {at::randn({2, 6})}};
  const MinifiedCase found = minify(start, lookup_compiler("relu_accuracy_error"));
  EXPECT_EQ(found.nodes_after, 1U);
  const std::string folder = testing::TempDir() + "/minified_strides";
  save_case(folder, found, "relu_accuracy_error");
  // The transposed input comes back as it was.
  const at::Tensor input = load_case(folder).graph_case.inputs.at(0).toTensor();
  EXPECT_EQ(input.sizes(), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(input.strides(), found.smallest.inputs.at(0).toTensor().strides());
  EXPECT_FALSE(input.is_contiguous());
  EXPECT_TRUE(at::equal(input, found.smallest.inputs.at(0).toTensor()));
}

TEST(SavedCase, KeepsNumbersStringsAndNone) {
  MinifiedCase minified;
  minified.smallest.module = module_from_text(R"(
graph(%x: user "x" f32[s0], %n: user "count" int, %f: user "f" float, %s: user "s" str, %o: user "o" none) {
  %y: f32[s0] = aten::mul.Scalar(%x, %f)
  return %y, %n, %s, %o
})");
  minified.smallest.module->ranges["s0"] = {1, 32};
  minified.smallest.inputs = {at::ones({2}), 3, 0.5, "text", c10::IValue()};
  const std::string folder = testing::TempDir() + "/saved_numbers";
  save_case(folder, minified, "eager");
  const GraphCase loaded = load_case(folder).graph_case;
  EXPECT_EQ(loaded.module->ranges, minified.smallest.module->ranges);
  expect_same(loaded.inputs, minified.smallest.inputs, "inputs");
  EXPECT_FALSE(find_failure(loaded, lookup_compiler("eager")).has_value());
}

TEST(SavedCase, HoldsNoOperatorThatNoFileMayCall) {
  MinifiedCase minified;
  minified.smallest.inputs = {at::ones({2})};
  minified.smallest.module =
      module_from_text("graph(%x: user f32[2]) {\n  %y: f32[2] = aten::relu(%x)\n  return %y\n}");
  const std::string folder = testing::TempDir() + "/saved_hostile";
  save_case(folder, minified, "eager");
  const char* const hostile =
      "graph(%x: user f32[2]) {\n  %y: f32[2] = aten::resize_(%x, [2])  @ \"fc\"\n  return %y\n}";
  std::ofstream(folder + "/graph.txt") << hostile;
  expect_error(ErrorCode::kUnsupported,
               {"graph.txt", "%y: aten::resize_ in layer \"fc\"", "refused in files"},
               [&] { load_case(folder); });
  minified.smallest.module = module_from_text(hostile);
  std::filesystem::remove_all(folder);
  expect_error(ErrorCode::kUnsupported, {"cannot be saved", "aten::resize_"},
               [&] { save_case(folder, minified, "eager"); });
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(SavedCase, SaysWhatIsWrongWithAFolder) {
  expect_error(ErrorCode::kNotFound, {"nowhere"}, [] { load_case("nowhere"); });
  const std::string folder = testing::TempDir() + "/saved_broken";
  save_case(folder, minify(perceptron(), lookup_compiler("relu_compile_error")), "relu_compile_error");
  std::ofstream(folder + "/graph.txt") << "graph(";
  expect_error(ErrorCode::kInvalidArgument, {"graph.txt", "line 1"}, [&] { load_case(folder); });
  std::ofstream(folder + "/graph.txt") << "graph(%q: user \"q\" f32[1]) { return %q }";
  expect_error(ErrorCode::kCorruptFile, {"inputs.safetensors", "\"q\""}, [&] { load_case(folder); });
}

}  // namespace
}  // namespace halftone
