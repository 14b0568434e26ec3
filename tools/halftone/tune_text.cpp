#include "tune_text.h"

#include <fmt/format.h>

#include <cmath>

#include "console.h"
#include "halftone/table.h"

namespace halftone::cli {

namespace {

/// Geometric mean over the shapes of how many times as fast as the other; 0: not known.
double speed_up(const CandidateReport& candidate, double ShapeTime::*ratio) {
  double sum = 0;
  for (const ShapeTime& time : candidate.times) {
    if (!(time.*ratio > 0)) return 0;
    sum -= std::log(time.*ratio);
  }
  return candidate.times.empty() ? 0 : std::exp(sum / static_cast<double>(candidate.times.size()));
}

std::string describe_speed(const CandidateReport& chosen) {
  if (chosen.is_eager) return "eager itself, as the model came";
  const double eager = speed_up(chosen, &ShapeTime::to_eager);
  const double fp32 = speed_up(chosen, &ShapeTime::to_fp32);
  std::string text =
      eager > 0 ? fmt::format("{:.2f} times as fast as eager", eager) : "not timed beside eager";
  if (chosen.is_fp32) return text + "; this is Halftone's fp32 itself";
  if (fp32 > 0) text += fmt::format(", {:.2f} times as fast as Halftone's fp32", fp32);
  return text;
}

std::string describe_accuracy(const Accuracy& accuracy, const std::string& metric) {
  std::string text = fmt::format("least cosine {:.5f}", accuracy.least_cosine);
  if (accuracy.metric) text += fmt::format(", {} {:.5g}", metric, *accuracy.metric);
  return text;
}

}  // namespace

std::string gain_text(const TuneReport& report) {
  const CandidateReport* chosen = report.find(report.chosen);
  if (chosen == nullptr) return {};
  std::string text = describe_speed(*chosen);
  if (chosen->accuracy) text += "; " + describe_accuracy(*chosen->accuracy, report.metric);
  text += fmt::format("; {}", describe_bytes(chosen->bytes));
  const CandidateReport* eager = nullptr;
  for (const CandidateReport& candidate : report.candidates) {
    if (candidate.is_eager) eager = &candidate;
  }
  if (eager != nullptr && eager != chosen && eager->bytes > 0)
    text += fmt::format(" of weights instead of {}", describe_bytes(eager->bytes));
  return wrap(text, kColumns);
}

std::string parts_text(const LayerwiseConfig& parts) {
  if (parts.empty()) return "No part is faster with a scheme: all stay as they are.\n";
  std::vector<Row> rows;
  for (const auto& [pattern, config] : parts) rows.push_back({pattern, config.describe()});
  return render_table(
      {{"layers (pattern)", Align::kLeft, Cut::kMiddle, 30}, {"scheme", Align::kLeft, Cut::kMiddle}}, rows,
      kColumns);
}

nlohmann::ordered_json parts_json(const LayerwiseConfig& parts) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& [pattern, config] : parts)
    json.push_back({{"pattern", pattern}, {"config", nlohmann::ordered_json::parse(config.to_json())}});
  return json;
}

}  // namespace halftone::cli
