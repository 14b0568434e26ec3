#include "bench/results/csv.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "bench/results/rows_csv.h"
#include "bench/results/test_rows.h"

namespace halftone {
namespace {

using testing::HasSubstr;

std::vector<std::vector<std::string>> cells(std::string_view text) {
  std::vector<std::vector<std::string>> result;
  for (const CsvRecord& record : parse_csv(text, "x.csv").records) {
    for (result.emplace_back(); const CsvCell& cell : record.cells) result.back().push_back(cell.text);
  }
  return result;
}

using Cells = std::vector<std::vector<std::string>>;

TEST(Csv, ReadsRfc4180) {
  EXPECT_EQ(cells("a,b\n1,2\n"), (Cells{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(cells("a,b\r\n\"1\r\n,\",\"\"\"\"\r\n"), (Cells{{"a", "b"}, {"1\r\n,", "\""}}));
  EXPECT_EQ(cells("a,,\n"), (Cells{{"a", "", ""}}));
  EXPECT_EQ(cells("\xEF\xBB\xBF\"a\",b"), (Cells{{"a", "b"}}));
  EXPECT_EQ(cells(""), Cells{});
}

TEST(Csv, SaysHowTheTextEnds) {
  EXPECT_TRUE(parse_csv("a\n", "x").ended);
  EXPECT_FALSE(parse_csv("a\nb", "x").ended);
  EXPECT_FALSE(parse_csv("a\nb\r", "x").ended);
  EXPECT_TRUE(parse_csv("a\n\"b\n", "x").open_quote);
  EXPECT_FALSE(parse_csv("a\n\"b\"", "x").open_quote);
  EXPECT_EQ(parse_csv("a\n\"x\ny\"\nb", "x").records.at(2).line, 4U);
  EXPECT_EQ(parse_csv("ab\ncd\n", "x").records.at(1).begin, 3U);
}

TEST(Csv, RefusesWithLine) {
  EXPECT_THAT(error_of([] { parse_csv("a\nb\"c\n", "x.csv"); }), HasSubstr("x.csv: line 2: a quote inside"));
  EXPECT_THAT(error_of([] { parse_csv("a\n\"b\nc\"d\n", "x.csv"); }),
              HasSubstr("line 3: text after a closing quote"));
  EXPECT_THAT(error_of([] { parse_csv("a\rb\n", "x.csv"); }), HasSubstr("lone carriage return"));
}

TEST(Csv, GuardIsTakenOffAgain) {
  for (const std::string text :
       {"=1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "'", "'x", "''=1", "'=1", " =1", "x", "", "x=1",
        "\xEF\xBC\x9D"
        "1"}) {
    EXPECT_EQ(csv_unguarded(csv_guarded(text)), text);
  }
  EXPECT_EQ(csv_guarded("=cmd()"), "'=cmd()");
  EXPECT_EQ(csv_guarded("encoder"), "encoder");
  // What another program wrote is not touched without need.
  EXPECT_EQ(csv_unguarded("'encoder"), "'encoder");
}

TEST(BenchCsv, NumbersComeBackExactly) {
  std::vector<BenchRow> rows = {full_row(), full_row("empty")};
  rows[0].speedup = 0.1 + 0.2;
  rows[0].abs_latency = 5e-324;
  rows[0].eager_peak_mem = std::numeric_limits<double>::infinity();
  rows[0].bytes = std::numeric_limits<int64_t>::max();
  rows[1].speedup = rows[1].abs_latency = rows[1].cosine = std::nullopt;
  rows[1].bytes = rows[1].unsupported_ops = std::nullopt;
  EXPECT_EQ(bench_rows_from_csv(to_csv(rows), "x.csv").rows, rows);
  rows[0].cosine = std::nan("");
  EXPECT_TRUE(std::isnan(*bench_rows_from_csv(to_csv(rows), "x.csv").rows[0].cosine));
}

TEST(BenchCsv, HasTheColumnsOfDynamoFirst) {
  EXPECT_THAT(csv_header(),
              testing::StartsWith(
                  "dev,name,batch_size,accuracy,speedup,abs_latency,compilation_latency,compression_ratio,"
                  "eager_peak_mem,halftone_peak_mem,"));
}

TEST(BenchCsv, TakesAnyOrderAndSubset) {
  const BenchCsv csv = bench_rows_from_csv("speedup,name\r\n1.5,a\r\n,\"b,c\"", "x.csv");
  ASSERT_EQ(csv.rows.size(), 2U);
  EXPECT_EQ(csv.rows[0].speedup, 1.5);
  EXPECT_EQ(csv.rows[1].name, "b,c");
  EXPECT_FALSE(csv.rows[1].speedup);
  EXPECT_TRUE(csv.notes.empty());
}

TEST(BenchCsv, RefusesWhatItDoesNotKnow) {
  const auto message = [](std::string_view text) {
    return error_of([&] { bench_rows_from_csv(text, "x.csv"); });
  };
  EXPECT_THAT(message("name,speedpu\n"),
              HasSubstr("x.csv: line 1: unknown column \"speedpu\" (did you mean \"speedup\"?)"));
  EXPECT_THAT(message("name,name\n"), HasSubstr("column \"name\" twice"));
  EXPECT_THAT(message("dev\ncpu\n"), HasSubstr("column \"name\" is missing"));
  EXPECT_THAT(message(""), HasSubstr("x.csv: empty"));
  EXPECT_THAT(message("name,speedup\na,1\nb,fast\n"), HasSubstr("line 3: speedup: \"fast\" is not a number"));
  EXPECT_THAT(message("name,speedup\na,-1\n"), HasSubstr("line 2: speedup: -1 is less than 0"));
  EXPECT_THAT(message("name,batch_size\na,1.5\n"), HasSubstr("batch_size: \"1.5\" is not an integer"));
  EXPECT_THAT(message("name,accuracy\na,passs\n"),
              HasSubstr("accuracy: unknown word \"passs\" (did you mean \"pass\"?)"));
  EXPECT_THAT(message("name,cosine\na,1.5\n"), HasSubstr("cosine: 1.5 is more than"));
  EXPECT_THAT(message("name\n\"\"\n"), HasSubstr("name: is empty"));
  EXPECT_THAT(message("name,dev\na\nb,c\n"), HasSubstr("line 2: 1 cells, the header has 2"));
}

TEST(BenchCsv, RefusesToWriteWhatCannotBeRead) {
  BenchRow row = full_row();
  row.accuracy = "good";
  EXPECT_THAT(error_of([&] {
                to_csv({&row, 1});
              }),
              HasSubstr("result of \"encoder\": accuracy: unknown word \"good\""));
  row = full_row();
  row.speedup = -2;
  EXPECT_THAT(error_of([&] { to_json({"", {}, {row}}); }), HasSubstr("speedup: -2 is less than 0"));
}

}  // namespace
}  // namespace halftone
