// The names that a plan may hold.
#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.h"
#include "base/nearest.h"
#include "halftone/autoquant_plan.h"

namespace halftone {

const std::vector<AutoquantScheme>& autoquant_schemes() {
  static const std::vector<AutoquantScheme> table = [] {
    std::vector<AutoquantScheme> names{{"fp32", std::nullopt}};
    for (const Scheme& scheme : schemes()) {
      // It would be a second name for fp32.
      if (!scheme.config.is_noquant()) names.push_back({scheme.names.front(), scheme.config});
    }
    names.push_back({"int8dq-7bit", Int8DynamicActivationInt8WeightConfig{.weight_bits = 7}});
    names.push_back({"int4wo-int8act", Int4WeightOnlyConfig{.activations = Int4Activations::kInt8}});
    return names;
  }();
  return table;
}

const AutoquantScheme& autoquant_scheme(std::string_view name) {
  const std::vector<AutoquantScheme>& known = autoquant_schemes();
  const auto found =
      std::ranges::find_if(known, [&](const AutoquantScheme& scheme) { return scheme.name == name; });
  if (found != known.end()) return *found;
  std::vector<std::string> names;
  for (const AutoquantScheme& scheme : known) names.push_back(scheme.name);
  fail(ErrorCode::kInvalidArgument, "unknown scheme \"{}\"{}; known: {}", name, did_you_mean(name, names),
       fmt::join(names, ", "));
}

}  // namespace halftone
