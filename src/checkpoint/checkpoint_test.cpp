// .ht files of graphs: what goes in comes out, bit for bit.
#include "checkpoint/test_support.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

void expect_same_module(const GraphModule& a, const GraphModule& b) {
  EXPECT_EQ(print_graph(a.graph()), print_graph(b.graph()));
  EXPECT_EQ(a.call_spec().args, b.call_spec().args);
  EXPECT_EQ(a.call_spec().kwargs, b.call_spec().kwargs);
  EXPECT_EQ(a.call_spec().result, b.call_spec().result);
  EXPECT_EQ(a.ranges, b.ranges);
  EXPECT_EQ(a.notes, b.notes);
  ASSERT_EQ(a.guards.size(), b.guards.size());
  for (size_t i = 0; i < a.guards.size(); ++i) {
    EXPECT_EQ(a.guards[i].condition, b.guards[i].condition);
    EXPECT_EQ(a.guards[i].text, b.guards[i].text);
  }
  ASSERT_EQ(a.tensors()->size(), b.tensors()->size());
  for (const auto& [name, tensor] : *a.tensors()) expect_same(b.tensor(name), tensor, name);
}

class GraphCheckpoint : public CheckpointTest {};

TEST_F(GraphCheckpoint, RoundTripsMappedAndRead) {
  const auto module = small_model();
  save_checkpoint(*module, path());
  for (const bool map : {true, false}) {
    const auto loaded = load_checkpoint(path(), {.map = map});
    expect_same_module(*module, *loaded);
    EXPECT_EQ(loaded->name, path());
    expect_same(run_sample(loaded), run_sample(module), "result");
  }
  const CheckpointInfo info = verify_checkpoint(path());
  EXPECT_THAT(info.findings, IsEmpty());
  EXPECT_EQ(info.version, 2);
  EXPECT_EQ(info.needs, "0.2.0");
  EXPECT_EQ(info.chunks, 1u);
  EXPECT_EQ(info.kind, "graph");
  EXPECT_EQ(info.tensors, 3u);
  EXPECT_THAT(info.written_by, HasSubstr("halftone "));
  EXPECT_EQ(info.sha256.size(), 64u);
  EXPECT_EQ(info.bytes, static_cast<int64_t>(std::filesystem::file_size(path())));
}

TEST_F(GraphCheckpoint, TheSameModelGivesTheSameBytes) {
  save_checkpoint(*small_model(), path("a.ht"));
  save_checkpoint(*small_model(), path("b.ht"));
  EXPECT_EQ(file_text(path("a.ht")), file_text(path("b.ht")));
  save_checkpoint(*load_checkpoint(path("a.ht")), path("c.ht"));
  EXPECT_EQ(file_text(path("a.ht")), file_text(path("c.ht"))) << "also after a round trip";
}

TEST_F(GraphCheckpoint, EveryTensorIsAligned) {
  save_checkpoint(*small_model(), path());
  const auto loaded = load_checkpoint(path());
  for (const auto& [name, tensor] : *loaded->tensors())
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % 64, 0u) << name;
}

TEST_F(GraphCheckpoint, LoadedTensorsAreWritableAndTheFileIsNot) {
  save_checkpoint(*small_model(), path());
  const std::string before = file_text(path());
  const at::Tensor bias = load_checkpoint(path())->tensor("fc.bias");
  bias.fill_(7);
  EXPECT_EQ(file_text(path()), before);
  std::filesystem::remove(path());
  EXPECT_TRUE(bias.equal(at::full({3}, 7.)));
}

/// A model that only holds tensors: each is a constant that is returned.
std::shared_ptr<GraphModule> holder(const TensorMap& tensors) {
  auto graph = std::make_unique<Graph>();
  std::vector<Argument> values;
  for (const auto& [name, tensor] : tensors) {
    TensorMeta meta{tensor.scalar_type()};
    for (const int64_t size : tensor.sizes()) meta.sizes.emplace_back(size);
    values.emplace_back(graph->add_input({"", ValueType::kTensor, meta}, InputKind::kConstant, name));
  }
  graph->set_outputs(values, std::vector<GraphOutput>(values.size()));
  CallSpec call = flat_call(*graph);
  return std::make_shared<GraphModule>(std::move(graph), tensors, std::move(call));
}

TEST_F(GraphCheckpoint, KeepsDtypesLayoutsAndOddNames) {
  const at::Tensor base = at::arange(24, at::kFloat).view({2, 3, 4}).sub(11.5);
  TensorMap tensors = {{"permuted", base.permute({2, 0, 1})},
                       {"channels_last", at::ones({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast)},
                       {"expanded", at::arange(3, at::kFloat).unsqueeze(0).expand({4, 3})},
                       {"holes", at::arange(20, at::kFloat).view({4, 5}).slice(1, 1, 3)},
                       {"overlapping", at::arange(9, at::kFloat).as_strided({4, 3}, {2, 1})},
                       {"empty", at::empty({0, 3})},
                       {"scalar", at::scalar_tensor(2.5)},
                       {"conjugate", at::complex(at::ones({2}), at::ones({2})).conj()},
                       {"double_complex", at::ones({2, 2}, at::kComplexDouble).t()},
                       {"not finite", at::full({2}, std::numeric_limits<float>::quiet_NaN())},
                       {"__halftone__.sha256", at::ones({1})},
                       {"__halftone__.pad.0", at::ones({2})},
                       {"__metadata__", at::ones({3})},
                       {"quote\" \n\t\\ \xc3\xa4", at::ones({5})},
                       {"not utf-8 \xff", at::ones({6})}};
  for (const auto dtype :
       {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf, at::kBFloat16,
        at::kDouble, at::kComplexFloat, at::kFloat8_e4m3fn, at::kFloat8_e5m2}) {
    tensors[std::string("t_") + c10::toString(dtype)] = base.to(dtype);
  }
  const auto module = holder(tensors);
  save_checkpoint(*module, path());
  const auto loaded = load_checkpoint(path());
  tensors["conjugate"] = tensors["conjugate"].resolve_conj();
  ASSERT_EQ(loaded->tensors()->size(), tensors.size());
  for (const auto& [name, tensor] : tensors) expect_same(loaded->tensor(name), tensor, name);
  EXPECT_THAT(verify_checkpoint(path()).findings, IsEmpty());
}

TEST_F(GraphCheckpoint, SharedMemoryStaysShared) {
  const at::Tensor table = at::arange(12, at::kFloat).view({3, 4});
  const at::Tensor memory = at::arange(10, at::kFloat);
  const auto module = holder({{"table", table},
                              {"tied", table.view({3, 4})},
                              {"transposed", table.t()},
                              {"row", table.select(0, 1)},
                              {"left", memory.narrow(0, 0, 6)},
                              {"right", memory.narrow(0, 4, 6)}});
  save_checkpoint(*module, path());
  EXPECT_LT(std::filesystem::file_size(path()), 6000u);
  const auto loaded = load_checkpoint(path());
  for (const auto& [name, tensor] : *module->tensors()) expect_same(loaded->tensor(name), tensor, name);
  loaded->tensor("table").fill_(-1);
  for (const char* name : {"tied", "transposed", "row"})
    EXPECT_TRUE(loaded->tensor(name).eq(-1).all().item().toBool()) << name;
  loaded->tensor("left").fill_(-2);
  EXPECT_TRUE(loaded->tensor("right").narrow(0, 0, 2).eq(-2).all().item().toBool());
  EXPECT_EQ(loaded->tensor("right")[2].item<float>(), 6);
}

TEST_F(GraphCheckpoint, KeepsTheNestingOfCallsAndSampleInputsOfEveryKind) {
  auto graph = parse_graph(
      R"(graph(%a: user "a" f32[2], %b: user "b" float, %c: user "c" int, %d: user "d" str, %e: user "e" bool, %f: user "f" none, %g: user "g" f32[2]) { return %a, %g })");
  CallSpec call;
  TreeSpec named{TreeSpec::Kind::kTuple,
                 "Pair (named tuple)",
                 {"left", "right \xff"},
                 {TreeSpec::leaf(), TreeSpec::leaf()},
                 {".left", ".right"}};
  TreeSpec list{TreeSpec::Kind::kList, "builtins.list", {}, {TreeSpec::leaf(), TreeSpec::leaf()}};
  call.args = {TreeSpec::Kind::kTuple, "builtins.tuple", {}, {named, list}};
  call.kwargs = {TreeSpec::Kind::kDict,
                 "builtins.dict",
                 {"k", "7"},
                 {TreeSpec::leaf(), {TreeSpec::Kind::kTuple, "t", {}, {TreeSpec::leaf(), TreeSpec::leaf()}}},
                 {"['k']", "[7]"}};
  call.result = {TreeSpec::Kind::kTuple, "builtins.tuple", {}, {TreeSpec::leaf(), TreeSpec::leaf()}};
  GraphModule module(std::move(graph), {}, call);
  const at::Tensor shared = at::ones({2});
  module.sample_inputs = {shared,      -std::numeric_limits<double>::infinity(),
                          int64_t{-5}, std::string("text \xfe"),
                          true,        c10::IValue(),
                          shared};
  save_checkpoint(module, path());
  const auto loaded = load_checkpoint(path());
  EXPECT_EQ(loaded->call_spec().args, call.args);
  EXPECT_EQ(loaded->call_spec().kwargs, call.kwargs);
  ASSERT_EQ(loaded->sample_inputs.size(), 7u);
  expect_same(loaded->sample_inputs[0].toTensor(), shared, "a");
  EXPECT_EQ(loaded->sample_inputs[1].toDouble(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(loaded->sample_inputs[2].toInt(), -5);
  EXPECT_EQ(loaded->sample_inputs[3].toStringRef(), "text \xfe");
  EXPECT_TRUE(loaded->sample_inputs[4].toBool());
  EXPECT_TRUE(loaded->sample_inputs[5].isNone());
  EXPECT_EQ(loaded->sample_inputs[6].toTensor().const_data_ptr(),
            loaded->sample_inputs[0].toTensor().const_data_ptr());
}

TEST_F(GraphCheckpoint, RefusesWhatItCannotHold) {
  const auto sparse = holder({{"s", at::ones({2, 2}).to_sparse()}});
  EXPECT_THAT(message_of(ErrorCode::kUnsupported, [&] { save_checkpoint(*sparse, path()); }),
              HasSubstr("\"s\""));
  const auto module = small_model();
  module->sample_inputs = {c10::IValue(c10::List<int64_t>({1, 2}))};
  EXPECT_THAT(message_of(ErrorCode::kUnsupported, [&] { save_checkpoint(*module, path()); }),
              HasSubstr("sample input 0"));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(GraphCheckpoint, SaysWhatIsWrongWithTheFile) {
  EXPECT_THAT(message_of(ErrorCode::kNotFound, [&] { load_checkpoint(path("none.ht")); }),
              HasSubstr("none.ht"));
  write_safetensors(path(), {});
  EXPECT_THAT(message_of(ErrorCode::kCorruptFile, [&] { load_checkpoint(path()); }), HasSubstr("no .ht"));
  EXPECT_THAT(message_of(ErrorCode::kCorruptFile, [&] { verify_checkpoint(path()); }), HasSubstr("no .ht"));
}

}  // namespace
}  // namespace halftone
