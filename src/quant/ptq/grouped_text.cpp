#include "quant/ptq/grouped_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "halftone/cli/table.h"

namespace halftone::ptq {
namespace {

constexpr int kPlacesColumns = 100;

/// "conv1, layer1.0.conv1 and 12 more".
std::string first_places(const std::vector<std::string>& layers) {
  constexpr size_t kShown = 3;
  const std::vector<std::string> shown(layers.begin(), layers.begin() + std::min(kShown, layers.size()));
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (layers.size() > kShown) text += fmt::format(" and {} more", layers.size() - kShown);
  return text;
}

}  // namespace

std::string places_table(const Places& places) {
  if (places.empty()) return {};
  std::vector<Row> rows;
  for (const auto& [what, layers] : places)
    rows.push_back({fmt::format("{} ×", layers.size()), what, first_places(layers)});
  const std::string table = render_table(
      {{"", Align::kRight}, {"", Align::kLeft, Cut::kMiddle, 56}, {"", Align::kLeft, Cut::kMiddle, 24}}, rows,
      kPlacesColumns);
  // Titles and the rule below them say nothing here.
  return table.substr(table.find('\n', table.find('\n') + 1) + 1);
}

std::string place_name(const std::string& layer, const std::string& node) {
  return layer.empty() ? "%" + node : layer;
}

}  // namespace halftone::ptq
