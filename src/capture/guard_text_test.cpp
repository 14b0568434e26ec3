// Guards as torch.export wrote them for models with dynamic shapes.
#include "capture/guard_text.h"

#include <gtest/gtest.h>

#include <string>

namespace halftone {
namespace {

std::optional<SymExpr> resolve(std::string_view text) {
  if (text == "L['x'].size()[0]") return SymExpr::symbol("a");
  if (text == "L['x'].size()[1]") return SymExpr::symbol("b");
  if (text == "L['pair'][0].size()[1]") return SymExpr::symbol("c");
  if (text == "L['d']['k k'].size()[0]") return SymExpr(5);
  return std::nullopt;
}

const SymbolBindings kBindings = {{"a", 4}, {"b", 12}, {"c", 13}};

struct Readable {
  const char* text;
  int64_t value;  ///< with a = 4, b = 12, c = 13
};

class GuardReadable : public testing::TestWithParam<Readable> {};

TEST_P(GuardReadable, HasThePythonValue) {
  const auto expression = try_parse_guard(GetParam().text, resolve);
  ASSERT_TRUE(expression) << GetParam().text;
  EXPECT_EQ(expression->evaluate(kBindings), GetParam().value) << GetParam().text;
}

#define A "L['x'].size()[0]"
#define B "L['x'].size()[1]"

INSTANTIATE_TEST_SUITE_P(
    All, GuardReadable,
    testing::Values(
        Readable{B " > 8", 1}, Readable{A " == ((-1) + " B ")", 0},
        Readable{"((6*" B "*" A ") % ((" B "*" A ") // 2)) == 0", 1},
        Readable{"(6*" B "*" A ") == (((" B "*" A ") // 2)*((6*" B "*" A ") // ((" B "*" A ") // 2)))", 1},
        Readable{"max(" B ", " A ") <= ((" B "*" A ") // 2)", 1}, Readable{"min(6, 6*" B ")", 6},
        Readable{B " <= L['pair'][0].size()[1]", 1}, Readable{"L['d']['k k'].size()[0] != 5", 0},
        Readable{"2 < " A " <= 4", 1}, Readable{"2 < " A " < 4", 0}, Readable{"not " A " == 4", 0},
        Readable{A " == 3 or " B " == 12 and " A " == 4", 1}, Readable{A "**2 - 1", 15},
        Readable{"-" A "**2", -16}, Readable{"1 if " A " == 3 else 9", 9}, Readable{"-7 // 2", -4},
        Readable{"-7 % 3", 2}, Readable{"1 - 2 - 3", -4}, Readable{"True", 1}, Readable{"(((" A ")))", 4}));

class GuardUnreadable : public testing::TestWithParam<std::string> {};

TEST_P(GuardUnreadable, IsNothingAndNoError) {
  EXPECT_FALSE(try_parse_guard(GetParam(), resolve)) << GetParam().substr(0, 80);
}

INSTANTIATE_TEST_SUITE_P(All, GuardUnreadable,
                         testing::Values("", "(", A " >", A " > 1.5", A " / 2 == 2", "L['y'].size()[0] > 1",
                                         "L['x", "L['x'].size(1)", "torch.sym_float(" A ") > 1", A " is 4",
                                         A " == 4)", "max()", "max(1", "1e9 < " A,
                                         "99999999999999999999 > " A, "9223372036854775807 * 2", "5 // 0",
                                         "__import__('os').system('true')", std::string(5000, '('),
                                         std::string(5000, '-') + "1", "1" + std::string(40'000, ' ')));

TEST(GuardTextTest, LongChainsOfNotDoNotExhaustTheStack) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "not ";
  EXPECT_FALSE(try_parse_guard(text + "1", resolve));
}

}  // namespace
}  // namespace halftone
