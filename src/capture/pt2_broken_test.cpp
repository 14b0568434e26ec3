// Every way we could think of to break a .pt2 file: each must give the right error, with file and place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "capture/test_archive.h"
#include "halftone/capture/capture.h"

namespace halftone {
namespace {

using nlohmann::json;
using test::Members;
using enum ErrorCode;

constexpr const char* kModel = "models/model.json";
constexpr const char* kWeights = "data/weights/model_weights_config.json";
constexpr const char* kSample = "data/sample_inputs/model.pt";

const Members& small() {
  static const Members members = test::read_members(CAPTURE_TESTDATA "/small.pt2");
  return members;
}

struct Case {
  std::string name;
  std::function<void(Members&)> mutate;
  ErrorCode code;
  std::string message;  ///< a part of it
};

std::function<void(Members&)> in_json(std::string member, std::function<void(json&)> edit) {
  return [member = std::move(member), edit = std::move(edit)](Members& members) {
    json document = json::parse(members.at(member));
    edit(document);
    members[member] = document.dump();
  };
}

std::function<void(Members&)> set(std::string member, std::string pointer, json value) {
  return in_json(std::move(member), [pointer = std::move(pointer), value = std::move(value)](json& document) {
    document[json::json_pointer(pointer)] = value;
  });
}

std::function<void(Members&)> erase(std::string member, std::string pointer) {
  return in_json(std::move(member), [pointer = std::move(pointer)](json& document) {
    const json::json_pointer place(pointer);
    json& parent = document[place.parent_pointer()];
    if (parent.is_array()) {
      parent.erase(std::stoul(place.back()));
    } else {
      parent.erase(place.back());
    }
  });
}

std::function<void(Members&)> in_graph(std::function<void(json&)> edit) {
  return in_json(kModel, [edit = std::move(edit)](json& model) { edit(model["graph_module"]["graph"]); });
}

json& node(json& graph, const std::string& name) {
  for (json& candidate : graph["nodes"]) {
    if (candidate["name"] == name) return candidate;
  }
  throw std::runtime_error("the test's file has no node " + name);
}

std::function<void(Members&)> in_node(std::string name, std::function<void(json&)> edit) {
  return in_graph([name = std::move(name), edit = std::move(edit)](json& graph) { edit(node(graph, name)); });
}

std::string deep(size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

const std::string kGraph = "/graph_module/graph";
const std::string kSignature = "/graph_module/signature";
const std::string kCall = "/graph_module/module_call_graph/0/signature";
const std::string kFirst = "/config/first.weight";

std::vector<Case> shape_cases() {
  const auto sizes = [](std::string value, int64_t size) {
    return in_graph([value = std::move(value), size](json& graph) {
      graph["tensor_values"][value]["sizes"][1] = {{"as_int", size}};
    });
  };
  return {
      {"declared_larger", sizes("linear", 4096), kCorruptFile,
       "is declared as float32 [3, 4096], the operator gives float32 [3, 4]"},
      {"declared_smaller", sizes("mul_2", 1), kCorruptFile, "aten::mul.Tensor"},
      {"declared_otherwise", in_graph([](json& graph) { graph["tensor_values"]["linear"]["dtype"] = 8; }),
       kCorruptFile, "is declared as float64"},
  };
}

std::vector<Case> container_cases() {
  return {
      {"no_format", [](Members& m) { m.erase("archive_format"); }, kCorruptFile, "not a .pt2"},
      {"other_format", [](Members& m) { m["archive_format"] = "pt3"; }, kCorruptFile, "not a .pt2"},
      {"newer_container", [](Members& m) { m["archive_version"] = "7"; }, kUnsupported, "version \"7\""},
      {"big_endian", [](Members& m) { m["byteorder"] = "big"; }, kUnsupported, "byte order \"big\""},
      {"odd_byte_order", [](Members& m) { m["byteorder"] = "middle"; }, kCorruptFile, "middle"},
      {"no_byte_order", [](Members& m) { m.erase("byteorder"); }, kCorruptFile, "byteorder is missing"},
      {"two_models", [](Members& m) { m["models/other.json"] = m[kModel]; }, kUnsupported, "model, other"},
      {"no_model", [](Members& m) { m.erase(kModel); }, kUnsupported, "no exported program"},
      {"two_roots", [](Members& m) { m["/elsewhere/file"] = "x"; }, kCorruptFile, "two root folders"},
      {"no_root", [](Members& m) { m["/file"] = "x"; }, kCorruptFile, "outside the root folder"},
      {"no_weights_config", [](Members& m) { m.erase(kWeights); }, kCorruptFile,
       "model_weights_config.json is missing"},
      {"weight_missing", [](Members& m) { m.erase("data/weights/weight_0"); }, kCorruptFile,
       "weight_0 is missing"},
      {"legacy_weights", [](Members& m) { m["data/weights/model.pt"] = "x"; }, kUnsupported, "older torch"},
      {"payload_short", [](Members& m) { m["data/weights/weight_0"].resize(60); }, kCorruptFile,
       "needs 64 bytes"},
      {"payload_empty", [](Members& m) { m["data/weights/weight_0"].clear(); }, kCorruptFile,
       "its payload has 0"},
      {"sample_garbage", [](Members& m) { m[kSample] = "not a zip"; }, kCorruptFile,
       "sample_inputs/model.pt"},
      {"sample_truncated", [](Members& m) { m[kSample].resize(700); }, kCorruptFile,
       "sample_inputs/model.pt"},
      {"model_truncated", [](Members& m) { m[kModel].resize(5000); }, kCorruptFile, "models/model.json"},
      {"model_empty", [](Members& m) { m[kModel].clear(); }, kCorruptFile, "models/model.json"},
      {"deep_json", [](Members& m) { m[kModel] = deep(1'000'000); }, kCorruptFile, "nested deeper"},
      {"trailing_json", [](Members& m) { m[kModel] += "{}"; }, kCorruptFile, "models/model.json"},
      {"duplicate_key", [](Members& m) { m[kModel].insert(1, "\"graph_module\": 1, "); }, kCorruptFile,
       "duplicate key"},
      {"not_an_object", [](Members& m) { m[kModel] = "[1, 2]"; }, kCorruptFile, "expected an object"},
  };
}

std::vector<Case> payload_cases() {
  const std::string meta = kFirst + "/tensor_meta";
  return {
      {"path_up", set(kWeights, kFirst + "/path_name", "../x"), kCorruptFile, "not a plain name"},
      {"path_dots", set(kWeights, kFirst + "/path_name", ".."), kCorruptFile, "not a plain name"},
      {"path_elsewhere", set(kWeights, kFirst + "/path_name", "weight_99"), kCorruptFile,
       "weight_99 is missing"},
      {"pickled", set(kWeights, kFirst + "/use_pickle", true), kUnsupported, "first.weight"},
      {"no_meta", set(kWeights, meta, nullptr), kCorruptFile, "expected an object"},
      {"negative_size", set(kWeights, meta + "/sizes/0/as_int", -4), kCorruptFile, "negative"},
      {"negative_stride", set(kWeights, meta + "/strides/0/as_int", -4), kCorruptFile, "negative"},
      {"negative_offset", set(kWeights, meta + "/storage_offset/as_int", -1), kCorruptFile, "negative"},
      {"offset_past_end", set(kWeights, meta + "/storage_offset/as_int", 1), kCorruptFile, "needs 68 bytes"},
      {"stride_past_end", set(kWeights, meta + "/strides/0/as_int", 5), kCorruptFile, "its payload has 64"},
      {"size_overflow", set(kWeights, meta + "/sizes/0/as_int", int64_t{1} << 62), kCorruptFile, "overflow"},
      {"offset_overflow", set(kWeights, meta + "/storage_offset/as_int", INT64_MAX), kCorruptFile,
       "overflow"},
      {"size_too_big", set(kWeights, meta + "/sizes/0/as_int", UINT64_MAX), kCorruptFile, "64 signed bits"},
      {"symbolic_size", set(kWeights, meta + "/sizes/0", {{"as_expr", {{"expr_str", "Integer(4)"}}}}),
       kCorruptFile, "needs sizes that are numbers"},
      {"rank_mismatch", erase(kWeights, meta + "/strides/1"), kCorruptFile, "as many strides"},
      {"huge_rank", set(kWeights, meta + "/sizes", json(1'000'000, {{"as_int", 1}})), kCorruptFile,
       "rank 1000000"},
      {"unknown_dtype", set(kWeights, meta + "/dtype", 99), kCorruptFile, "99 is no element type"},
      {"unknown_layout", set(kWeights, meta + "/layout", 42), kCorruptFile, "42 is no layout"},
      {"sparse", set(kWeights, meta + "/layout", 1), kUnsupported, "not strided"},
      {"other_dtype", set(kWeights, meta + "/dtype", 4), kCorruptFile, "another dtype or shape"},
      {"other_shape", set(kWeights, meta + "/sizes/0/as_int", 2), kCorruptFile, "another dtype or shape"},
      {"cuda_weight", set(kWeights, meta + "/device/type", "cuda"), kUnsupported, "cuda"},
      {"not_in_config", erase(kWeights, kFirst), kCorruptFile, "first.weight\" is not in the file"},
      {"unknown_config_key", set(kWeights, kFirst + "/surprise", 1), kCorruptFile, "surprise"},
  };
}

std::vector<Case> graph_cases() {
  return {
      {"older_major", set(kModel, "/schema_version/major", 7), kUnsupported, "schema version 7.20"},
      {"newer_major", set(kModel, "/schema_version/major", 9), kUnsupported, "schema version 9.20"},
      {"newer_minor_with_new_key",
       in_json(kModel, [](json& model) { model["schema_version"]["minor"] = 21, model["novelty"] = 1; }),
       kUnsupported, "novelty"},
      {"unknown_key", set(kModel, "/novelty", 1), kCorruptFile, "unknown key \"novelty\""},
      {"no_graph", erase(kModel, kGraph), kCorruptFile, "\"graph\" is missing"},
      {"nodes_no_list", set(kModel, kGraph + "/nodes", 5), kCorruptFile, "expected an array"},
      {"node_without_target", erase(kModel, kGraph + "/nodes/0/target"), kCorruptFile,
       "nodes[0]: key \"target\""},
      {"target_no_string", set(kModel, kGraph + "/nodes/0/target", 3), kCorruptFile, "nodes[0].target"},
      {"unknown_operator", set(kModel, kGraph + "/nodes/1/target", "torch.ops.mylib.magic.default"),
       kUnsupported,
       "torch.ops.mylib.magic.default in layer \"first\": unknown operator; if a library registers it, load "
       "that with "
       "--load-library"},
      {"subclass_operator",
       set(kModel, kGraph + "/nodes/1/target", "torch.ops.export.access_subclass_inner_tensor.default"),
       kUnsupported,
       "unwraps a tensor subclass, as torchao's quantize_ makes: save exported.run_decompositions()"},
      {"unknown_aten_operator", set(kModel, kGraph + "/nodes/1/target", "torch.ops.aten.magic.default"),
       kUnsupported, "no such operator"},
      {"from_file", set(kModel, kGraph + "/nodes/1/target", "torch.ops.aten.from_file.default"), kUnsupported,
       "in layer \"first\": aten::from_file reads and writes files: refused in files"},
      {"reinterpret",
       set(kModel, kGraph + "/nodes/1/target", "torch.ops.inductor._reinterpret_tensor.default"),
       kUnsupported, "in layer \"first\": inductor::_reinterpret_tensor changes or reinterprets"},
      {"alloc_from_pool",
       set(kModel, kGraph + "/nodes/1/target", "torch.ops.inductor._alloc_from_pool.default"), kUnsupported,
       "in layer \"first\": inductor::_alloc_from_pool changes or reinterprets"},
      {"reshape_alias", set(kModel, kGraph + "/nodes/1/target", "torch.ops.aten._reshape_alias.default"),
       kUnsupported, "in layer \"first\": aten::_reshape_alias changes or reinterprets"},
      {"set_source", set(kModel, kGraph + "/nodes/1/target", "torch.ops.aten.set_.source_Tensor"),
       kUnsupported, "in layer \"first\": aten::set_.source_Tensor changes or reinterprets"},
      {"resize", set(kModel, kGraph + "/nodes/1/target", "torch.ops.aten.resize_.default"), kUnsupported,
       "in layer \"first\": aten::resize_ changes or reinterprets"},
      {"print", set(kModel, kGraph + "/nodes/1/target", "torch.ops.aten._print.default"), kUnsupported,
       "in layer \"first\": aten::_print writes to the terminal"},
      {"out_variant", set(kModel, kGraph + "/nodes/1/target", "torch.ops.aten.add.out"), kUnsupported,
       "in layer \"first\": aten::add.out writes its result"},
      {"other_namespace", set(kModel, kGraph + "/nodes/1/target", "torch.ops.quantized.linear.default"),
       kUnsupported, "in layer \"first\": quantized::linear is neither"},
      {"unknown_higher_order",
       set(kModel, kGraph + "/nodes/1/target", "torch.ops.higher_order.flex_attention"), kUnsupported,
       "higher-order"},
      {"python_function", set(kModel, kGraph + "/nodes/1/target", "os.system"), kUnsupported, "os.system"},
      {"builtin_by_name", set(kModel, kGraph + "/nodes/1/target", "builtin.unpack"), kUnsupported,
       "builtin.unpack"},
      {"two_unsupported", in_graph([](json& graph) {
         graph["nodes"][0]["target"] = "torch.ops.a.b.default";
         node(graph, "cond")["inputs"][1]["arg"]["as_graph"]["graph"]["nodes"][0]["target"] =
             "torch.ops.c.d.default";
       }),
       kUnsupported, "2 nodes cannot be run"},
      {"dangling", in_node("mul_2", [](json& n) { n["inputs"][0]["arg"]["as_tensor"]["name"] = "ghost"; }),
       kCorruptFile, "value \"ghost\" is not defined"},
      {"cycle", in_node("linear", [](json& n) { n["inputs"][0]["arg"]["as_tensor"]["name"] = "mul_2"; }),
       kCorruptFile, "value \"mul_2\" is not defined before"},
      {"self_use", in_node("linear", [](json& n) { n["inputs"][0]["arg"]["as_tensor"]["name"] = "linear"; }),
       kCorruptFile, "value \"linear\" is not defined before"},
      {"defined_twice", in_node("mul_2", [](json& n) { n["outputs"][0]["as_tensor"]["name"] = "linear"; }),
       kCorruptFile, "defined twice"},
      {"redefines_input", in_node("mul_2", [](json& n) { n["outputs"][0]["as_tensor"]["name"] = "x"; }),
       kCorruptFile, "defined twice"},
      {"no_metadata_of_value", erase(kModel, kGraph + "/tensor_values/linear"), kCorruptFile,
       "no entry in tensor_values"},
      {"missing_operand", in_node("linear", [](json& n) { n["inputs"].erase(1); }), kCorruptFile, "weight"},
      {"unknown_operand", in_node("linear", [](json& n) { n["inputs"][1]["name"] = "wait"; }), kCorruptFile,
       "wait"},
      {"operand_twice", in_node("linear", [](json& n) { n["inputs"][1]["name"] = "input"; }), kCorruptFile,
       "given twice"},
      {"operand_of_wrong_kind",
       in_node("linear",
               [](json& n) {
                 n["inputs"][0]["arg"] = {{"as_string", "x"}};
               }),
       kCorruptFile, "input"},
      {"unknown_kind",
       in_node("linear",
               [](json& n) {
                 n["inputs"][0]["arg"] = {{"as_dream", 1}};
               }),
       kCorruptFile, "as_dream"},
      {"two_kinds", in_node("linear", [](json& n) { n["inputs"][0]["arg"]["as_int"] = 1; }), kCorruptFile,
       "one key"},
      {"custom_object",
       in_node("linear",
               [](json& n) {
                 n["inputs"][0]["arg"] = {{"as_custom_obj", {{"name", "o"}, {"class_fqn", "C"}}}};
               }),
       kUnsupported, "custom object"},
      {"int_no_int", in_node("split", [](json& n) { n["inputs"][1]["arg"]["as_int"] = 1.5; }), kCorruptFile,
       "expected an integer"},
      {"two_outputs",
       in_node("linear",
               [](json& n) {
                 n["outputs"].push_back({{"as_none", true}});
               }),
       kCorruptFile, "linear"},
      {"no_outputs", in_node("add_27", [](json& n) { n["outputs"] = json::array(); }), kCorruptFile,
       "add_27"},
      {"bad_value_name", in_graph([](json& graph) {
         graph["tensor_values"]["a b"] = graph["tensor_values"]["linear"];
         node(graph, "linear")["outputs"][0]["as_tensor"]["name"] = "a b";
       }),
       kCorruptFile, "no name of a value"},
      {"negative_meta_size", set(kModel, kGraph + "/tensor_values/linear/sizes/1/as_int", -2), kCorruptFile,
       "negative size"},
      {"meta_dtype", set(kModel, kGraph + "/tensor_values/linear/dtype", 77), kCorruptFile,
       "77 is no element type"},
      {"cuda", set(kModel, kGraph + "/tensor_values/linear/device/type", "cuda"), kUnsupported,
       "export it on the CPU"},
  };
}

json& branch(json& cond, size_t index) {
  return cond["inputs"][index]["arg"]["as_graph"]["graph"];
}

std::vector<Case> call_cases() {
  const auto spec_of = [](const char* text) { return json(text); };
  return {
      {"branch_takes_more",
       in_node("cond",
               [](json& n) {
                 branch(n, 1)["inputs"].push_back({{"as_tensor", {{"name", "sin"}}}});
               }),
       kCorruptFile, "sin"},
      {"branch_gives_nothing", in_node("cond", [](json& n) { branch(n, 2)["outputs"] = json::array(); }),
       kCorruptFile, "the false branch"},
      {"cond_without_operands", in_node("cond", [](json& n) { n["inputs"].erase(3); }), kCorruptFile,
       "takes 4 operands"},
      {"cond_without_graph",
       in_node("cond",
               [](json& n) {
                 n["inputs"][1]["arg"] = {{"as_int", 1}};
               }),
       kCorruptFile, "expected a subgraph"},
      {"operands_mismatch",
       in_node("cond", [](json& n) { n["inputs"][3]["arg"]["as_tensors"] = json::array(); }), kCorruptFile,
       "the true branch"},
      {"outer_value_in_branch",
       in_node("cond",
               [](json& n) { branch(n, 1)["nodes"][0]["inputs"][0]["arg"]["as_tensor"]["name"] = "linear"; }),
       kCorruptFile, "value \"linear\" is not defined"},
      {"spec_short", erase(kModel, kSignature + "/input_specs/0"), kCorruptFile, "9 specs for 10 inputs"},
      {"spec_renamed", set(kModel, kSignature + "/input_specs/6/user_input/arg/as_tensor/name", "ghost"),
       kCorruptFile, "calls input 6 \"ghost\""},
      {"spec_parameter_unknown",
       set(kModel, kSignature + "/input_specs/0/parameter/parameter_name", "third.weight"), kCorruptFile,
       "third.weight\" is not in the file"},
      {"spec_same_target",
       set(kModel, kSignature + "/input_specs/0/parameter/parameter_name", "second.weight"), kCorruptFile,
       "second.weight"},
      {"spec_kind_unknown", set(kModel, kSignature + "/input_specs/0", {{"gift", 1}}), kCorruptFile, "gift"},
      {"spec_token", set(kModel, kSignature + "/input_specs/0", {{"token", {{"arg", {{"name", "t"}}}}}}),
       kUnsupported, "token"},
      {"output_ghost", set(kModel, kSignature + "/output_specs/1/user_output/arg/as_tensor/name", "ghost"),
       kCorruptFile, "\"ghost\" is not the graph's"},
      {"output_short", erase(kModel, kSignature + "/output_specs/4"), kCorruptFile, "4 specs for 5 outputs"},
      {"graph_output_ghost", set(kModel, kGraph + "/outputs/1/as_tensor/name", "ghost"), kCorruptFile,
       "\"ghost\" is not defined"},
      {"mutates_nothing", set(kModel, kSignature + "/output_specs/0/buffer_mutation/buffer_name", "ghost"),
       kCorruptFile, "no parameter or buffer is called \"ghost\""},
      {"mutates_constant", set(kModel, kSignature + "/output_specs/0/buffer_mutation/buffer_name", "shift"),
       kCorruptFile, "no parameter or buffer is called \"shift\""},
      {"gradient",
       in_json(kModel,
               [](json& model) {
                 model["graph_module"]["signature"]["output_specs"][0] = {
                     {"gradient_to_parameter",
                      {{"arg", {{"name", "add"}}}, {"parameter_name", "first.weight"}}}};
               }),
       kUnsupported, "gradient_to_parameter"},
      {"no_call", set(kModel, "/graph_module/module_call_graph", json::array()), kCorruptFile,
       "no entry describes the call"},
      {"in_spec_leaves",
       set(kModel, kCall + "/in_spec",
           spec_of(R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)"
                   R"({"type": "builtins.tuple", "context": "null", "children_spec": []},)"
                   R"({"type": "builtins.dict", "context": "[]", "children_spec": []}]}])")),
       kCorruptFile, "in_spec has 0 leaves"},
      {"out_spec_leaves",
       set(kModel, kCall + "/out_spec",
           spec_of(R"([1, {"type": null, "context": null, "children_spec": []}])")),
       kCorruptFile, "out_spec has 1 leaves"},
      {"in_spec_leaf",
       set(kModel, kCall + "/in_spec",
           spec_of(R"([1, {"type": null, "context": null, "children_spec": []}])")),
       kCorruptFile, "in_spec is not a tuple"},
      {"in_spec_garbage", set(kModel, kCall + "/in_spec", "[1, "), kCorruptFile, "in_spec"},
      {"in_spec_deep", set(kModel, kCall + "/in_spec", deep(10'000)), kCorruptFile, "nested deeper"},
      {"treespec_version", set(kModel, kCall + "/out_spec", spec_of("[2, {}]")), kUnsupported,
       "version 2 of pytree"},
      {"empty_range", set(kModel, "/range_constraints/s77/min_val", 65), kCorruptFile, "empty range"},
      {"range_no_int", set(kModel, "/range_constraints/s77/min_val", "two"), kCorruptFile, "min_val"},
      {"guards_no_list", set(kModel, "/guards_code", 1), kCorruptFile, "guards_code"},
  };
}

class BrokenPt2 : public testing::TestWithParam<Case> {};

TEST_P(BrokenPt2, IsRefusedWithFileAndPlace) {
  Members members = small();
  GetParam().mutate(members);
  const std::string path = testing::TempDir() + "broken_" + GetParam().name + ".pt2";
  test::write_members(path, members);
  try {
    load_pt2(path);
    ADD_FAILURE() << "the file was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(GetParam().code)) << error.what();
    EXPECT_THAT(error.what(), testing::HasSubstr(path));
    EXPECT_THAT(error.what(), testing::HasSubstr(GetParam().message));
  }
  std::remove(path.c_str());
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Container, BrokenPt2, testing::ValuesIn(container_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Payload, BrokenPt2, testing::ValuesIn(payload_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Graph, BrokenPt2, testing::ValuesIn(graph_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Call, BrokenPt2, testing::ValuesIn(call_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Shape, BrokenPt2, testing::ValuesIn(shape_cases()), case_name);

TEST(BrokenPt2Test, TheUnbrokenMembersLoad) {
  const std::string path = testing::TempDir() + "unbroken.pt2";
  test::write_members(path, small());
  EXPECT_EQ(load_pt2(path)->graph().inputs().size(), 10u);
  std::remove(path.c_str());
}

TEST(BrokenPt2Test, ANewerMinorVersionLoadsIfItHoldsNothingNew) {
  Members members = small();
  set(kModel, "/schema_version/minor", 21)(members);
  const std::string path = testing::TempDir() + "newer_minor.pt2";
  test::write_members(path, members);
  EXPECT_NO_THROW(load_pt2(path));
  std::remove(path.c_str());
}

/// A loaded module or a halftone::Error, and nothing else. Half of the runs skip the checksums, which catch
/// most changes before they reach the readers behind them.
void load_changed(const std::string& path, const std::string& bytes, bool verify, size_t& loaded) {
  test::write_file(path, bytes);
  try {
    load_pt2(path, {.map = false, .verify = verify});
    ++loaded;
  } catch (const Error& error) {
    EXPECT_NE(to_string(error.code()), to_string(kInternal)) << error.what();
    EXPECT_THAT(error.what(), testing::HasSubstr(path));
  }
}

TEST(BrokenPt2Test, RandomChangesNeverGiveAnythingButAnError) {
  std::string original;
  {
    const auto file = FileBytes::open(CAPTURE_TESTDATA "/small.pt2", LoadMode::kRead);
    original.assign(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  }
  const std::string path = testing::TempDir() + "changed.pt2";
  std::mt19937 random(20240607);
  size_t loaded = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = original;
    if (i % 10 == 0) {
      bytes.resize(random() % bytes.size());
    } else {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    load_changed(path, bytes, i % 2 == 0, loaded);
    if (HasFailure()) FAIL() << "change " << i;
  }
  EXPECT_GT(
      loaded,
      100u);  // changed weights and padding are not errors: the test must also reach the end of the loader
  std::remove(path.c_str());
}

}  // namespace
}  // namespace halftone
