// A config for each of some layers, as a lifecycle backend.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "archive/bytes/terminal_text.h"
#include "backend/lifecycle/recipe_config.h"
#include "base/errors.h"
#include "halftone/quant/quantize.h"
#include "halftone/tune/modules.h"
#include "quant/graph/quantized_node.h"
#include "tune/submodules.h"

namespace halftone {
namespace {

constexpr const char* kType = "LayerwiseBackend";
// An autoquant plan has one for each of perhaps hundreds of layers: then only their number is told.
constexpr size_t kMaxPatternsNamed = 8;

class LayerwiseRecipe final : public BackendRecipe {
 public:
  explicit LayerwiseRecipe(LayerwiseConfig overrides) : overrides_(std::move(overrides)) {}
  std::string type() const override { return kType; }

  std::string config() const override {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& [pattern, config] : overrides_)
      list.push_back(nlohmann::json::array({pattern, nlohmann::json::parse(config.to_json())}));
    return nlohmann::json{{"overrides", list}}.dump();
  }

  std::string describe_config() const override {
    std::string text;
    const auto add = [&](const std::string& what, const QuantConfig& config) {
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", what, config.describe());
    };
    if (overrides_.size() <= kMaxPatternsNamed) {
      for (const auto& [pattern, config] : overrides_) add(terminal_text(pattern), config);
      return text;
    }
    std::vector<std::pair<QuantConfig, size_t>> counts;  // in the order of first use
    for (const auto& [pattern, config] : overrides_) {
      const auto known =
          std::find_if(counts.begin(), counts.end(), [&](const auto& each) { return each.first == config; });
      if (known == counts.end()) {
        counts.emplace_back(config, 1);
      } else {
        ++known->second;
      }
    }
    for (const auto& [config, count] : counts)
      add(fmt::format("{} pattern{}", count, count == 1 ? "" : "s"), config);
    return text;
  }

  ReadyModel prepare(const std::shared_ptr<const GraphModule>& original, const std::vector<Sample>& samples,
                     const std::string&) const override {
    auto module = original->clone();
    if (!overrides_.empty() && !has_quantized_layers(module->graph())) {
      QuantizeOptions options;
      options.overrides = overrides_;
      quantize_(*module, NoQuantConfig{}, options);
    }
    return lifecycle::compiled(std::move(module), samples);
  }

 private:
  LayerwiseConfig overrides_;
};

LayerwiseConfig parse(std::string_view json) {
  const nlohmann::json fields = lifecycle::parse_config(kType, json, {"overrides"});
  LayerwiseConfig overrides;
  if (!fields.contains("overrides")) return overrides;
  const nlohmann::json& list = fields["overrides"];
  const bool sound =
      list.is_array() && std::all_of(list.begin(), list.end(), [](const nlohmann::json& entry) {
        return entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_object();
      });
  if (!sound) {
    fail(ErrorCode::kInvalidArgument, "config of {}: overrides must be a list of [pattern, config], not {}",
         kType, list.dump());
  }
  for (const nlohmann::json& entry : list)
    overrides.emplace_back(entry[0].get<std::string>(), QuantConfig::from_json(entry[1].dump()));
  return overrides;
}

// Files name the type, and are loaded by programs that tune nothing.
const bool kRegistered = [] {
  register_backend_type({kType, "a scheme for each of some layers, as tune_submodules() finds them",
                         [](std::string_view json) { return layerwise_backend_recipe(parse(json)); }});
  return true;
}();

}  // namespace

bool has_quantized_layers(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const auto& node) { return try_quantized_node(*node).has_value(); });
}

std::shared_ptr<const BackendRecipe> layerwise_backend_recipe(const LayerwiseConfig& overrides) {
  return std::make_shared<const LayerwiseRecipe>(overrides);
}

}  // namespace halftone
