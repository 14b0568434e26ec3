// register_backend(), lookup_backend() and list_backends() are dynamo's names for the registry of compilers.
#include <gtest/gtest.h>

#include <algorithm>

#include "halftone/compile/compilers.h"

namespace halftone {
namespace {

TEST(DynamoNames, AreAliases) {
  register_backend({"dynamo_names_test", {"experimental"}, "of this test"},
                   [](const std::shared_ptr<GraphModule>&, const std::vector<c10::IValue>&,
                      const CompilerOptions&) -> CompiledFunction {
                     return [](std::vector<c10::IValue> inputs) { return inputs; };
                   });
  EXPECT_EQ(lookup_compiler("dynamo_names_test")(nullptr, {}, {})({c10::IValue(3)}).at(0).toInt(), 3);
  EXPECT_EQ(lookup_backend("dynamo_names_test")(nullptr, {}, {})({c10::IValue(4)}).at(0).toInt(), 4);
  const auto has_it = [](const std::vector<CompilerInfo>& all) {
    return std::any_of(all.begin(), all.end(),
                       [](const CompilerInfo& info) { return info.name == "dynamo_names_test"; });
  };
  EXPECT_TRUE(has_it(list_backends({})));
  EXPECT_FALSE(has_it(list_backends()));
}

}  // namespace
}  // namespace halftone
