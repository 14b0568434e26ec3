#include "halftone/cli/table.h"

#include <gmock/gmock.h>

#include <sstream>

namespace halftone {
namespace {

using testing::HasSubstr;

TEST(RenderTable, AlignsAndDrawsARule) {
  const std::string table =
      render_table({{"name"}, {"count", Align::kRight}}, {{"a", "1"}, {"bcdef", "1,000"}}, 100);
  EXPECT_EQ(table,
            "name   count\n"
            "-----  -----\n"
            "a          1\n"
            "bcdef  1,000\n");
}

TEST(RenderTable, CutsTheColumnFurthestAboveWhatItKeeps) {
  const std::string table =
      render_table({{"a", Align::kLeft, Cut::kMiddle, 20}, {"b", Align::kLeft, Cut::kMiddle, 8}, {"c"}},
                   {{std::string(20, 'a'), std::string(40, 'b'), std::string(20, 'c')}}, 60);
  EXPECT_THAT(table, HasSubstr(std::string(20, 'a') + "  "));
  EXPECT_THAT(table, HasSubstr("bbbbbbb…bbbbbbbb  "));
  EXPECT_THAT(table, HasSubstr(std::string(20, 'c') + "\n"));
}

TEST(RenderTable, PageWidthIsStrongerThanTheCallers) {
  const std::string name(150, 'a');
  set_page_width(kWholeTables);
  EXPECT_THAT(render_table({{"a", Align::kLeft, Cut::kMiddle, 8}}, {{name}}, 100), HasSubstr(name));
  EXPECT_THAT(wrap_text(std::string(60, 'b') + " " + std::string(60, 'c'), 100), HasSubstr("\n  c"));
  set_page_width(40);
  EXPECT_THAT(render_table({{"a", Align::kLeft, Cut::kMiddle, 8}}, {{name}}, 100),
              HasSubstr("\n" + std::string(40, '-') + "\n"));
  set_page_width(0);
  EXPECT_THAT(render_table({{"a", Align::kLeft, Cut::kMiddle, 8}}, {{name}}, 100),
              HasSubstr("\n" + std::string(100, '-') + "\n"));
}

TEST(RenderTable, CutsBelowWhatColumnsKeepWhereItMust) {
  const std::string table =
      render_table({{"a", Align::kLeft, Cut::kMiddle, 30}, {"b", Align::kLeft, Cut::kMiddle, 30}},
                   {{std::string(40, 'a'), std::string(40, 'b')}}, 42);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 42u + 4) << line;  // "…" has 3 bytes
  EXPECT_THAT(table, HasSubstr("…"));
}

TEST(RenderTable, CountsCodePointsNotBytes) {
  EXPECT_EQ(render_table({{"x"}, {"y"}}, {{"×3", "a"}, {"ab", "b"}}, 100), "x   y\n--  -\n×3  a\nab  b\n");
}

TEST(Shorten, KeepsBothEnds) {
  EXPECT_EQ(shorten("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shorten("abcdefghij", 5), "ab…ij");
  EXPECT_EQ(shorten("äöüäöüäöü", 5), "äö…öü");
  EXPECT_EQ(shorten("abc", 1), "…");
  EXPECT_EQ(shorten("abc", 0), "");
}

TEST(ShortenName, MakesInitialsOfLeadingPartsOnly) {
  const std::string name = "encoder.layer.10.attention.output.dense";
  EXPECT_EQ(shorten_name(name, 39), name);
  EXPECT_EQ(shorten_name(name, 38), "e.layer.10.attention.output.dense");
  EXPECT_EQ(shorten_name(name, 25), "e.l.10.a.output.dense");
  EXPECT_EQ(shorten_name(name, 16), "e.l.10.a.o.dense");
}

TEST(ShortenName, CutsWhereInitialsAreNotEnough) {
  EXPECT_EQ(shorten_name("a.a_very_long_last_part", 9), "a.a_…part");
  EXPECT_EQ(shorten_name("no_dots_at_all", 7), "no_…all");
}

TEST(Wrap, BreaksAtSpacesAndIndents) {
  EXPECT_EQ(wrap_text("one two three four", 11), "- one two\n  three\n  four\n");
  EXPECT_EQ(wrap_text("short", 100), "- short\n");
  EXPECT_EQ(wrap_text("awordthatisfartoolong yes", 10), "- awordthatisfartoolong\n  yes\n");
}

}  // namespace
}  // namespace halftone
