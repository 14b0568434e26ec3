// The table of graph/op_traits.h where operators of our own are registered.
#include "graph/operators/op_traits.h"

#include <gtest/gtest.h>

#include "compiler/ops/ops.h"
#include "graph/operators/operators.h"
#include "quant/static_int8/operators.h"

namespace halftone {
namespace {

TEST(OpTraits, OperatorsOfOurOwnExist) {
  register_fused_operators();
  static_int8::register_operators();
  size_t own = 0;
  for (const OpTraitsEntry& entry : op_traits_table()) {
    if (!entry.target.starts_with("halftone::")) continue;
    EXPECT_NE(try_operator(entry.target), nullptr) << entry.target;
    ++own;
  }
  EXPECT_GT(own, 0U);
}

}  // namespace
}  // namespace halftone
