// AutoquantPlan: choices, overrides, reading and writing files.
#include <algorithm>
#include <set>

#include "archive/bytes/text_file.h"
#include "halftone/tune/autoquant_plan.h"
#include "tune/autoquant_plan/choices.h"
#include "tune/submodules.h"

namespace halftone {

std::vector<PlanChoice> plan_choices(const AutoquantPlan& plan) {
  std::set<std::string_view> named;
  for (const AutoquantLayer& layer : plan.layers) named.insert(layer.name);
  std::vector<PlanChoice> choices;
  for (const AutoquantLayer& layer : plan.layers) {
    choices.push_back({layer.name, &layer, true});
    for (const std::string& other : layer.together) {
      if (named.insert(other).second) choices.push_back({other, &layer, false});
    }
  }
  return choices;
}

std::vector<std::pair<std::string, QuantConfig>> AutoquantPlan::overrides() const {
  std::vector<std::pair<std::string, QuantConfig>> list;
  for (const PlanChoice& choice : plan_choices(*this)) {
    const AutoquantScheme& scheme = autoquant_scheme(choice.entry->choice);
    if (scheme.config) list.emplace_back(exact_pattern({choice.layer}), *scheme.config);
  }
  return list;
}

bool AutoquantPlan::quantizes() const {
  return std::ranges::any_of(
      layers, [](const AutoquantLayer& layer) { return autoquant_scheme(layer.choice).config.has_value(); });
}

AutoquantPlan read_autoquant_plan(const std::string& path) {
  return AutoquantPlan::from_json(read_text_file(path), path);
}

void write_autoquant_plan(const std::string& path, const AutoquantPlan& plan) {
  write_text_file(path, plan.to_json());
}

}  // namespace halftone
