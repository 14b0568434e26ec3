// halftone backends: the names that --backend and compile() take, and the types that tune and checkpoints
// have.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/console.h"
#include "halftone/backend/recipes.h"
#include "halftone/cli/table.h"
#include "halftone/compile/compilers.h"

namespace halftone::cli {

namespace {

constexpr const char* kBackendsDescription =
    "List the backends that run or compile a graph\n\n"
    "First those that compile() and minify take by name; those for debugging and experiments are\n"
    "listed with --all. Then the types of backends that tune tries and .ht files hold.";
constexpr const char* kBackendsExamples = R"(Examples:
  halftone backends
  halftone backends --all --json)";

void show_backends(bool all, const CommonOptions& common, Console& console) {
  const std::vector<CompilerInfo> backends = all ? list_compilers({}) : list_compilers();
  if (common.json) {
    nlohmann::ordered_json report = {{"backends", nlohmann::json::array()},
                                     {"types", nlohmann::json::array()}};
    for (const CompilerInfo& backend : backends) {
      report["backends"].push_back({{"name", backend.name}, {"tags", backend.tags}, {"what", backend.what}});
    }
    for (const BackendType& type : backend_types())
      report["types"].push_back({{"type", type.type}, {"what", type.what}});
    return console.result(report.dump() + "\n");
  }
  std::vector<Row> rows;
  for (const CompilerInfo& backend : backends)
    rows.push_back({backend.name, fmt::format("{}", fmt::join(backend.tags, ", ")), backend.what});
  console.result(
      render_table({{"backend"}, {"tags"}, {"what", Align::kLeft, Cut::kMiddle, 20}}, rows, kColumns));
  std::vector<Row> types;
  for (const BackendType& type : backend_types()) types.push_back({type.type, type.what});
  console.result("\nTypes of stateful backends (build, activate, save, deploy), for tune and .ht files:\n\n");
  console.result(render_table({{"type"}, {"what", Align::kLeft, Cut::kMiddle, 20}}, types, kColumns));
}

}  // namespace

void add_backends(CLI::App& app, CommandLine& line) {
  auto all = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("backends", kBackendsDescription);
  command->footer(kBackendsExamples);
  command->add_flag("--all", *all, "Also those for debugging and experiments");
  add_common_options(*command, line.common);
  command->callback([all, &line] {
    line.job = [all, &line](Console& console) { show_backends(*all, line.common, console); };
  });
}

}  // namespace halftone::cli
