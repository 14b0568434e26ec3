#include "graph/operators/op_traits.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "graph/operators/operators.h"

namespace halftone {
namespace {

/// Operators of our own are registered by components above this one; src/compiler tests those.
bool is_atens(const OpTraitsEntry& entry) {
  return entry.target.starts_with("aten::");
}

bool shows_first_operand(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  return !arguments.empty() && arguments[0].alias_info() != nullptr && !arguments[0].alias_info()->isWrite();
}

TEST(OpTraits, EveryOperatorExistsWithThatOverload) {
  for (const OpTraitsEntry& entry : op_traits_table()) {
    EXPECT_TRUE(!is_atens(entry) || try_operator(entry.target) != nullptr) << entry.target;
  }
}

TEST(OpTraits, ViewsAreThoseOfTheSchemas) {
  for (const OpTraitsEntry& entry : op_traits_table()) {
    const c10::OperatorHandle* op = is_atens(entry) ? try_operator(entry.target) : nullptr;
    if (op == nullptr) continue;
    EXPECT_EQ(entry.traits.any_of(OpTrait::kView), shows_first_operand(op->schema())) << op->schema();
  }
}

TEST(OpTraits, EachOperatorStandsOnce) {
  std::set<std::string_view> seen;
  for (const OpTraitsEntry& entry : op_traits_table()) {
    EXPECT_TRUE(seen.insert(entry.target).second) << entry.target;
    EXPECT_NE(entry.traits.bits, 0U) << entry.target;
  }
}

TEST(OpTraits, TraitsThatImplyOthers) {
  for (const OpTraitsEntry& entry : op_traits_table()) {
    const auto implies = [&](OpTraits trait, OpTraits other) {
      EXPECT_TRUE(!entry.traits.any_of(trait) || entry.traits.any_of(other)) << entry.target;
    };
    implies(OpTrait::kReshape, OpTrait::kKeepsOrder);
    implies(OpTrait::kMayCopy, OpTrait::kView);
    // A layout is kept by doing one of these things.
    implies(OpTrait::kChannelsLast,
            OpTrait::kElementwise | OpTrait::kWindow | OpTrait::kConcatenates | OpTrait::kReduces);
    implies(OpTrait::kActivation, OpTrait::kElementwise);
  }
}

TEST(OpTraits, AreAskedByName) {
  EXPECT_TRUE(has_trait("aten::reshape_as", OpTrait::kReshape));
  EXPECT_TRUE(has_trait("aten::cat", OpTrait::kReshape | OpTrait::kConcatenates));
  EXPECT_FALSE(has_trait("aten::cat", OpTrait::kReshape | OpTrait::kPermutation));
  EXPECT_FALSE(has_trait("aten::squeeze.out", OpTrait::kReshape));
  EXPECT_EQ(traits_of("nothing::of_that_name").bits, 0U);
}

}  // namespace
}  // namespace halftone
