#include "tune/report/report_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "halftone/cli/message.h"
#include "halftone/cli/table.h"
#include "halftone/tune/report.h"

namespace halftone {
namespace {

std::string milliseconds(double ms) {
  return fmt::format("{:.{}f}", ms, ms < 1 ? 3 : ms < 100 ? 2 : 0);
}

std::string rate(double per_second) {
  return fmt::format("{:.{}f}", per_second, per_second < 10 ? 2 : per_second < 100 ? 1 : 0);
}

std::string cosine(const CandidateReport& row) {
  if (!row.accuracy) return "-";
  return row.accuracy->nans > 0 ? "NaN" : fmt::format("{:.5f}", row.accuracy->min_cosine);
}

/// Nothing if the interval is open: no number of times is supported by that.
std::string speed_up(const ShapeTime& time) {
  if (!(time.to_eager > 0) || time.eager_interval.is_open()) return "-";
  // An interval that spans a factor of two on one side supports no number either.
  const Interval& interval = time.eager_interval;
  const bool vague =
      interval.high > 2 * time.to_eager || (interval.high > 0 && 2 * interval.low < time.to_eager);
  if (vague) return "-";
  return fmt::format("{:.{}f} x", 1 / time.to_eager, time.to_eager > 0.01 ? 2 : 0);
}

/// How far the interval reaches from the median, the farther end, in percent.
std::string interval_text(const ShapeTime& time) {
  const bool open = !(time.high < std::numeric_limits<double>::infinity());
  if (open || !(time.median > 0)) return "-";
  const double reach = std::max(time.high - time.median, time.median - time.low) / time.median;
  if (reach > 9.99) return ">999 %";
  return fmt::format("{:.{}f} %", 100 * std::max(0.0, reach), reach < 0.1 ? 1 : 0);
}

/// A row for each shape; what is not of the shape stands in the first of them.
void add_rows(std::vector<Row>& rows, const CandidateReport& row, const std::vector<SampleShape>& shapes) {
  const std::string size = row.bytes > 0 ? describe_bytes(row.bytes) : "-";
  const std::string peak = row.peak_bytes ? describe_bytes(*row.peak_bytes) : "-";
  const std::string compile = row.compile_ms > 0 ? fmt::format("{:.0f} ms", row.compile_ms) : "-";
  const std::string verdict(to_string(row.verdict));
  if (row.times.empty()) {
    rows.push_back({row.name, "-", "-", "-", "-", "-", "-", cosine(row), size, peak, compile, verdict});
    return;
  }
  for (size_t i = 0; i < row.times.size() && i < shapes.size(); ++i) {
    const ShapeTime& time = row.times[i];
    const double batch = static_cast<double>(shapes[i].batch.value_or(1));
    const bool first = i == 0;
    rows.push_back({first ? row.name : "", shapes[i].label(), milliseconds(time.median), interval_text(time),
                    fmt::to_string(time.runs), speed_up(time), rate(batch / time.median * 1e3),
                    first ? cosine(row) : "", first ? size : "", first ? peak : "", first ? compile : "",
                    first ? verdict : ""});
  }
}

std::string conclusion(const TuneReport& report) {
  const CandidateReport* chosen = report.find(report.chosen);
  if (chosen == nullptr) return "";
  const std::string why = chosen->reason.empty() ? "" : ": " + chosen->reason;
  return wrap_text(fmt::format("{} {}{}", report.won ? "Chosen:" : "Nothing won. Taken:", chosen->name, why),
                   kReportWidth);
}

}  // namespace

std::string shapes_line(const std::vector<SampleShape>& shapes) {
  std::vector<std::string> labels;
  for (const SampleShape& shape : shapes)
    labels.push_back(shape.calls > 1 ? fmt::format("{} ({} calls)", shape.label(), shape.calls)
                                     : shape.label());
  return wrap_text(fmt::format("shapes: {}", fmt::join(labels, ", ")), kReportWidth);
}

std::string ranges_text(const std::vector<SampleRange>& ranges) {
  std::string text;
  for (const SampleRange& range : ranges) {
    const std::string end =
        range.max == std::numeric_limits<int64_t>::max() ? "" : fmt::format("{}", range.max);
    const std::string checks = range.checks.empty() ? "" : fmt::format(": {}", fmt::join(range.checks, "; "));
    text += wrap_text(fmt::format("size {} of {}…{}{}{}", range.symbol, range.min, end,
                                  range.declared ? "" : ", as the samples have it", checks),
                      kReportWidth);
  }
  return text;
}

std::string TuneReport::to_text() const {
  std::string text = wrap_text(fmt::format("{}, strategy {}, {}, {}, {}, halftone {}", model, strategy,
                                           counted(threads, "thread"), cpu, isa, version),
                               kReportWidth);
  text += shapes_line(shapes);
  text +=
      wrap_text(fmt::format("validated against eager on {}{}; least cosine {}", counted(held_out, "sample"),
                            synthetic > 0 ? fmt::format(" ({} made up)", synthetic) : "", min_cosine),
                kReportWidth);
  std::vector<Row> rows;
  for (const CandidateReport& row : candidates) add_rows(rows, row, shapes);
  text += "\n";
  text += render_table({{"candidate", Align::kLeft, Cut::kMiddle, 14},
                        {"shape", Align::kLeft, Cut::kMiddle, 7},
                        {"ms", Align::kRight},
                        {"±", Align::kRight},
                        {"n", Align::kRight},
                        {"speed", Align::kRight},
                        {"per s", Align::kRight},
                        {"cosine", Align::kRight},
                        {"size", Align::kRight},
                        {"peak", Align::kRight},
                        {"build", Align::kRight},
                        {"verdict"}},
                       rows, kReportWidth);
  text += "\n";
  for (const CandidateReport& row : candidates) {
    if (row.verdict == Verdict::kChosen || row.reason.empty()) continue;
    text += wrap_text(fmt::format("{} {}: {}", row.name, to_string(row.verdict), row.reason), kReportWidth);
  }
  const std::string dropped =
      disturbed > 0 ? fmt::format("; {} of {} rounds were disturbed by other programs and dropped", disturbed,
                                  disturbed + rounds)
                    : "";
  text += wrap_text(
      "speed: the median over n rounds of the ratio to eager in the same round; ms: eager's median "
      "times that; ±: how far its interval (95 %, six rounds or more) reaches" +
          dropped,
      kReportWidth);
  if (rounds > 0 && !watched)
    text += wrap_text("other programs were not looked for meanwhile (HALFTONE_BUSY=ignore)", kReportWidth);
  text += ranges_text(ranges);
  for (const std::string& note : notes) text += wrap_text(note, kReportWidth);
  text += from_cache ? wrap_text(fmt::format("measurements from the cache of {}", measured_at), kReportWidth)
                     : wrap_text(fmt::format("tuned in {:.1f} s", seconds), kReportWidth);
  return text + conclusion(*this);
}

}  // namespace halftone
