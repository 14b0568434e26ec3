// Names that are markup, formulas, control codes or broken text, through every output of the component.
#include <gmock/gmock.h>

#include <algorithm>

#include "archive/bytes/text.h"
#include "archive/test_payloads.h"
#include "bench/results/rows_csv.h"
#include "bench/results/test_rows.h"
#include "bench/results/text.h"

namespace halftone {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The payload wherever a text can stand, but for the accuracy, which has its words.
BenchRow row_of(const std::string& text) {
  BenchRow row = full_row(text);
  row.dev = row.mode = row.scheme = row.backend = row.error = text;
  row.layers = {{text, text, text, 0.5, 1.25, 1e-3, text}};
  row.plan = {{text, text, text, {{text, 1.25, 1e-3, text}}}};
  return row;
}

BenchResults results_of(const std::vector<Payload>& payloads) {
  BenchResults results;
  for (const Payload& payload : payloads) results.rows.push_back(row_of(payload.text));
  results.title = payloads.front().text;
  results.machine = {payloads.front().text, "avx2",       2,
                     payloads.front().text, "2026-01-01", {{payloads.front().text, payloads.front().text}}};
  return results;
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at) ++found;
  return found;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

class Payloads : public testing::Test {
 protected:
  const std::vector<Payload> payloads_ = load_payloads();
};

TEST_F(Payloads, AreMany) {
  EXPECT_GE(payloads_.size(), 80U);
  EXPECT_GE(std::ranges::count_if(payloads_, [](const Payload& p) { return !is_utf8(p.text); }), 8);
}

TEST_F(Payloads, ComeBackFromJson) {
  for (const Payload& payload : payloads_) {
    SCOPED_TRACE(payload.what);
    const BenchResults results = results_of({payload});
    const BenchResults back = bench_results_from_json(to_json(results), "x.json");
    EXPECT_EQ(back, results_of({{payload.what, utf8_text(payload.text)}}));
    EXPECT_EQ(back == results, is_utf8(payload.text));
  }
}

TEST_F(Payloads, ComeBackFromCsv) {
  std::vector<BenchRow> rows;
  std::vector<BenchRow> wanted;
  for (const Payload& payload : payloads_) {
    rows.push_back(row_of(payload.text));
    wanted.push_back(row_of(utf8_text(payload.text)));
    wanted.back().layers.clear();
    wanted.back().plan.clear();
  }
  const BenchCsv back = bench_rows_from_csv(to_csv(rows), "x.csv");
  EXPECT_EQ(back.rows, wanted);
  EXPECT_TRUE(back.notes.empty());
}

TEST_F(Payloads, AreNoFormulasInCsv) {
  for (const Payload& payload : payloads_) {
    const std::vector<BenchRow> rows = {row_of(payload.text)};
    const CsvDocument document = parse_csv(to_csv(rows), "x.csv");
    for (const CsvCell& cell : document.records.at(1).cells) {
      SCOPED_TRACE(payload.what + ": " + cell.text.substr(0, 40));
      const size_t start = cell.text.find_first_not_of(" \t\r\n");
      if (start != std::string::npos) {
        EXPECT_EQ(std::string_view("=+-@").find(cell.text[start]), std::string_view::npos);
      }
    }
  }
}

TEST_F(Payloads, DoNothingToATerminal) {
  for (const Payload& payload : payloads_) {
    SCOPED_TRACE(payload.what);
    const std::vector<BenchRow> rows = {row_of(payload.text)};
    BenchRow slower = rows.front();
    slower.speedup = 0.5;
    slower.accuracy = "fail_to_run";
    const std::vector<BenchRow> after = {slower};
    const std::string check = check_bench(rows, after).text();
    EXPECT_EQ(std::ranges::count(check, '\n'), 5);  // header, rule, two findings, verdict
    for (const std::string& text : {describe_bench(rows), compare_bench(rows, after), compare_bench(rows, {}),
                                    check, terminal_text(payload.text)}) {
      EXPECT_TRUE(is_utf8(text));
      for (const std::string_view bad : {"\x1b", "\x07", "\b", "\r", "\t", "\x7f", "\xC2\x9B", "\xE2\x80\xAE",
                                         "\xE2\x80\xA8", "\xE2\x80\x8B", "\xEF\xBB\xBF"}) {
        EXPECT_EQ(text.find(bad), std::string::npos) << testing::PrintToString(bad);
      }
      EXPECT_EQ(text.find('\0'), std::string::npos);
    }
  }
}

TEST_F(Payloads, AreDataInHtml) {
  const std::string plain = lower(to_html(results_of({{"plain", "plain"}})));
  for (const Payload& payload : payloads_) {
    SCOPED_TRACE(payload.what);
    const std::string page = lower(to_html(results_of({payload})));
    EXPECT_TRUE(is_utf8(page));
    for (const std::string_view tag : {"<script", "</script", "<!--", "-->", "<img", "<svg", "<b>", "</title",
                                       "</style", "</noscript", "</pre", "<h1"}) {
      EXPECT_EQ(count(page, tag), count(plain, tag)) << tag;
    }
    // The data block is one line of JSON that stays JSON, and holds what the results hold.
    const size_t begin = page.find("id=\"results\">") + 13;
    EXPECT_THAT(page.substr(0, begin), Not(HasSubstr("\" onmouseover=\"")));
    EXPECT_THAT(page.substr(0, begin), Not(HasSubstr("' onfocus='")));
    const std::string block =
        to_html(results_of({payload})).substr(begin, page.find("</script", begin) - begin);
    EXPECT_EQ(bench_results_from_json(block, "page"), results_of({{"", utf8_text(payload.text)}}));
  }
}

TEST(Text, TerminalSpellsOutWhatCannotBeSeen) {
  EXPECT_EQ(terminal_text("a\nb\tc\r\x1b[0m"), "a\\nb\\tc\\r\\x1b[0m");
  EXPECT_EQ(terminal_text("\xE2\x80\xAEx"), "\\u202ex");
  EXPECT_EQ(terminal_text("\xF3\xA0\x81\x81"), "\\U000e0041");
  EXPECT_EQ(terminal_text("\xC2\x9B"), "\\x9b");
  EXPECT_EQ(terminal_text("na\xC3\xAFve \xE6\xA8\xA1"), "na\xC3\xAFve \xE6\xA8\xA1");
  EXPECT_EQ(terminal_text(std::string(1000, 'x'), 11), "xxxxx…xxxxx");
}

TEST(Text, BrokenBytesAreSpelledOutOnce) {
  EXPECT_EQ(utf8_text("a\xFFz"), "a\\xffz");
  EXPECT_EQ(utf8_text("a\xE2\x82"), "a\\xe2\\x82");
  EXPECT_EQ(utf8_text(utf8_text("a\xFFz")), "a\\xffz");
}

TEST(Text, JsonInScriptHasNoMarkup) {
  EXPECT_EQ(json_for_script("\"</script>&\xE2\x80\xA8\xE2\x80\xA9\""),
            "\"\\u003c/script\\u003e\\u0026\\u2028\\u2029\"");
}

}  // namespace
}  // namespace halftone
