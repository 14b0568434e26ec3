// Pickles that must be refused, each with its reason. All stand in a well-formed container with two storages.
#include <gtest/gtest.h>

#include "archive/broken_case.h"
#include "archive/bytes/file_bytes.h"
#include "archive/pickle/pickle.h"
#include "archive/test_files.h"

namespace halftone::testing {
namespace {

constexpr ErrorCode kCorrupt = ErrorCode::kCorruptFile;
constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;

std::string repeat(std::string_view part, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += part;
  return text;
}

/// PROTO, the given opcodes, STOP.
std::string program(const std::string& body) {
  return op::proto() + body + ".";
}

std::string floats() {
  return op::storage("FloatStorage", "0", 4);
}

std::string tensor(int32_t offset, const std::string& sizes, const std::string& strides) {
  return program(op::tensor(floats(), offset, sizes, strides));
}

std::string good() {
  return tensor(0, op::int_tuple({2, 2}), op::int_tuple({2, 1}));
}

std::string with_persistent_id(const std::string& id) {
  return program(op::tensor(id + "Q", 0, op::int_tuple({1}), op::int_tuple({1})));
}

std::vector<BrokenCase> stream_cases() {
  std::vector<BrokenCase> cases = {
      {"Empty", "", kCorrupt, "byte 0: the pickle is cut off"},
      {"NoProtocol", "N.", kCorrupt, "no protocol opcode"},
      {"ProtocolFour", "\x80\x04N.", kUnsupported, "pickle protocol 4"},
      {"NoStop", op::proto() + "N", kCorrupt, "byte 3: the pickle is cut off"},
      {"TrailingBytes", program("N") + "N", kCorrupt, "1 trailing bytes"},
      {"NothingLeft", program(""), kCorrupt, "0 objects"},
      {"TwoLeft", program("NN"), kCorrupt, "2 objects"},
      {"MarkLeft", program("N("), kCorrupt, "1 marks"},
      {"UnknownOpcode", program("\xff"), kCorrupt, "byte 2: opcode 0xff"},
      {"TextProtocolOpcode", program("I01\n"), kCorrupt, "opcode 0x49"},
      {"StackGlobalOpcode", program(op::text("os") + op::text("system") + "\x93"), kCorrupt, "opcode 0x93"},
      {"InstOpcode", program("(ios\nsystem\n"), kCorrupt, "opcode 0x69"},
      {"ObjOpcode", program("(Nos\n"), kCorrupt, "opcode 0x6f"},
      {"ExtensionOpcode", program("\x82\x01"), kCorrupt, "opcode 0x82"},
      {"IntCut", op::proto() + "J\x01\x02", kCorrupt, "cut off"},
      {"FloatCut", op::proto() + "G\x01\x02", kCorrupt, "cut off"},
      {"TextCut", op::proto() + "X" + le<uint32_t>(100) + "short", kCorrupt, "cut off"},
      {"TextLengthHuge", op::proto() + "X" + le<uint32_t>(0xFFFFFFFF), kCorrupt, "cut off"},
      {"TextNotUtf8", program(op::text("\xed\xa0\x80")), kCorrupt, "not UTF-8"},
      {"LongHuge", op::proto() + "\x8b" + le<uint32_t>(0x7FFFFFFF), kCorrupt, "cut off"},
      {"LongNegativeLength", op::proto() + "\x8b" + le<uint32_t>(0x80000000), kCorrupt,
       "an integer of -2147483648 bytes"},
      {"LongNineBytes", program("\x8a\x09" + std::string(9, '\x01')), kUnsupported, "more than 64 bits"},
      {"GlobalCut", op::proto() + "cos\nsystem", kCorrupt, "cut off"},
      {"GlobalLong", program(op::global(repeat("a", 10'000), "b")), kCorrupt, "10000 bytes"},
      {"UnderflowTuple", program("N\x86"), kCorrupt, "stack is empty"},
      {"UnderflowReduce", program(")R"), kCorrupt, "stack is empty"},
      {"UnderflowBelowMark", program("]N(a"), kCorrupt, "stack is empty"},
      {"UnderflowPut", program("q\x01"), kCorrupt, "stack is empty"},
      {"TupleWithoutMark", program("Nt"), kCorrupt, "no mark"},
      {"AppendsWithoutMark", program("]Ne"), kCorrupt, "no mark"},
      {"MemoUnwritten", program("h\x07"), kCorrupt, "memo 7 is read before"},
      {"LongMemoUnwritten", program("j" + le<uint32_t>(0xFFFFFFFF)), kCorrupt, "memo 4294967295"},
      {"AppendToTuple", program(")Na"), kCorrupt, "appended to a tuple"},
      {"AppendToDict", program("}Na"), kCorrupt, "appended to a dict"},
      {"SetItemInList", program("]NNs"), kCorrupt, "keys are set in a list"},
      {"OddItems", program("}(NNNu"), kCorrupt, "a key without a value"},
      {"DuplicateKey", program("}(" + op::text("k") + "N" + op::text("k") + "Nu"), kCorrupt,
       "is there twice"},
      {"DuplicateIntKey", program("}(K\x01NK\x01Nu"), kCorrupt, "key \"1\" is there twice"},
      {"ListAsKey", program("}]Ns"), kCorrupt, "a list is the key"},
      {"BuildOnTuple", program(")}b"), kCorrupt, "a tuple gets attributes"},
      {"BuildFromList", program("}]b"), kCorrupt, "gets attributes from a list"},
  };
  for (const size_t length :
       {size_t{1}, size_t{3}, size_t{20}, size_t{60}, good().size() / 2, good().size() - 1}) {
    cases.push_back({"CutAt" + std::to_string(length), good().substr(0, length), kCorrupt, "cut off"});
  }
  return cases;
}

std::vector<BrokenCase> shape_cases() {
  // A list with itself inside; a tuple in a list in the tuple; 2^200 visits from 200 opcodes; a gigabyte from
  // a memo.
  const std::string doubled = "]" + repeat("q\x01h\x01\x86", 60);
  return {
      {"ListInItself",
       program("]q\x01h\x01"
               "a"),
       kCorrupt, "contains itself"},
      {"DictInItself", program("}q\x01Nh\x01s"), kCorrupt, "contains itself"},
      {"KnotOfTwo",
       program("]q\x01]q\x02h\x01"
               "aa"),
       kCorrupt, "contains itself"},
      {"TupleKnot",
       program("]q\x01\x85q\x02h\x01h\x02"
               "a\x86"),
       kCorrupt, "contains itself"},
      {"DeepTuples", program("N" + repeat("\x85", 100'000)), kCorrupt, "nested deeper than 100"},
      {"DeepMarks", program(repeat("(", 100'000)), kCorrupt, "marks"},
      {"DeepByMemo",
       program("]" + repeat("\x85q\x01]h\x01"
                            "a",
                            80)),
       kCorrupt, "objects"},
      {"BillionLaughs", program(doubled), kCorrupt, "expands to more than"},
      {"RepeatedText", program("](" + op::text(repeat("x", 1 << 20)) + "q\x01" + repeat("h\x01", 1000) + "e"),
       kCorrupt, "expands to more than"},
      {"ManyObjects", program("](" + repeat(")", 10'000'000) + "e"), kCorrupt, "more than 256 MiB"},
  };
}

std::vector<BrokenCase> call_cases() {
  const std::string one_item = op::int_tuple({1});
  return {
      {"OsSystem", program(op::global("os", "system") + "(" + op::text("echo") + "tR"), kUnsupported,
       "\"os\" \"system\" is not allowed"},
      {"BuiltinEval", program(op::global("__builtin__", "eval")), kUnsupported, "\"__builtin__\" \"eval\""},
      {"TorchLoad", program(op::global("torch", "load")), kUnsupported, "\"torch\" \"load\""},
      {"DottedGlobal", program(op::global("torch", "_utils._rebuild_tensor_v2")), kUnsupported,
       "not allowed"},
      {"ControlBytesInGlobal", program(op::global("o\x1bs", "x")), kUnsupported, "\"o\\x1bs\""},
      {"ReduceOnTuple", program("))R"), kCorrupt, "a tuple is called like a function"},
      {"ReduceOnDtype", program(op::global("torch", "float32") + ")R"), kCorrupt, "torch.float32 is called"},
      {"ReduceOnStorageClass", program(op::global("torch", "FloatStorage") + ")R"), kCorrupt,
       "FloatStorage is called"},
      {"ReduceWithList", program(op::global("torch", "Size") + "]R"), kCorrupt,
       "arguments of a call: expected a tuple"},
      {"OrderedDictArguments", program(op::global("collections", "OrderedDict") + "]\x85R"), kCorrupt,
       "called with 1 arguments"},
      {"SizeOfText", program(op::global("torch", "Size") + op::text("a") + "\x85\x85R"), kCorrupt,
       "torch.Size: expected an int"},
      {"DeviceOfNone", program(op::global("torch", "device") + "N\x85R"), kCorrupt, "type of a device"},
      {"DeviceNegative", program(op::global("torch", "device") + op::text("cpu") + op::integer(-1) + "\x86R"),
       kCorrupt, "index of a device is negative"},
      {"ParameterOfNone", program(op::global("torch._utils", "_rebuild_parameter") + "NNN\x87R"), kCorrupt,
       "data of a parameter"},
      {"FunctionAsValue", program(op::global("torch._utils", "_rebuild_parameter")), kUnsupported,
       "stands where a value must"},
      {"StorageAsValue", program(floats()), kUnsupported, "a storage stands where a value must"},
      {"TensorNoArguments", program(op::global("torch._utils", "_rebuild_tensor_v2") + ")R"), kCorrupt,
       "called with 0 arguments"},
      {"TensorOfNone", program(op::tensor("N", 0, one_item, one_item)), kCorrupt,
       "expected a storage, found None"},
      {"TensorWithoutFlag",
       program(op::global("torch._utils", "_rebuild_tensor_v2") + "(" + floats() + "K\x01" + one_item +
               one_item + "NNtR"),
       kCorrupt, "requires_grad"},
      {"TensorWithMetadata",
       program(op::global("torch._utils", "_rebuild_tensor_v2") + "(" + floats() + "K\x01" + one_item +
               one_item + "\x89N}" + op::text("conj") + "\x88stR"),
       kUnsupported, "conjugate"},
      {"V3WithoutDtype",
       program(op::global("torch._utils", "_rebuild_tensor_v3") + "(" + floats() + "K\x01" + one_item +
               one_item + "\x89NNtR"),
       kCorrupt, "dtype of a tensor"},
  };
}

std::vector<BrokenCase> tensor_cases() {
  const std::string big = op::int_tuple({0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF});
  const std::string zeros = op::int_tuple({0, 0, 0});
  const std::string id_head = "(" + op::text("storage") + op::global("torch", "FloatStorage");
  return {
      {"NegativeSize", tensor(0, op::int_tuple({-1}), op::int_tuple({1})), kCorrupt,
       "sizes of a tensor is negative: -1"},
      {"NegativeStride", tensor(3, op::int_tuple({2}), op::int_tuple({-1})), kCorrupt,
       "strides of a tensor is negative"},
      {"NegativeOffset", tensor(-1, op::int_tuple({2}), op::int_tuple({1})), kCorrupt,
       "storage offset of a tensor is negative"},
      {"SizeIsText", tensor(0, op::text("2") + "\x85", op::int_tuple({1})), kCorrupt,
       "expected an int, found a string"},
      {"SizeIsBool", tensor(0, "\x88\x85", op::int_tuple({1})), kCorrupt, "expected an int, found a bool"},
      {"SizesAreList", tensor(0, "]", "]"), kCorrupt, "expected a tuple, found a list"},
      {"RankMismatch", tensor(0, op::int_tuple({2, 2}), op::int_tuple({1})), kCorrupt,
       "2 sizes and 1 strides"},
      {"RankMillion", tensor(0, "(" + repeat("K\x01", 1'000'000) + "t", op::int_tuple({1})), kCorrupt,
       "rank 1000000"},
      {"PastStorage", tensor(0, op::int_tuple({5}), op::int_tuple({1})), kCorrupt,
       "reaches element 4 of a storage of 4"},
      {"StridePastStorage", tensor(0, op::int_tuple({2}), op::int_tuple({4})), kCorrupt, "reaches element 4"},
      {"OffsetPastStorage", tensor(4, op::int_tuple({1}), op::int_tuple({1})), kCorrupt, "reaches element 4"},
      {"EmptyOffsetPastStorage", tensor(5, op::int_tuple({0}), op::int_tuple({1})), kCorrupt,
       "starts at element 5"},
      {"ScalarPastStorage", tensor(4, ")", ")"), kCorrupt, "reaches element 4"},
      {"ReachOverflows", tensor(0, big, big), kCorrupt, "overflow"},
      {"CountOverflowsByExpanding", tensor(0, big, zeros), kCorrupt, "overflow"},
      {"PersIdOfText", with_persistent_id(op::text("0")), kCorrupt, "expected a tuple of five"},
      {"PersIdOfFour", with_persistent_id("(NNNNt"), kCorrupt, "expected a tuple of five"},
      {"PersIdOtherTag", with_persistent_id("(" + op::text("module") + "NNNNt"), kCorrupt,
       "does not start with \"storage\""},
      {"PersIdOtherClass",
       with_persistent_id("(" + op::text("storage") + op::global("torch", "Size") + "NNNt"), kCorrupt,
       "expected a storage class"},
      {"PersIdKeyNumber", with_persistent_id(id_head + "K\x01NK\x01t"), kCorrupt, "key of a persistent id"},
      {"PersIdLocationNone", with_persistent_id(id_head + op::text("0") + "NK\x04t"), kCorrupt,
       "location of a persistent id"},
      {"PersIdNegativeCount", program(op::storage("FloatStorage", "0", -4)), kCorrupt,
       "element count of a storage is negative"},
      {"StorageMissing", program(op::storage("FloatStorage", "9", 4)), kCorrupt,
       "storage \"9\" has no member"},
      {"StorageOutsideData", program(op::storage("FloatStorage", "../data.pkl", 4)), kCorrupt,
       "has no member"},
      {"StorageTooShort", program(op::storage("FloatStorage", "0", 5)), kCorrupt,
       "5 elements of FloatStorage do not match its 16 bytes"},
      {"StorageWrongType", program(op::storage("DoubleStorage", "0", 4)), kCorrupt,
       "do not match its 16 bytes"},
      {"StorageQuantized", program(op::storage("QInt8Storage", "0", 16)), kUnsupported,
       "\"QInt8Storage\" is not allowed"},
  };
}

class BrokenPickle : public ::testing::TestWithParam<BrokenCase> {};

void read_container(const std::string& bytes) {
  const auto file = FileBytes::from_memory(std::as_bytes(std::span(bytes)), "broken.pt");
  read_torch_pickle(ZipReader(file->bytes(), file->name()));
}

TEST_P(BrokenPickle, IsRefused) {
  expect_refused(GetParam(), "broken.pt: archive/data.pkl", [] {
    read_container(make_torch_container(GetParam().bytes, {std::string(16, 's'), std::string(3, 't')}));
  });
}

INSTANTIATE_TEST_SUITE_P(Stream, BrokenPickle, ::testing::ValuesIn(stream_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Shape, BrokenPickle, ::testing::ValuesIn(shape_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Call, BrokenPickle, ::testing::ValuesIn(call_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Tensor, BrokenPickle, ::testing::ValuesIn(tensor_cases()), case_name);

std::vector<BrokenCase> container_cases() {
  const std::string none = program("N");
  return {
      {"NoPickle", make_zip({{.name = "archive/data/0"}}), kCorrupt, "no member <root>/data.pkl"},
      {"PickleAtTop", make_zip({{.name = "data.pkl", .data = none}}), kCorrupt, "no member <root>/data.pkl"},
      {"TwoPickles", make_zip({{.name = "a/data.pkl", .data = none}, {.name = "b/data.pkl", .data = none}}),
       kCorrupt, "two pickles"},
      {"BadChecksum", make_zip({{.name = "a/data.pkl", .data = none, .crc_xor = 1}}), kCorrupt, "checksum"},
      {"BigEndian", make_torch_container(none, {}, "big"), kUnsupported, "big-endian"},
      {"UnknownEndian", make_torch_container(none, {}, "middle"), kCorrupt, "unknown byte order"},
  };
}

class BrokenContainer : public ::testing::TestWithParam<BrokenCase> {};

TEST_P(BrokenContainer, IsRefused) {
  expect_refused(GetParam(), "broken.pt: ", [] { read_container(GetParam().bytes); });
}

INSTANTIATE_TEST_SUITE_P(Torch, BrokenContainer, ::testing::ValuesIn(container_cases()), case_name);

TEST(ReadTorchPickle, TheBaseOfTheBrokenCasesIsGood) {
  const std::string bytes = make_torch_container(good(), {std::string(16, 's')});
  const auto file = FileBytes::from_memory(std::as_bytes(std::span(bytes)), "good.pt");
  const PickleValue value = read_torch_pickle(ZipReader(file->bytes(), file->name()));
  const auto* tensor = std::get_if<PickledTensor>(&value.data);
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->sizes, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(tensor->storage.size(), 16U);
}

}  // namespace
}  // namespace halftone::testing
