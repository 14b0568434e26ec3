#include "checkpoint/records/layer_configs.h"

#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "checkpoint/container/ht_json.h"
#include "quant/graph/quantized_node.h"

namespace halftone {
namespace {

void collect(const Graph& graph, LayerConfigs& configs) {
  for (const auto& node : graph.nodes()) {
    for (const NamedArgument& input : node->inputs()) {
      if (const auto* subgraph = input.value.get_if<std::shared_ptr<Graph>>()) collect(**subgraph, configs);
    }
    const auto quantized = try_quantized_node(*node);
    if (!quantized) continue;
    const std::string json = quantized->config.to_json();
    const std::string& layer = quantized->layer.name;
    const auto [place, fresh] = configs.emplace(layer, json);
    // A tied weight is several nodes; where they compute differently, each has its own line.
    if (!fresh && place->second != json)
      configs[fmt::format("{} (%{})", layer, node->output()->name())] = json;
  }
}

}  // namespace

LayerConfigs layer_configs(const Graph& graph) {
  LayerConfigs configs;
  collect(graph, configs);
  return configs;
}

nlohmann::json configs_json(const LayerConfigs& configs) {
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [layer, config] : configs)
    json.push_back({{"layer", ht::text_json(layer)}, {"config", nlohmann::json::parse(config)}});
  return json;
}

LayerConfigs read_configs(const HtMetadata& metadata) {
  const nlohmann::json document = metadata.json(ht::kConfigsKey);
  LayerConfigs configs;
  for (const JsonCursor& item : ht::elements(JsonCursor(document, metadata.place(ht::kConfigsKey)))) {
    ht::require_known(item, {"layer", "config"});
    if (!item.at("config").raw().is_object()) item.at("config").fail_here("expected an object");
    if (!configs.emplace(ht::text_of(item.at("layer")), item.at("config").raw().dump()).second)
      item.fail_here("the layer stands twice");
  }
  return configs;
}

}  // namespace halftone
