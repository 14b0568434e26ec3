#include "compare_report.h"

#include <fmt/format.h>

#include "common/console.h"
#include "common/measure_text.h"
#include "halftone/cli/message.h"
#include "halftone/cli/table.h"

namespace halftone::cli {

namespace {

using CompareJson = nlohmann::ordered_json;

CompareJson model_json(const ComparedModel& model, const MeasuredTime* time) {
  CompareJson json = {{"path", model.path}, {"backend", model.backend}, {"bytes", model.bytes}};
  if (time != nullptr) json["median_ms"] = time->median;
  return json;
}

std::string speed_text(const ComparedTimes& times, size_t calls) {
  const std::string both = fmt::format("A {:.4g} ms, B {:.4g} ms for {}", times.a.median, times.b.median,
                                       calls == 1 ? "a call" : fmt::format("all {} calls", calls));
  if (times.interval.is_open()) return fmt::format("{}: too few rounds ({}) to say more", both, times.rounds);
  const Interval& range = times.interval;
  const char* verdict = range.low > 1    ? "B is faster"
                        : range.high < 1 ? "B is slower"
                                         : "none is surely faster";
  return fmt::format("{}; {}: {:.3f} times as fast ({:.3f} to {:.3f} at 95 %, {})", both, verdict,
                     times.speedup, range.low, range.high, counted(times.rounds, "round"));
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  std::string text = fmt::format("A: {}, backend {}\nB: {}, backend {}\n\n", comparison.a.path,
                                 comparison.a.backend, comparison.b.path, comparison.b.backend);
  std::vector<Row> rows;
  ErrorMeasure all;
  for (const ComparedOutput& output : comparison.outputs) {
    rows.push_back({output.name, output.path.empty() ? "-" : output.path, output.shape,
                    fmt::format("{:.6f}", output.measure.cosine), decibels(output.measure),
                    fmt::format("{:.3g}", output.measure.max_error)});
    all.finite += output.measure.finite;
    all.same_not_finite += output.measure.same_not_finite;
    all.differing_not_finite += output.measure.differing_not_finite;
  }
  text += render_table({{"output", Align::kLeft, Cut::kMiddle, 10},
                        {"path", Align::kLeft, Cut::kMiddle, 16},
                        {"type and shape", Align::kLeft, Cut::kMiddle, 16},
                        {"cosine", Align::kRight},
                        {"SNR dB", Align::kRight},
                        {"largest error", Align::kRight}},
                       rows, kColumns);
  text += not_finite_text(all) + "\n";
  if (comparison.times)
    text += wrap_text("Times: " + speed_text(*comparison.times, comparison.calls.size()), kColumns);
  if (!comparison.no_times.empty()) text += wrap_text("Times: " + comparison.no_times, kColumns);
  const double share = static_cast<double>(comparison.b.bytes) / static_cast<double>(comparison.a.bytes);
  text += wrap_text(fmt::format("Sizes: A {}, B {}: {:.2f} of A's", describe_bytes(comparison.a.bytes),
                                describe_bytes(comparison.b.bytes), share),
                    kColumns);
  return text;
}

CompareJson comparison_json(const Comparison& comparison) {
  const auto* times = comparison.times ? &*comparison.times : nullptr;
  CompareJson json = {{"a", model_json(comparison.a, times != nullptr ? &times->a : nullptr)},
                      {"b", model_json(comparison.b, times != nullptr ? &times->b : nullptr)},
                      {"calls", comparison.calls},
                      {"outputs", CompareJson::array()}};
  for (const ComparedOutput& output : comparison.outputs) {
    CompareJson entry = {{"name", output.name}, {"path", output.path}, {"shape", output.shape}};
    entry.update(measure_json(output.measure));
    entry["beyond_tolerance"] = output.beyond;
    json["outputs"].push_back(std::move(entry));
  }
  if (times != nullptr) {
    json["speedup"] = times->speedup;
    // JSON has no infinity: null says that the interval is open.
    json["speedup_low"] = times->interval.low;
    json["speedup_high"] = times->interval.is_open() ? CompareJson() : CompareJson(times->interval.high);
    json["rounds"] = times->rounds;
  }
  if (!comparison.no_times.empty()) json["no_times"] = comparison.no_times;
  json["findings"] = comparison.findings;
  return json;
}

}  // namespace halftone::cli
