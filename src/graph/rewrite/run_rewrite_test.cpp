#include "graph/rewrite/run_rewrite.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "graph/test_support.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kTwo = R"(
graph(%x: user "x" f32[2]) {
  %a: f32[2] = aten::relu(%x)
  %b: f32[2] = aten::neg(%a)
  return %b
})";

TEST(RunRewrite, ErasesWhatAChangeLeftBehind) {
  const auto graph = parse_graph(kTwo);
  EXPECT_TRUE(run_rewrite(*graph, "shortcut", [&] {
    graph->replace_all_uses(graph->value("b"), graph->value("x"));
    return true;
  }));
  EXPECT_TRUE(graph->nodes().empty());
}

TEST(RunRewrite, LeavesAGraphAloneThatDidNotChange) {
  const auto graph = parse_graph("graph(%x: user \"x\" f32[2]) { %dead: f32[2] = aten::relu(%x) return %x }");
  EXPECT_FALSE(run_rewrite(*graph, "nothing", [] { return false; }));
  EXPECT_EQ(graph->nodes().size(), 1U);
}

TEST(RunRewrite, NamesThePassThatFailed) {
  const auto graph = parse_graph(kTwo);
  const auto broken = [&] {
    graph->move_before(graph->value("b")->producer(), graph->value("a")->producer());
    return true;
  };
  EXPECT_THAT(message_of(ErrorCode::kInternal, [&] { run_rewrite(*graph, "swap", broken); }),
              HasSubstr("the pass swap broke the graph: "));
  const auto refused = []() -> bool { TORCH_CHECK(false, "too large"); };
  EXPECT_EQ(message_of(ErrorCode::kInvalidArgument, [&] { run_rewrite(*graph, "fold", refused); }),
            "the pass fold cannot take this graph: too large");
  const auto own = []() -> bool { fail(ErrorCode::kUnsupported, "no"); };
  EXPECT_EQ(message_of(ErrorCode::kUnsupported, [&] { run_rewrite(*graph, "fold", own); }), "no");
}

}  // namespace
}  // namespace halftone
