// Applies the rules to every operator of this torch's dispatcher:
//   list_operators            the table of what graphs from files may call, as allowed_operators.inc holds it
//   list_operators --all      every operator with its side and its rule
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <string>

#include "graph/operators/operator_rules.h"

namespace {

std::map<std::string, const halftone::OperatorRule*> all_operators() {
  std::map<std::string, const halftone::OperatorRule*> found;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op) continue;  // an implementation without a definition cannot be called
    const std::string text =
        name.overload_name.empty() ? name.name : fmt::format("{}.{}", name.name, name.overload_name);
    found.emplace(text, &halftone::rule_of(op->schema()));
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  const bool all = argc > 1 && std::string_view(argv[1]) == "--all";
  for (const auto& [name, rule] : all_operators()) {
    if (all) {
      fmt::print("{} {} ({})\n", rule->allows ? "allowed" : "refused", name, rule->name);
    } else if (rule->allows && name.starts_with("aten::")) {
      fmt::print("\"{}\",\n", name);
    }
  }
  return 0;
}
