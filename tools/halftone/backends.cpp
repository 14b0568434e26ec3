// halftone backends: the names that --backend and compile() take.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command_line.h"
#include "console.h"
#include "halftone/backend.h"
#include "halftone/table.h"

namespace halftone::cli {

namespace {

constexpr const char* kDescription =
    "List the backends that run or compile a graph\n\n"
    "Those for debugging and experiments are listed with --all.";
constexpr const char* kExamples = R"(Examples:
  halftone backends
  halftone backends --all --json)";

void list(bool all, const CommonOptions& common, Console& console) {
  const std::vector<BackendInfo> backends = all ? list_backends({}) : list_backends();
  if (common.json) {
    nlohmann::ordered_json report = {{"backends", nlohmann::json::array()}};
    for (const BackendInfo& backend : backends) {
      report["backends"].push_back({{"name", backend.name}, {"tags", backend.tags}, {"what", backend.what}});
    }
    return console.result(report.dump() + "\n");
  }
  std::vector<Row> rows;
  for (const BackendInfo& backend : backends)
    rows.push_back({backend.name, fmt::format("{}", fmt::join(backend.tags, ", ")), backend.what});
  console.result(
      render_table({{"backend"}, {"tags"}, {"what", Align::kLeft, Cut::kMiddle, 20}}, rows, kColumns));
}

}  // namespace

void add_backends(CLI::App& app, CommandLine& line) {
  auto all = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("backends", kDescription);
  command->footer(kExamples);
  command->add_flag("--all", *all, "Also those for debugging and experiments");
  add_common_options(*command, line.common);
  command->callback(
      [all, &line] { line.job = [all, &line](Console& console) { list(*all, line.common, console); }; });
}

}  // namespace halftone::cli
