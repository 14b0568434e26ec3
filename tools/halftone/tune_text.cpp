#include "tune_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/console.h"
#include "halftone/cli/table.h"

namespace halftone::cli {

namespace {

std::string describe_accuracy(const Accuracy& accuracy, const std::string& metric) {
  std::string text = fmt::format("least cosine {:.5f}", accuracy.min_cosine);
  if (accuracy.metric) text += fmt::format(", {} {:.5g}", metric, *accuracy.metric);
  return text;
}

/// The common part of the layers of a pattern, for display: "encoder.layer.1" of
/// "encoder\\.layer\\.1\\.attention\\.query|encoder\\.layer\\.1\\.output\\.dense".
std::string part_name(std::string pattern) {
  std::erase(pattern, '\\');
  const size_t bar = pattern.find('|');
  if (bar == std::string::npos) return pattern;
  size_t common = bar;
  for (size_t start = bar; start != std::string::npos; start = pattern.find('|', start + 1)) {
    size_t same = 0;
    while (same < common && pattern[same] == pattern[start + 1 + same]) ++same;
    common = same;
  }
  const size_t dot = pattern.substr(0, common).rfind('.');
  return dot == std::string::npos ? pattern : pattern.substr(0, dot);
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
  for (const auto& [pattern, config] : parts) rows.push_back({part_name(pattern), config.describe()});
  return render_table({{"part", Align::kLeft, Cut::kName, 20}, {"scheme", Align::kLeft, Cut::kMiddle}}, rows,
                      kColumns);
}

nlohmann::ordered_json parts_json(const LayerwiseConfig& parts) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& [pattern, config] : parts)
    json.push_back({{"pattern", pattern}, {"config", nlohmann::ordered_json::parse(config.to_json())}});
  return json;
}

}  // namespace halftone::cli
