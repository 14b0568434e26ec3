// .ht files whose checksum is right and whose content is not: each must be refused with its reason, by load
// and by verify.
#include <nlohmann/json.hpp>

#include "archive/broken_case.h"
#include "base/sha256.h"
#include "checkpoint/test_support.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Metadata = std::map<std::string, std::string>;
using Tensors = std::vector<SafetensorsTensor>;

/// What a hostile writer changes in an otherwise good file.
struct Change {
  std::string name;
  std::function<void(Metadata&, Tensors&)> apply;
  std::string message;
  ErrorCode code = ErrorCode::kCorruptFile;
  friend std::ostream& operator<<(std::ostream& out, const Change& change) { return out << change.name; }
};

void replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << " is not in " << text;
  text.replace(at, from.size(), to);
}

Change text_change(std::string name, std::string key, std::string from, std::string to, std::string message,
                   ErrorCode code = ErrorCode::kCorruptFile) {
  return {
      std::move(name),
      [key = "halftone." + key, from, to](Metadata& metadata, Tensors&) { replace(metadata[key], from, to); },
      std::move(message), code};
}

Change value_change(std::string name, std::string key, std::string value, std::string message,
                    ErrorCode code = ErrorCode::kCorruptFile) {
  return {std::move(name),
          [key = "halftone." + key, value](Metadata& metadata, Tensors&) { metadata[key] = value; },
          std::move(message), code};
}

Change missing(const std::string& key) {
  return {"Missing_" + key, [=](Metadata& metadata, Tensors&) { metadata.erase("halftone." + key); },
          "lack halftone." + key};
}

std::string view(const std::string& dtype, const std::string& offset, const std::string& sizes,
                 const std::string& strides) {
  return R"([{"name":"fc.bias"},{"name":"fc.weight","stored":"fc.weight","view":{"dtype":")" + dtype +
         R"(","offset":)" + offset + R"(,"sizes":)" + sizes + R"(,"strides":)" + strides + "}}]";
}

std::string nested(size_t depth) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += R"({"kind":"tuple","children":[)";
  return R"({"args":)" + text;
}

std::vector<Change> frame_changes() {
  return {
      missing("kind"),
      missing("graph"),
      missing("tensors"),
      missing("call"),
      missing("ranges"),
      missing("guards"),
      missing("notes"),
      missing("sample_inputs"),
      missing("configs"),
      value_change("KindUnknown", "kind", "picture", "not a graph"),
      value_change("KeyUnknown", "colour", "red", "no metadata \"halftone.colour\"", ErrorCode::kUnsupported),
      value_change("TensorsNoJson", "tensors", "[", "halftone.tensors: byte"),
      value_change("TensorsObject", "tensors", "{}", "expected an array"),
      value_change("TensorsNumbers", "tensors", "[1]", "expected an object"),
      value_change("TensorTwice", "tensors", R"([{"name":"a"},{"name":"a"}])", "stands twice"),
      value_change("TensorMemberUnknown", "tensors", R"([{"name":"a","color":1}])",
                   "has no member \"color\""),
      value_change("TensorsNone", "tensors", "[]", "\"fc.weight\" of the graph is not in the file"),
      value_change("HexOdd", "tensors", R"([{"name":{"hex":"abc"}}])", "odd number"),
      value_change("HexWrong", "tensors", R"([{"name":{"hex":"zz"}}])", "hexadecimal"),
      text_change("StoredMissing", "tensors", R"("name":"fc.bias")", R"("name":"fc.bias","stored":"gone")",
                  "\"gone\" is not in the file"),
      text_change("StoredIsDigest", "tensors", R"("name":"fc.bias")",
                  R"("name":"fc.bias","stored":"__halftone__.sha256")", "belongs to the format"),
      text_change("StoredIsTable", "tensors", R"("name":"fc.bias")",
                  R"("name":"fc.bias","stored":"__halftone__.digests")", "belongs to the format"),
      text_change("StoredOfOtherShape", "tensors", R"("name":"fc.bias")",
                  R"("name":"fc.bias","stored":"fc.weight")",
                  "is float32 [3, 4] in the file, float32 [3] in the graph"),
      text_change("StridesWrongRank", "tensors", R"("name":"fc.bias")", R"("name":"fc.bias","strides":[1,1])",
                  "no permutation"),
      text_change("StridesWithHoles", "tensors", R"("name":"fc.bias")",
                  R"("name":"fc.bias","strides":[1000000000000])", "no permutation"),
      text_change("StridesZero", "tensors", R"("name":"fc.bias")", R"("name":"fc.bias","strides":[0])",
                  "no permutation"),
      text_change("StridesNegative", "tensors", R"("name":"fc.bias")", R"("name":"fc.bias","strides":[-1])",
                  "is negative"),
  };
}

std::vector<Change> view_changes() {
  return {
      value_change("ViewPastEnd", "tensors", view("F32", "0", "[3,5]", "[5,1]"), "leaves the 48 bytes"),
      value_change("ViewOffsetPastEnd", "tensors", view("F32", "4", "[3,4]", "[4,1]"), "leaves the 48 bytes"),
      value_change("ViewStrideHuge", "tensors", view("F32", "0", "[3,4]", "[4611686018427387904,1]"),
                   "leaves the 48 bytes"),
      value_change("ViewSizesOverflow", "tensors", view("F32", "0", "[4294967296,4294967296]", "[0,0]"),
                   "overflow"),
      value_change("ViewBetweenElements", "tensors", view("F32", "2", "[1]", "[1]"), "between two elements"),
      value_change("ViewOffsetNegative", "tensors", view("F32", "-4", "[1]", "[1]"), "between two elements"),
      value_change("ViewRanksDiffer", "tensors", view("F32", "0", "[3,4]", "[1]"), "as many strides"),
      value_change("ViewDtypeUnknown", "tensors", view("F31", "0", "[1]", "[1]"), "is no element type"),
      value_change("ViewWiderDtype", "tensors", view("F64", "0", "[3,4]", "[4,1]"), "leaves the 48 bytes"),
      value_change("ViewSizesFraction", "tensors", view("F32", "0", "[1.5]", "[1]"), "expected an integer"),
      value_change("ViewSizesHuge", "tensors", view("F32", "0", "[99999999999999999999]", "[1]"),
                   "halftone.tensors"),
  };
}

std::vector<Change> model_changes() {
  return {
      value_change("GraphNoText", "graph", "hello", "halftone.graph"),
      text_change("GraphUnknownOperator", "graph", "aten::relu", "aten::rellu", "aten::rellu",
                  ErrorCode::kUnsupported),
      text_change("GraphNamesMissingTensor", "graph", "\"fc.bias\"", "\"fc.bios\"",
                  "\"fc.bios\" of the graph is not in the file"),
      text_change("GraphOtherDtype", "graph", "f32[3]", "i64[3]", "in the graph"),
      text_change("GraphOtherShape", "graph", "f32[3]", "f32[4000000000]", "in the graph"),
      text_change("GraphDeclaresOtherSizes", "graph", "%y: f32[s0, 3]", "%y: f32[s0, 4096]",
                  "is declared as float32 [2, 4096], the operator gives float32 [2, 3]"),
      text_change("GraphDeclaresOtherDtype", "graph", "%y: f32[s0, 3]", "%y: f64[s0, 3]",
                  "is declared as float64 [2, 3], the operator gives float32 [2, 3]"),
      text_change("GraphThatEagerRefuses", "graph", "aten::relu(%y)", "aten::expand(%y, [-5, 3])",
                  "aten::expand"),
      text_change("GraphOfMoreMemoryThanThereIs", "graph", "aten::relu(%y)",
                  "aten::zeros([1099511627776, 3])", "more memory"),
      text_change("GraphOtherInputs", "graph", R"(%x: user "x" f32[s0, 4])",
                  R"(%x: user "x" f32[s0, 4], %y2: user "y" f32[1])", "1 arguments, the graph 2 inputs"),
      text_change("GraphOtherOutputs", "graph", "return %z", "return %z, %y",
                  "1 results, the graph 2 outputs"),
      value_change("GraphDeep", "graph",
                   "graph(%x: user \"x\" f32[1]) { %y: tensor = aten::cat(" + std::string(100000, '['),
                   "nested deeper"),
      value_change("CallDeep", "call", nested(100000), "nested deeper"),
      value_change("CallIsLeaf", "call", R"({"args":null,"kwargs":null,"result":null})",
                   "args must be a tuple"),
      text_change("CallKindUnknown", "call", R"("kind":"tuple")", R"("kind":"set")", "no kind of nesting"),
      text_change("CallKeysForTuple", "call", R"("kind":"tuple")", R"("kind":"tuple","keys":["a","a"])",
                  "keys for"),
      value_change("RangesTwice", "ranges",
                   R"([{"symbol":"s0","min":1,"max":2},{"symbol":"s0","min":1,"max":2}])", "two ranges"),
      value_change("RangesHuge", "ranges", R"([{"symbol":"s0","min":1,"max":99999999999999999999}])",
                   "halftone.ranges"),
      value_change("GuardNoExpression", "guards", R"([{"condition":"s0 <","text":""}])", "halftone.guards"),
      value_change("SamplesTooMany", "sample_inputs", "[1,2]", "2 sample inputs for 1 inputs"),
      value_change("SamplesOfUnknownKind", "sample_inputs", R"([{"list":[1]}])", "halftone.sample_inputs"),
      value_change("SampleTensorMissing", "sample_inputs", R"([{"tensor":{"name":"a","stored":"gone"}}])",
                   "is not in the file"),
      value_change("ConfigsNoObject", "configs", R"([{"layer":"a","config":1}])", "expected an object"),
      value_change("PackedOfNothing", "packed", R"([{"parts":[],"layout":"x","block":{"name":"fc.bias"}}])",
                   "no parts"),
      value_change("PackedOfMissing", "packed",
                   R"([{"parts":["gone"],"layout":"x","block":{"name":"fc.bias"}}])",
                   "is not one row of bytes"),
      {"GradientOfIntegers",
       [](Metadata& metadata, Tensors& tensors) {
         for (SafetensorsTensor& tensor : tensors) {
           if (tensor.name == "fc.weight") tensor.dtype = DType::kInt32;
         }
         replace(metadata["halftone.graph"], "f32[3, 4] grad", "i32[3, 4]");
       },
       "cannot require gradients"},
  };
}

class BrokenCheckpoint : public CheckpointTest, public ::testing::WithParamInterface<Change> {};

TEST_P(BrokenCheckpoint, IsRefused) {
  save_checkpoint(*small_model(), path("good.ht"));
  const HtFile good = HtFile::open(path("good.ht"), LoadMode::kRead);
  Metadata metadata = good.metadata().values();
  Tensors tensors;
  for (const SafetensorsEntry& entry : good.tensors().entries()) {
    if (!is_filler(entry.name)) tensors.push_back({entry.name, entry.dtype, entry.shape, entry.bytes});
  }
  GetParam().apply(metadata, tensors);
  write_ht(path(), tensors, metadata);
  testing::expect_refused({GetParam().name, "", GetParam().code, GetParam().message}, path(),
                          [&] { load_checkpoint(path()); });
  EXPECT_THAT(verify_checkpoint(path()).findings, Not(IsEmpty()));
}

const auto change_name = [](const ::testing::TestParamInfo<Change>& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Frame, BrokenCheckpoint, ::testing::ValuesIn(frame_changes()), change_name);
INSTANTIATE_TEST_SUITE_P(View, BrokenCheckpoint, ::testing::ValuesIn(view_changes()), change_name);
INSTANTIATE_TEST_SUITE_P(Model, BrokenCheckpoint, ::testing::ValuesIn(model_changes()), change_name);

class CheckpointVersions : public CheckpointTest {
 protected:
  /// The small model's file with one text replaced and the checksum made right again.
  void write_changed(const std::string& from, const std::string& to) {
    save_checkpoint(*small_model(), path());
    std::string text = file_text(path());
    replace(text, from, to);
    write_text(path(), resealed(text));
  }
  /// A file of version 3, whatever that will be.
  void write_version_3(const std::string& needs) {
    save_checkpoint(*small_model(), path());
    std::string text = file_text(path());
    replace(text, R"("halftone.format":"2")", R"("halftone.format":"3")");
    replace(text, R"("halftone.needs":"0.2.0")", needs);
    write_text(path(), resealed(text));
  }
  void expect_unsupported(const std::string& sentence) {
    EXPECT_THAT(message_of(ErrorCode::kUnsupported, [&] { load_checkpoint(path()); }), HasSubstr(sentence));
    const CheckpointInfo info = verify_checkpoint(path());
    EXPECT_THAT(info.findings, ::testing::ElementsAre(HasSubstr(sentence)));
  }
};

TEST_F(CheckpointVersions, ANewerVersionSaysWhichHalftoneItNeeds) {
  write_version_3(R"("halftone.needs":"1.7.0")");
  expect_unsupported("needs Halftone ≥ 1.7.0: .ht version 3, written by \"halftone 0.3.0\"");
  EXPECT_EQ(verify_checkpoint(path()).version, 3);
  write_version_3(R"("halftone.noods":"1.7.0")");
  expect_unsupported("version 3, written by a newer Halftone");
}

TEST_F(CheckpointVersions, Version2MayNeedMoreThanItsFirstHalftone) {
  write_changed(R"("halftone.needs":"0.2.0")", R"("halftone.needs":"0.9.1")");
  expect_unsupported("needs Halftone ≥ 0.9.1: .ht version 2");
}

TEST_F(CheckpointVersions, Version1HasNoKeysOfVersion2) {
  write_changed(R"("halftone.format":"2")", R"("halftone.format":"1")");
  expect_unsupported("version 1 has no metadata \"halftone.needs\"");
}

TEST_F(CheckpointVersions, ADamagedVersionIsDamageNotANewerOne) {
  save_checkpoint(*small_model(), path());
  std::string text = file_text(path());
  replace(text, R"("halftone.format":"2")", R"("halftone.format":"3")");
  write_text(path(), text);
  EXPECT_THAT(message_of(ErrorCode::kCorruptFile, [&] { load_checkpoint(path()); }), HasSubstr("checksum"));
}

TEST_F(CheckpointVersions, NoNumberIsNoVersion) {
  for (const char* bad : {"0", "-", "x", " "}) {
    write_changed(R"("halftone.format":"2")", std::string(R"("halftone.format":")") + bad + "\"");
    EXPECT_THAT(message_of(ErrorCode::kCorruptFile, [&] { load_checkpoint(path()); }),
                HasSubstr("not a version"));
  }
}

TEST_F(CheckpointVersions, TheDigestMustBeTheLastTensor) {
  write_changed("__halftone__.sha256", "__halftone__.sha512");
  EXPECT_THAT(message_of(ErrorCode::kCorruptFile, [&] { load_checkpoint(path()); }),
              HasSubstr("last tensor"));
}

TEST_F(CheckpointVersions, TheTableOfDigestsMustStandBeforeIt) {
  write_changed("__halftone__.digests", "__halftone__.digestz");
  EXPECT_THAT(message_of(ErrorCode::kCorruptFile, [&] { load_checkpoint(path()); }),
              HasSubstr("last tensor but one"));
  write_changed(R"("shape":[2,32])", R"("shape":[1,64])");
  EXPECT_THAT(message_of(ErrorCode::kCorruptFile, [&] { load_checkpoint(path()); }),
              HasSubstr("has the shape [1, 64], not [2, 32]"));
}

TEST_F(CheckpointVersions, FastChecksOnlyTheMetadata) {
  save_checkpoint(*small_model(), path());
  std::string text = file_text(path());
  text[text.size() - 150] ^= 1;  // a weight
  write_text(path(), text);
  EXPECT_THAT(verify_checkpoint(path()).findings, Not(IsEmpty()));
  const CheckpointInfo fast = verify_checkpoint(path(), VerifyDepth::kMetadata);
  EXPECT_THAT(fast.findings, IsEmpty());
  EXPECT_FALSE(fast.bytes_checked);
  load_checkpoint(path(), {.verify = false});
  write_changed("aten::relu", "aten::relv");
  EXPECT_THAT(verify_checkpoint(path(), VerifyDepth::kMetadata).findings, Not(IsEmpty()));
}

TEST_F(CheckpointVersions, VerifyReportsWhatNothingUses) {
  save_checkpoint(*small_model(), path());
  const HtFile good = HtFile::open(path(), LoadMode::kRead);
  Tensors tensors;
  for (const SafetensorsEntry& entry : good.tensors().entries()) {
    if (!is_filler(entry.name)) tensors.push_back({entry.name, entry.dtype, entry.shape, entry.bytes});
  }
  tensors.push_back({"stowaway", tensors[0].dtype, tensors[0].shape, tensors[0].bytes});
  write_ht(path("b.ht"), tensors, good.metadata().values());
  EXPECT_THAT(verify_checkpoint(path("b.ht")).findings,
              ::testing::ElementsAre(HasSubstr("\"stowaway\" belongs to nothing")));
}

}  // namespace
}  // namespace halftone
