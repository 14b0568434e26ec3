// The names that a plan may hold.
#include <algorithm>

#include "base/scheme_table.h"
#include "halftone/tune/autoquant_plan.h"

namespace halftone {

namespace {

AutoquantScheme scheme_of_plan(const NamedScheme& scheme) {
  const std::string name = scheme.name();
  const QuantConfig config(name);
  if (config.is_noquant()) return {"fp32", std::nullopt};
  return {name, config};
}

/// Those with other groups than the usual ones.
const std::vector<AutoquantScheme>& schemes_with_groups() {
  static const std::vector<AutoquantScheme> table = [] {
    std::vector<AutoquantScheme> list;
    for (const SchemeEntry& entry : scheme_table()) {
      if (entry.group_size == 0) continue;
      for (const int group : scheme_group_sizes())
        if (group != entry.group_size) list.push_back(scheme_of_plan({&entry, group}));
    }
    return list;
  }();
  return table;
}

}  // namespace

const std::vector<AutoquantScheme>& autoquant_schemes() {
  static const std::vector<AutoquantScheme> table = [] {
    std::vector<AutoquantScheme> list;
    for (const SchemeEntry& entry : scheme_table()) {
      if (entry.kind != SchemeKind::kConfig) continue;
      AutoquantScheme scheme = scheme_of_plan({&entry, 0});
      list.insert(scheme.config ? list.end() : list.begin(), std::move(scheme));  // fp32 first
    }
    return list;
  }();
  return table;
}

const AutoquantScheme& autoquant_scheme(std::string_view name) {
  const std::string wanted = scheme_of_plan(named_config(name)).name;
  for (const std::vector<AutoquantScheme>* list : {&autoquant_schemes(), &schemes_with_groups()}) {
    const auto found = std::ranges::find(*list, wanted, &AutoquantScheme::name);
    if (found != list->end()) return *found;
  }
  refuse_scheme(name, *named_config(name).entry);  // not reached: each config of the table is in a list
}

}  // namespace halftone
