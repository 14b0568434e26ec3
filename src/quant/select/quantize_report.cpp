// QuantizeReport as text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "halftone/cli/table.h"
#include "halftone/quant/quantize.h"
#include "quant/select/left_alone.h"

namespace halftone {
namespace {

constexpr int kWidth = 100;

std::string_view to_string(LayerReport::Outcome outcome) {
  switch (outcome) {
    case LayerReport::Outcome::kQuantized:
      return "quantized";
    case LayerReport::Outcome::kAlready:
      return "already";
    case LayerReport::Outcome::kKept:
      break;
  }
  return "kept";
}

std::string describe_outcome(const LayerReport& layer) {
  switch (layer.outcome) {
    case LayerReport::Outcome::kQuantized:
      return scheme_name(*layer.config);
    case LayerReport::Outcome::kAlready:
      return "already " + scheme_name(*layer.config);
    case LayerReport::Outcome::kKept:
      break;
  }
  return "kept";
}

double ratio(int64_t before, int64_t after) {
  return after > 0 ? static_cast<double>(before) / static_cast<double>(after) : 1.0;
}

std::string describe_change(int64_t before, int64_t after) {
  const bool larger = after > before;
  return fmt::format("{} -> {} ({:.2f} times {})", describe_bytes(before), describe_bytes(after),
                     larger ? ratio(after, before) : ratio(before, after), larger ? "larger" : "smaller");
}

std::string count_layers(size_t count, std::string_view what) {
  return fmt::format("{} layer{} {}", count, count == 1 ? "" : "s", what);
}

/// Each reason once, with the layers that it holds for.
std::string list_reasons(const std::vector<LayerReport>& layers) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const LayerReport& layer : layers) {
    if (layer.reason.empty()) continue;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& one) { return one.first == layer.reason; });
    if (group == groups.end()) group = groups.insert(groups.end(), {layer.reason, {}});
    group->second.push_back(layer.layer.name);
  }
  std::string text;
  for (const auto& [reason, names] : groups) {
    text += wrap_text(fmt::format("{}: {}", reason, fmt::join(names, ", ")), kWidth);
  }
  return groups.empty() ? text : "\nKept, and notes:\n" + text;
}

std::string list_left_alone(const std::vector<LeftAlone>& kinds) {
  std::string text;
  for (const LeftAlone& kind : kinds) text += wrap_text(describe(kind), kWidth);
  return text.empty() ? text : "\nLeft alone:\n" + text;
}

struct Bytes {
  int64_t before = 0;
  int64_t after = 0;
};

/// Of the weights that were quantized, each once.
Bytes quantized_bytes(const std::vector<LayerReport>& layers) {
  Bytes sum;
  for (const LayerReport& layer : layers) {
    if (layer.outcome != LayerReport::Outcome::kQuantized) continue;
    if (layer.tied_to.empty()) sum.before += layer.bytes_before;
    if (layer.own_tensors) sum.after += layer.bytes_after;
  }
  return sum;
}

}  // namespace

size_t QuantizeReport::count(LayerReport::Outcome outcome) const {
  return static_cast<size_t>(std::count_if(
      layers.begin(), layers.end(), [&](const LayerReport& layer) { return layer.outcome == outcome; }));
}

std::vector<std::string> QuantizeReport::warnings() const {
  std::vector<std::string> result;
  const auto embeddings = std::find_if(left_alone.begin(), left_alone.end(),
                                       [](const LeftAlone& kind) { return kind.kind == "embedding"; });
  if (bytes_after > bytes_before) {
    result.push_back(
        fmt::format("the model became larger: {}. Weights that other layers share are stored twice{}",
                    describe_change(bytes_before, bytes_after),
                    embeddings != left_alone.end() ? ": " + embeddings->help : ""));
  }
  double share = 0;
  for (const LeftAlone& kind : left_alone) share += kind.share;
  if (share > 0.5) {
    std::string text = fmt::format("most of the model ({:.1f} % of the bytes) stays as it was", share * 100);
    for (const LeftAlone& kind : left_alone) text += "; " + describe(kind);
    result.push_back(std::move(text));
  }
  return result;
}

std::string QuantizeReport::to_text() const {
  std::vector<Row> rows;
  for (const LayerReport& layer : layers) {
    rows.push_back({layer.layer.name, layer.layer.kind, fmt::format("{} x {}", layer.layer.n, layer.layer.k),
                    describe_outcome(layer), describe_bytes(layer.bytes_before),
                    describe_bytes(layer.bytes_after)});
  }
  std::string text = render_table({{"layer", Align::kLeft, Cut::kName, 24},
                                   {"kind"},
                                   {"n x k", Align::kRight},
                                   {"weight becomes", Align::kLeft, Cut::kMiddle, 30},
                                   {"before", Align::kRight},
                                   {"after", Align::kRight}},
                                  rows, kWidth);
  text += list_reasons(layers);
  text += list_left_alone(left_alone);
  text += fmt::format("\n{}, {}, {}\n", count_layers(count(LayerReport::Outcome::kQuantized), "quantized"),
                      count_layers(count(LayerReport::Outcome::kAlready), "quantized before"),
                      count_layers(count(LayerReport::Outcome::kKept), "kept"));
  const Bytes quantized = quantized_bytes(layers);
  text += fmt::format("Quantized weights: {}\n", describe_change(quantized.before, quantized.after));
  text += fmt::format("Whole model:       {}\n", describe_change(bytes_before, bytes_after));
  return text;
}

std::string QuantizeReport::to_json() const {
  nlohmann::ordered_json report;
  report["layers"] = nlohmann::json::array();
  for (const LayerReport& layer : layers) {
    nlohmann::ordered_json entry = {{"name", layer.layer.name},
                                    {"kind", layer.layer.kind},
                                    {"n", layer.layer.n},
                                    {"k", layer.layer.k},
                                    {"outcome", to_string(layer.outcome)}};
    if (layer.config) entry["config"] = nlohmann::json::parse(layer.config->to_json());
    if (!layer.reason.empty()) entry["reason"] = layer.reason;
    entry["bytes_before"] = layer.bytes_before;
    entry["bytes_after"] = layer.bytes_after;
    if (!layer.tied_to.empty()) entry["tied_to"] = layer.tied_to;
    report["layers"].push_back(std::move(entry));
  }
  report["left_alone"] = nlohmann::json::array();
  for (const LeftAlone& kind : left_alone) {
    report["left_alone"].push_back({{"kind", kind.kind},
                                    {"count", kind.count},
                                    {"bytes", kind.bytes},
                                    {"share", kind.share},
                                    {"help", kind.help}});
  }
  report["warnings"] = warnings();
  const Bytes weights = quantized_bytes(layers);
  report["quantized_bytes_before"] = weights.before;
  report["quantized_bytes_after"] = weights.after;
  report["quantized"] = count(LayerReport::Outcome::kQuantized);
  report["already"] = count(LayerReport::Outcome::kAlready);
  report["kept"] = count(LayerReport::Outcome::kKept);
  report["bytes_before"] = bytes_before;
  report["bytes_after"] = bytes_after;
  report["ratio"] = ratio(bytes_before, bytes_after);
  return report.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace halftone
