#include "tune_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "console.h"
#include "halftone/table.h"

namespace halftone::cli {

namespace {

std::string describe_accuracy(const Accuracy& accuracy, const std::string& metric) {
  std::string text = fmt::format("least cosine {:.5f}", accuracy.least_cosine);
  if (accuracy.metric) text += fmt::format(", {} {:.5g}", metric, *accuracy.metric);
  return text;
}

}  // namespace

std::string gain_text(const TuneReport& report) {
  const CandidateReport* chosen = report.find(report.chosen);
  if (chosen == nullptr) return {};
  std::vector<std::string> parts;
  if (chosen->accuracy) parts.push_back(describe_accuracy(*chosen->accuracy, report.metric));
  std::string size = fmt::format("{} of weights", describe_bytes(chosen->bytes));
  for (const CandidateReport& candidate : report.candidates) {
    if (candidate.is_eager && candidate.bytes != chosen->bytes)
      size += fmt::format(" instead of {}", describe_bytes(candidate.bytes));
  }
  parts.push_back(std::move(size));
  return fmt::format("{}", fmt::join(parts, "; "));
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
