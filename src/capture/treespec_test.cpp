// Specs as torch.utils._pytree.treespec_dumps wrote them.
#include "capture/treespec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/base/error.h"

namespace halftone {
namespace {

using testing::ElementsAre;

#define LEAF R"({"type": null, "context": null, "children_spec": []})"

TreeSpec parse(const std::string& body, const NamedTupleFields& fields = {}) {
  return parse_treespec("[1, " + body + "]", "file: spec", fields);
}

std::string node(const std::string& type, const std::string& context, const std::string& children) {
  return R"({"type": ")" + type + R"(", "context": )" + context + R"(, "children_spec": [)" + children + "]}";
}

TEST(TreespecTest, ReadsBuiltInContainers) {
  const TreeSpec spec = parse(node("builtins.tuple", "\"null\"",
                                   LEAF ", " + node("builtins.list", "\"null\"", LEAF ", " LEAF) + ", " +
                                       node("builtins.dict", R"("[\"b\", \"a\"]")", LEAF ", " LEAF)));
  EXPECT_EQ(spec.kind, TreeSpec::Kind::kTuple);
  EXPECT_EQ(spec.leaf_count(), 5u);
  EXPECT_EQ(spec.children[1].kind, TreeSpec::Kind::kList);
  EXPECT_EQ(spec.children[2].kind, TreeSpec::Kind::kDict);
  EXPECT_THAT(spec.children[2].keys, ElementsAre("b", "a"));  // in the file's order, not sorted
}

TEST(TreespecTest, ReadsCollections) {
  EXPECT_THAT(parse(node("collections.OrderedDict", R"("[\"z\", \"a\"]")", LEAF ", " LEAF)).keys,
              ElementsAre("z", "a"));
  EXPECT_EQ(parse(node("collections.deque", "\"null\"", LEAF)).kind, TreeSpec::Kind::kList);
  const std::string context =
      R"("{\"default_factory_module\": \"builtins\", \"default_factory_name\": \"list\", \"dict_context\": [\"k\"]}")";
  EXPECT_THAT(parse(node("collections.defaultdict", context, LEAF)).keys, ElementsAre("k"));
  EXPECT_THAT(parse(node("builtins.dict", R"("[3, 1]")", LEAF ", " LEAF)).keys, ElementsAre("3", "1"));
}

TEST(TreespecTest, NamedTuplesTakeTheirFieldsFromTheFile) {
  const std::string text = node("collections.namedtuple", "\"my.Out\"", LEAF ", " LEAF);
  const TreeSpec spec = parse(text, {{"my.Out", {"p", "q"}}});
  EXPECT_EQ(spec.kind, TreeSpec::Kind::kTuple);
  EXPECT_THAT(spec.keys, ElementsAre("p", "q"));
  EXPECT_EQ(spec.type_name, "my.Out (named tuple)");
  EXPECT_THROW(parse(text), Error);
  EXPECT_THROW(parse(text, {{"my.Out", {"p"}}}), Error);
}

TEST(TreespecTest, RegisteredTypesBecomeDictsWhereTheirContextGivesTheKeys) {
  const std::string output = "transformers.modeling_outputs.BaseModelOutput";
  const TreeSpec spec = parse(node(output, R"("[\"last_hidden_state\"]")", LEAF));
  EXPECT_EQ(spec.kind, TreeSpec::Kind::kDict);
  EXPECT_THAT(spec.keys, ElementsAre("last_hidden_state"));
  EXPECT_EQ(spec.type_name, output);
  EXPECT_THAT(parse(node("my.Data", R"("[[\"a\", \"b\"], [\"none\"]]")", LEAF ", " LEAF)).keys,
              ElementsAre("a", "b"));
}

struct Refused {
  const char* name;
  std::string text;
  ErrorCode code;
};

class TreespecRefused : public testing::TestWithParam<Refused> {};

TEST_P(TreespecRefused, WithItsPlace) {
  try {
    parse_treespec(GetParam().text, "file: spec", {});
    ADD_FAILURE() << "was read";
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(GetParam().code)) << error.what();
    EXPECT_THAT(error.what(), testing::StartsWith("file: spec"));
  }
}

std::string one(const std::string& body) {
  return "[1, " + body + "]";
}

INSTANTIATE_TEST_SUITE_P(
    All, TreespecRefused,
    testing::Values(
        Refused{"empty", "", ErrorCode::kCorruptFile}, Refused{"no_version", LEAF, ErrorCode::kCorruptFile},
        Refused{"version", "[2, " LEAF "]", ErrorCode::kUnsupported},
        Refused{"no_spec", "[1]", ErrorCode::kCorruptFile},
        Refused{"three", "[1, " LEAF ", 3]", ErrorCode::kCorruptFile},
        Refused{"leaf_with_child", one(R"({"type": null, "context": null, "children_spec": [)" LEAF "]}"),
                ErrorCode::kCorruptFile},
        Refused{"no_children", one(R"({"type": "builtins.tuple", "context": "null"})"),
                ErrorCode::kCorruptFile},
        Refused{"keys_missing", one(node("builtins.dict", R"("[\"a\"]")", LEAF ", " LEAF)),
                ErrorCode::kCorruptFile},
        Refused{"keys_twice", one(node("builtins.dict", R"("[\"a\", \"a\"]")", LEAF ", " LEAF)),
                ErrorCode::kCorruptFile},
        Refused{"keys_floats", one(node("builtins.dict", R"("[1.5]")", LEAF)), ErrorCode::kCorruptFile},
        Refused{"context_garbage", one(node("builtins.dict", R"("[")", LEAF)), ErrorCode::kCorruptFile},
        Refused{"unknown_type", one(node("my.Class", "\"null\"", LEAF)), ErrorCode::kUnsupported},
        Refused{"deep", one(std::string(5000, '[') + std::string(5000, ']')), ErrorCode::kCorruptFile}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(TreespecTest, CallSpecNeedsArgumentsAndKeywords) {
  TreeSpec in = parse(
      node("builtins.tuple", "\"null\"",
           node("builtins.tuple", "\"null\"", LEAF) + ", " + node("builtins.dict", R"("[\"k\"]")", LEAF)));
  const CallSpec call = make_call_spec(in, TreeSpec::leaf(), "file");
  EXPECT_EQ(call.args.leaf_count(), 1u);
  EXPECT_THAT(call.kwargs.keys, ElementsAre("k"));
  EXPECT_THROW(make_call_spec(TreeSpec::leaf(), TreeSpec::leaf(), "file"), Error);
}

}  // namespace
}  // namespace halftone
