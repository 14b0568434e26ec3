// The report of static int8, as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "halftone/cli/table.h"
#include "halftone/ptq/static_int8.h"

namespace halftone {
namespace {

constexpr int kStaticTextColumns = 100;
using StaticJson = nlohmann::ordered_json;

std::string errors_table(std::vector<StaticLayerError> errors, size_t most) {
  std::stable_sort(errors.begin(), errors.end(),
                   [](const auto& a, const auto& b) { return a.noise_db > b.noise_db; });
  std::vector<Row> rows;
  for (const StaticLayerError& error : errors) {
    if (rows.size() == most) break;
    rows.push_back({error.layer.empty() ? error.value : error.layer, error.pattern,
                    fmt::format("{:.5f}", error.cosine), fmt::format("{:.1f}", -error.noise_db)});
  }
  std::string text = render_table({{"layer", Align::kLeft, Cut::kName, 20},
                                   {"pattern", Align::kLeft, Cut::kMiddle, 24},
                                   {"cosine", Align::kRight},
                                   {"SNR dB", Align::kRight}},
                                  rows, kStaticTextColumns);
  if (rows.size() < errors.size())
    text += fmt::format("… and {} more that lost less\n", errors.size() - rows.size());
  return text;
}

}  // namespace

std::string StaticInt8Result::to_text(size_t layers) const {
  std::string text = patterns.to_text() + "\n" + lowered.to_text();
  if (!errors.empty() && layers > 0)
    text += "\nLayers, the largest loss first (everything before them quantized too)\n" +
            errors_table(errors, layers);
  text += fmt::format("\n{} call{} calibrated; least cosine of the model's results to fp32's: {:.5f}\n",
                      calibrated, calibrated == 1 ? "" : "s", cosine);
  if (differing_not_finite > 0)
    text += fmt::format("{} elements are NaN or infinite where fp32's are not, or the other way round\n",
                        differing_not_finite);
  return text;
}

std::string StaticInt8Result::to_json() const {
  StaticJson json = {{"patterns", StaticJson::parse(patterns.to_json())},
                     {"lowered", {{"operators", lowered.operators}, {"kept", StaticJson::array()}}},
                     {"layers", StaticJson::array()},
                     {"cosine", cosine},
                     {"differing_not_finite", differing_not_finite},
                     {"calibrated", calibrated}};
  for (const KeptInFloat& kept : lowered.kept)
    json["lowered"]["kept"].push_back(
        {{"node", kept.node}, {"target", kept.target}, {"layer", kept.layer}, {"reason", kept.reason}});
  for (const StaticLayerError& error : errors)
    json["layers"].push_back({{"layer", error.layer},
                              {"pattern", error.pattern},
                              {"value", error.value},
                              {"cosine", error.cosine},
                              {"snr_db", -error.noise_db},
                              {"noise_db", error.noise_db}});  // the older name, with the other sign
  return json.dump(-1, ' ', false, StaticJson::error_handler_t::replace);
}

}  // namespace halftone
