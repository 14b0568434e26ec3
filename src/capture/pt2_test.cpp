// Whole files: what a loaded module holds, and that it computes what the Python model computes.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/test_archive.h"
#include "halftone/capture/capture.h"

namespace halftone {
namespace {

using test::Members;
using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<GraphModule> load_small(const OpenOptions& options = {}) {
  return load_pt2(CAPTURE_TESTDATA "/small.pt2", options);
}

const GraphInput& input(const GraphModule& module, std::string_view name) {
  for (const GraphInput& candidate : module.graph().inputs()) {
    if (candidate.value->name() == name) return candidate;
  }
  throw Error(ErrorCode::kNotFound, std::string(name));
}

const Node& node_giving(const Graph& graph, std::string_view value) {
  return *graph.value(value)->producer();
}

TEST(Pt2Test, InputsHaveTheirKindsAndTargets) {
  const auto module = load_small();
  EXPECT_THAT(module->input_names(), ElementsAre("x", "pair_0", "pair_1_k", "flag"));
  EXPECT_EQ(input(*module, "p_first_weight").kind, InputKind::kParameter);
  EXPECT_EQ(input(*module, "p_first_weight").target, "first.weight");
  EXPECT_EQ(input(*module, "b_count").kind, InputKind::kBuffer);
  EXPECT_EQ(input(*module, "b_scale").kind, InputKind::kNonPersistentBuffer);
  EXPECT_EQ(input(*module, "c_shift").kind, InputKind::kConstant);
  ASSERT_TRUE(input(*module, "flag").fixed);
  EXPECT_EQ(*input(*module, "flag").fixed, Argument(true));
  EXPECT_TRUE(module->notes.empty());
}

TEST(Pt2Test, SizesRangesAndGuardsAreKept) {
  const auto module = load_small();
  const TensorMeta& x = *input(*module, "x").value->meta();
  EXPECT_EQ(x.sizes, (std::vector<SymExpr>{SymExpr::symbol("s77"), SymExpr(4)}));
  ASSERT_EQ(module->ranges.size(), 1u);
  EXPECT_EQ(module->ranges.at("s77").max, 64);
  EXPECT_EQ(module->ranges.at("s77").min, 2);
  EXPECT_TRUE(module->guards.empty());  // the one in the file says s77 == s77
}

TEST(Pt2Test, OutputsNestAsTheyDidInPython) {
  const auto module = load_small();
  EXPECT_EQ(module->graph().outputs()[0], (GraphOutput{OutputKind::kBufferMutation, "count"}));
  EXPECT_EQ(module->graph().outputs()[1].kind, OutputKind::kUser);
  EXPECT_THAT(module->call_spec().result.keys, ElementsAre("chosen", "right"));
  EXPECT_THAT(module->call_spec().result.leaf_paths(),
              ElementsAre("['chosen']", "['right'][0]", "['right'][1]", "['right'][2]"));
}

TEST(Pt2Test, NodesKnowTheirLayer) {
  const auto module = load_small();
  const Node& linear = node_giving(module->graph(), "linear");
  EXPECT_EQ(linear.target(), "aten::linear");
  EXPECT_EQ(linear.source(), (Source{"first", "torch.nn.modules.linear.Linear"}));
}

TEST(Pt2Test, ListResultsAreUnpackedAndBranchesAreSubgraphs) {
  const auto module = load_small();
  const Node& unpack = node_giving(module->graph(), "getitem_1");
  EXPECT_EQ(unpack.target(), "builtin::unpack");
  EXPECT_EQ(unpack.input(0).value()->type(), ValueType::kList);
  const Node& cond = node_giving(module->graph(), "getitem_2");
  EXPECT_EQ(cond.target(), "builtin::cond");
  ASSERT_TRUE(cond.input(1).get_if<std::shared_ptr<Graph>>());
}

TEST(Pt2Test, TiedParametersShareStorageAndNothingIsCopied) {
  const auto module = load_small();
  EXPECT_TRUE(module->tensor("first.weight").is_alias_of(module->tensor("second.weight")));
  EXPECT_FALSE(module->tensor("first.weight").is_alias_of(module->tensor("first.bias")));
}

TEST(Pt2Test, TensorsOutliveTheModuleAndTheFile) {
  const std::string path = testing::TempDir() + "short_lived.pt2";
  test::write_members(path, test::read_members(CAPTURE_TESTDATA "/small.pt2"));
  for (const bool map : {true, false}) {
    at::Tensor shift = load_pt2(path, {.map = map})->tensor("shift");
    EXPECT_TRUE(at::equal(shift, at::arange(4, at::kFloat)));
    shift.add_(1);  // a private mapping: the file does not change
    EXPECT_TRUE(at::equal(load_pt2(path)->tensor("shift"), at::arange(4, at::kFloat)));
  }
  std::remove(path.c_str());
}

TEST(Pt2Test, MisalignedPayloadsAreCopied) {
  const std::string path = testing::TempDir() + "misaligned.pt2";
  test::write_members(path, test::read_members(CAPTURE_TESTDATA "/small.pt2"), /*skew=*/1);
  const auto module = load_pt2(path);
  EXPECT_TRUE(at::equal(module->tensor("shift"), at::arange(4, at::kFloat)));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(module->tensor("shift").data_ptr()) % 16, 0u);
  EXPECT_TRUE(module->tensor("first.weight").is_alias_of(module->tensor("second.weight")));
  std::remove(path.c_str());
}

TEST(Pt2Test, SampleInputsRunAndGiveWhatTheModelGives) {
  const auto module = load_small();
  ASSERT_EQ(module->sample_inputs.size(), 4u);
  EXPECT_EQ(module->sample_inputs[3].toBool(), true);
  Session session(module);
  const auto outputs = session.run(module->sample_inputs);
  ASSERT_EQ(outputs.size(), 4u);
  const at::Tensor weight = module->tensor("first.weight");
  at::Tensor hidden = at::linear(module->sample_inputs[0].toTensor(), weight, module->tensor("first.bias"));
  hidden = hidden * 0.5 + at::arange(4, at::kFloat) + at::linear(module->sample_inputs[1].toTensor(), weight);
  EXPECT_TRUE(at::equal(outputs[0].toTensor(), hidden.slice(1, 0, 2).sin()));
  EXPECT_TRUE(at::equal(outputs[1].toTensor(), hidden.slice(1, 2, 4)));
  EXPECT_TRUE(outputs[3].isNone());
  EXPECT_EQ(session.state("count").item<float>(), 1.0f);
}

TEST(Pt2Test, WrappersAreInlinedAndAutocastBecomesCasts) {
  const auto module = load_pt2(CAPTURE_TESTDATA "/wrapped.pt2");
  for (const auto& node : module->graph().nodes())
    EXPECT_TRUE(node->op() || node->is("builtin::unpack")) << node->target();
  Session session(module);
  const auto outputs = session.run(module->sample_inputs);
  const at::Tensor x = module->sample_inputs[0].toTensor();
  const at::Tensor weight = module->tensor("layer.weight");
  const at::Tensor bias = module->tensor("layer.bias");
  const at::Tensor y = at::linear(x, weight, bias);
  EXPECT_TRUE(at::equal(outputs[0].toTensor(), at::matmul(y, x.t())));
  const auto half = [](const at::Tensor& tensor) { return tensor.to(at::kBFloat16); };
  const at::Tensor low = at::linear(half(x), half(weight), half(bias)).relu();
  EXPECT_EQ(outputs[1].toTensor().scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(outputs[1].toTensor(), low));
  const at::Tensor w = at::cat({low.to(at::kFloat), y}) + at::mse_loss(low.to(at::kFloat), y);
  EXPECT_TRUE(at::equal(outputs[2].toTensor(), w));
}

TEST(Pt2Test, UnreadableGuardsAndSizesBecomeNotes) {
  Members members = test::read_members(CAPTURE_TESTDATA "/small.pt2");
  auto model = nlohmann::json::parse(members["models/model.json"]);
  model["guards_code"] = {"L['x'].size()[0] / 2 > 1", "L['x'].size()[0] != 5"};
  model["graph_module"]["graph"]["tensor_values"]["pair_0"]["sizes"][0]["as_expr"]["expr_str"] =
      "Mystery(Integer(1))";
  members["models/model.json"] = model.dump();
  const std::string path = testing::TempDir() + "notes.pt2";
  test::write_members(path, members);
  const auto module = load_pt2(path);
  std::remove(path.c_str());
  ASSERT_EQ(module->notes.size(), 2u);
  EXPECT_THAT(module->notes[0], HasSubstr("pair_0"));
  EXPECT_THAT(module->notes[1], HasSubstr("/ 2 > 1"));
  ASSERT_EQ(module->guards.size(), 1u);
  EXPECT_EQ(module->guards[0].condition, SymExpr::parse("s77 != 5"));
}

TEST(Pt2Test, AMissingFileIsNotFound) {
  try {
    load_pt2("/nowhere/model.pt2");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/model.pt2"));
  }
}

TEST(OperatorLibraryTest, AMissingOrBrokenLibraryIsATypedError) {
  try {
    load_operator_library("/nowhere/lib.so");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  }
  const std::string path = testing::TempDir() + "no_library.so";
  test::write_file(path, "not ELF");
  try {
    load_operator_library(path);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace halftone
