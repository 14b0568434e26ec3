#include "halftone/graph/tree.h"

#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"

namespace halftone {
namespace {

using Kind = TreeSpec::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TreeSpec kLeaf;
const TreeSpec kNested = {
    Kind::kTuple,
    "",
    {},
    {{Kind::kDict, "", {"a", "b"}, {kLeaf, {Kind::kList, "", {}, {kLeaf, kLeaf}}}}, kLeaf}};

TEST(TreeSpec, NamesEachLeafAsPythonWould) {
  EXPECT_THAT(kNested.leaf_paths(), ElementsAre("[0]['a']", "[0]['b'][0]", "[0]['b'][1]", "[1]"));
  EXPECT_THAT(kLeaf.leaf_paths(), ElementsAre(""));
  EXPECT_EQ(kNested.leaf_count(), 4u);
}

TEST(TreeSpec, KeysAreWrittenAsPythonWritesThem) {
  TreeSpec dict = {Kind::kDict, "", {"it's", "b"}, {kLeaf, kLeaf}};
  EXPECT_THAT(dict.leaf_paths(), ElementsAre("[\"it's\"]", "['b']"));
  dict = {Kind::kDict, "", {"3"}, {kLeaf}, {"[3]"}};
  EXPECT_THAT(dict.leaf_paths(), ElementsAre("[3]"));
  const TreeSpec named = {Kind::kTuple, "", {"left"}, {kLeaf}, {".left"}};
  EXPECT_THAT(named.leaf_paths(), ElementsAre(".left"));
}

TEST(TreeSpec, FlattensWhatItUnflattens) {
  const std::vector<c10::IValue> leaves = {1, 2.5, true, c10::IValue()};
  const auto back = flatten(kNested, unflatten(kNested, leaves), "result");
  ASSERT_EQ(back.size(), 4u);
  EXPECT_EQ(back[0].toInt(), 1);
  EXPECT_EQ(back[1].toDouble(), 2.5);
  EXPECT_TRUE(back[2].toBool());
  EXPECT_TRUE(back[3].isNone());
}

TEST(TreeSpec, ArgumentsAreOneTuple) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  dict.insert("a", c10::IValue(1));
  dict.insert("b", c10::ivalue::Tuple::create({c10::IValue(2.5), c10::IValue()}));
  const std::vector<c10::IValue> args = {dict, true};
  const FlatArgs flat = flatten_args(args);
  EXPECT_THAT(flat.spec.leaf_paths(), ElementsAre("[0]['a']", "[0]['b'][0]", "[0]['b'][1]", "[1]"));
  ASSERT_EQ(flat.leaves.size(), 4u);
  EXPECT_EQ(flat.leaves[1].toDouble(), 2.5);
  std::vector<c10::IValue> leaves;
  EXPECT_EQ(tree_of(c10::ivalue::Tuple::create(args), leaves), flat.spec);
  EXPECT_EQ(flatten(flat.spec, unflatten(flat.spec, flat.leaves), "arguments").size(), 4u);
  c10::impl::GenericDict numbered(c10::IntType::get(), c10::AnyType::get());
  numbered.insert(3, c10::IValue(1));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { flatten_args({numbered}); }),
              HasSubstr("keys that are no strings"));
}

TEST(TreeSpec, ListsStayListsOfTheirElements) {
  const auto list_of = [](std::vector<c10::IValue> items) {
    const TreeSpec spec = {Kind::kList, "", {}, std::vector<TreeSpec>(items.size())};
    return unflatten(spec, items);
  };
  EXPECT_TRUE(list_of({at::Tensor(), at::Tensor()}).isTensorList());
  EXPECT_TRUE(list_of({}).isTensorList());
  EXPECT_TRUE(list_of({1, 2}).isIntList());
  EXPECT_TRUE(list_of({1.5}).isDoubleList());
  EXPECT_TRUE(list_of({true}).isBoolList());
  EXPECT_EQ(list_of({1, 2.5}).toListRef().size(), 2u);
  const TreeSpec list = {Kind::kList, "", {}, {kLeaf}};
  const c10::IValue nested = unflatten({Kind::kList, "", {}, {list, list}}, {at::Tensor(), at::Tensor()});
  EXPECT_EQ(nested.to<std::vector<std::vector<at::Tensor>>>().size(), 2u);
}

TEST(TreeSpec, RefusesAnotherNestingWithItsPlace) {
  const auto pair = c10::ivalue::Tuple::create({c10::IValue(1), c10::IValue(2)});
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { flatten(kNested, pair, "arguments"); }),
              HasSubstr("arguments[0]: expected a dict with keys a, b"));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { unflatten(kNested, {1}); }),
              HasSubstr("4 leaves"));
}

}  // namespace
}  // namespace halftone
