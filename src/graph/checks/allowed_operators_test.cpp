// Which operators graphs from files may call, and that the table holds exactly what the rules give.
#include "graph/checks/allowed_operators.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <torch/library.h>
#include <torch/version.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "graph/operators/operator_rules.h"
#include "graph/test_support.h"
#include "halftone/capture/capture.h"

TORCH_LIBRARY(halftone_graph_test, library) {
  library.def("twice(Tensor x) -> Tensor");
}

namespace halftone {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// The torch whose operators were reviewed.
constexpr bool kReviewedTorch = TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 13;

std::map<std::string, const OperatorRule*> whole_dispatcher() {
  std::map<std::string, const OperatorRule*> rules;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op || name.name.starts_with("halftone_graph_test::")) continue;
    rules[name.name + (name.overload_name.empty() ? "" : "." + name.overload_name)] = &rule_of(op->schema());
  }
  return rules;
}

std::set<std::string_view> table() {
  return {allowed_operator_table().begin(), allowed_operator_table().end()};
}

TEST(AllowedOperators, EveryOperatorOfTheDispatcherIsOnOneSideWithAReason) {
  std::map<std::string_view, int> count;
  const auto allowed = table();
  for (const auto& [name, rule] : whole_dispatcher()) {
    EXPECT_THAT(rule->reason, Not(IsEmpty())) << name;
    ++count[rule->name];
    const std::string refusal = why_refused_in_files(name);
    if (allowed.contains(name) || name.starts_with("halftone::")) {
      EXPECT_TRUE(rule->allows) << name << " is in the table, but falls under " << rule->name;
      EXPECT_THAT(refusal, IsEmpty()) << name;
    } else {
      EXPECT_THAT(refusal, HasSubstr("refused in files")) << name;
    }
  }
  for (const OperatorRule& rule : operator_rules()) {
    if (rule.name == "halftone") continue;  // they are registered by components above this one
    EXPECT_GT(count[rule.name], 0) << "nothing falls under " << rule.name;
  }
}

TEST(AllowedOperators, TheTableIsWhatTheRulesGive) {
  const auto allowed = table();
  EXPECT_EQ(allowed.size(), allowed_operator_table().size());
  size_t here = 0;
  for (const auto& [name, rule] : whole_dispatcher()) {
    here += allowed.contains(name);
    if (!kReviewedTorch || !name.starts_with("aten::")) continue;
    EXPECT_EQ(allowed.contains(name), rule->allows)
        << name << " falls under " << rule->name << ": run make operator-table and review what changed";
  }
  // A newer torch may lack some, and has others that were not reviewed: those are refused.
  EXPECT_GE(here, kReviewedTorch ? allowed.size() : allowed.size() * 9 / 10);
}

TEST(AllowedOperators, ThePageListsTheRules) {
  std::ifstream file(HALFTONE_DOCS "/operators.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  size_t place = 0;
  for (const OperatorRule& rule : operator_rules()) {
    const std::string row = "| " + std::string(rule.name) + " | " + (rule.allows ? "allowed" : "refused") +
                            " | " + std::string(rule.reason);
    const size_t found = page.find(row, place);
    ASSERT_NE(found, std::string::npos) << "docs/operators.md lacks, in this order: " << row;
    place = found;
  }
}

TEST(AllowedOperators, RefusesWhatReachesBeyondTheGraph) {
  const std::map<std::string, std::string> cases = {
      {"aten::from_file", "aten::from_file reads and writes files: refused in files"},
      {"aten::_print", "aten::_print writes to the terminal: refused in files"},
      {"inductor::_reinterpret_tensor", "reinterprets the memory"},
      {"inductor::_alloc_from_pool", "reinterprets the memory"},
      {"aten::_reshape_alias", "reinterprets the memory"},
      {"aten::set_.source_Tensor", "reinterprets the memory"},
      {"aten::resize_", "reinterprets the memory"},
      {"aten::as_strided_", "reinterprets the memory"},
      {"aten::set_data", "reinterprets the memory"},
      {"aten::add.out", "into a tensor that it is given"},
      {"aten::_index_put_impl_", "end the process"},
      {"aten::native_layer_norm_backward", "gradients"},
      {"aten::fbgemm_linear_fp16_weight", "quantized and packed"},
      {"aten::_to_sparse", "sparse"},
      {"aten::record_stream", "one device"},
      {"aten::rand.generator", "objects"},
      {"aten::_foreach_add.List", "optimizers"},
      {"aten::_foobar", "internal to ATen"},
      {"quantized::linear", "neither ATen's nor Halftone's"},
      {"made_up::magic", "made_up::magic is unknown"},
  };
  for (const auto& [target, reason] : cases) EXPECT_THAT(why_refused_in_files(target), HasSubstr(reason));
}

TEST(AllowedOperators, AllowsWhatExportersWrite) {
  for (const char* target :
       {"aten::linear", "aten::add_.Tensor", "aten::as_strided", "aten::scaled_dot_product_attention",
        "aten::_softmax", "aten::_to_copy", "aten::_assert_scalar", "aten::sym_size.int", "aten::item",
        "aten::copy_", "aten::lstm.input", "aten::upsample_bilinear2d.vec", "aten::_unsafe_view", "sym::add",
        "builtin::unpack", "aten::native_layer_norm", "aten::masked_fill.Scalar", "aten::convolution"})
    EXPECT_THAT(why_refused_in_files(target), IsEmpty());
}

TEST(AllowedOperators, TheProgramsOwnAreAllowedWhereItSaysSo) {
  EXPECT_THAT(why_refused_in_files("halftone_graph_test::twice"), HasSubstr("neither ATen's nor Halftone's"));
  allow_operators("halftone_graph_test");
  EXPECT_THAT(why_refused_in_files("halftone_graph_test::twice"), IsEmpty());
  expect_error(ErrorCode::kNotFound, {"nobody::"}, [] { allow_operators("nobody"); });
  expect_error(ErrorCode::kInvalidArgument, {"aten"}, [] { allow_operators("aten"); });
  EXPECT_THAT(why_refused_in_files("aten::from_file"), Not(IsEmpty()));
}

TEST(AllowedOperators, RefusalsNameNodesAndLayersInSubgraphsToo) {
  const auto graph = parse_graph(R"(graph(%p: user bool[], %x: user f32[4]) {
  %y: f32[4] = aten::resize_(%x, [4])  @ "encoder.fc"
  %z: f32[4] = builtin::cond(%p, graph(%a: user f32[4]) {
      aten::_print("hello")
      return %a
    }, graph(%a: user f32[4]) {
      return %a
    }, [%y])
  return %z
})");
  expect_error(
      ErrorCode::kUnsupported,
      {"evil.ht: 2 nodes cannot be run", "%y: aten::resize_ in layer \"encoder.fc\"", "aten::_print"},
      [&] { require_allowed(*graph, "evil.ht"); });
}

TEST(AllowedOperators, RefusesDevicesLayoutsAndDtypesThatMakeOtherTensors) {
  for (const char* operand : {"device=device:meta", "device=device:lazy", "layout=layout:sparse", "layout=1",
                              "dtype=dtype:QInt8", "dtype=12", "dtype=9999", "dtype=-1"}) {
    const auto graph = parse_graph(std::string("graph() {\n  %z: tensor = aten::zeros([4], ") + operand +
                                   ")\n  return %z\n}");
    const std::string name(operand, std::string_view(operand).find('='));
    expect_error(ErrorCode::kUnsupported, {"%z: aten::zeros", "its " + name},
                 [&] { require_allowed(*graph, "f"); });
  }
  const auto fine = parse_graph(
      "graph() {\n  %z: f32[4] = aten::zeros([4], dtype=6, layout=layout:strided, device=device:cpu)\n  "
      "return %z\n}");
  EXPECT_NO_THROW(require_allowed(*fine, "f"));
}

TEST(AllowedOperators, ManyRefusalsMakeAShortMessage) {
  std::string text = "graph(%x: user f32[4]) {\n";
  for (int i = 0; i < 10'000; ++i) text += "  aten::_print(\"hello\")\n";
  const auto graph = parse_graph(text + "  return %x\n}");
  const std::string message =
      message_of(ErrorCode::kUnsupported, [&] { require_allowed(*graph, "evil.ht"); });
  EXPECT_THAT(message, HasSubstr("10000 nodes"));
  EXPECT_THAT(message, HasSubstr("and 9950 more"));
  EXPECT_LT(message.size(), 10'000U);
}

TEST(AllowedOperators, TensorsWithoutContentAreZeros) {
  const auto module = module_from_text(R"(graph(%x: user f32[64, 64]) {
  %a: f32[64, 64] = aten::empty_like(%x)
  %b: f32[64, 64; 1, 64] = aten::empty_strided([64, 64], [1, 64])
  %c: f32[4096] = aten::new_empty(%x, [4096])
  %d: f32[4096] = aten::add_.Scalar(%c, 1)
  return %a, %b, %d
})");
  auto graph = module->graph().clone();
  fill_empty_tensors(*graph);
  lint_or_throw(*graph, "filled");
  const std::string once = print_graph(*graph);
  fill_empty_tensors(*graph);
  EXPECT_EQ(print_graph(*graph), once);

  CallSpec call = flat_call(*graph);
  Session session(std::make_shared<GraphModule>(std::move(graph), TensorMap{}, std::move(call)));
  const at::Tensor x = at::ones({64, 64});
  for (int i = 0; i < 3; ++i) {
    { const at::Tensor dirt = at::full({64, 64}, 7.0); }  // the next allocation of this size gets its memory
    const auto results = session.run({x});
    EXPECT_TRUE(results[0].toTensor().eq(0).all().item<bool>());
    EXPECT_TRUE(results[1].toTensor().eq(0).all().item<bool>());
    EXPECT_EQ(results[1].toTensor().strides(), (std::vector<int64_t>{1, 64}));
    EXPECT_TRUE(results[2].toTensor().eq(1).all().item<bool>());
  }
}

TEST(AllowedOperators, SubgraphsAreFilledToo) {
  const auto graph = parse_graph(R"(graph(%p: user bool[], %x: user f32[4]) {
  %z: f32[4] = builtin::cond(%p, graph(%a: user f32[4]) {
      %e: f32[4] = aten::empty_like(%a)
      return %e
    }, graph(%a: user f32[4]) {
      return %a
    }, [%x])
  return %z
})");
  fill_empty_tensors(*graph);
  EXPECT_THAT(print_graph(*graph), HasSubstr("aten::zero(%e)"));
}

}  // namespace
}  // namespace halftone
