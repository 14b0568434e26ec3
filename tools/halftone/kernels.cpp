// halftone kernels: which kernels there are, which this machine runs, and which one a linear would get.
#include "halftone/cli/kernels.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/console.h"
#include "halftone/cli/table.h"

namespace halftone::cli {

namespace {

constexpr const char* kKernelsDescription =
    "List the kernels, and say which one a linear would get\n\n"
    "HALFTONE_ISA=scalar|avx2|avx512vnni caps the instruction set.";
constexpr const char* kKernelsExamples = R"(Examples:
  halftone kernels
  halftone kernels --explain 1 4096 4096 int8dq-7bit
  HALFTONE_ISA=scalar halftone kernels --json)";

void show_kernels(const CommonOptions& common, Console& console) {
  const std::vector<KernelInfo> kernels = list_kernels();
  if (common.json) {
    nlohmann::ordered_json report = {{"instruction_set", active_instruction_set()},
                                     {"kernels", nlohmann::json::array()}};
    for (const KernelInfo& kernel : kernels) {
      report["kernels"].push_back({{"operation", kernel.operation},
                                   {"name", kernel.name},
                                   {"instruction_set", kernel.instruction_set},
                                   {"runs_here", kernel.runs_here}});
    }
    return console.result(report.dump() + "\n");
  }
  std::vector<Row> rows;
  for (const KernelInfo& kernel : kernels) {
    rows.push_back({kernel.operation, kernel.name, kernel.instruction_set, kernel.runs_here ? "yes" : "no"});
  }
  console.result(fmt::format("Kernels are chosen for {}.\n\n", active_instruction_set()));
  console.result(render_table(
      {{"operation"}, {"kernel", Align::kLeft, Cut::kMiddle}, {"instruction set"}, {"runs here"}}, rows,
      kColumns));
}

int64_t positive(const std::string& text, const char* what) {
  size_t used = 0;
  int64_t number = 0;
  try {
    number = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != text.size() || number < 1) {
    throw UsageError(fmt::format("--explain: {} is \"{}\", not a positive integer", what, text));
  }
  return number;
}

void explain(const std::vector<std::string>& problem, const CommonOptions& common, Console& console) {
  const auto choices = parse_scheme_option([&] {
    return explain_kernels(positive(problem[0], "M"), positive(problem[1], "N"), positive(problem[2], "K"),
                           problem[3]);
  });
  if (common.json) {
    nlohmann::ordered_json report = {{"instruction_set", active_instruction_set()},
                                     {"kernels", nlohmann::json::array()}};
    for (const KernelChoice& choice : choices) {
      report["kernels"].push_back(
          {{"name", choice.name}, {"chosen", choice.chosen}, {"reason", choice.reason}});
    }
    return console.result(report.dump() + "\n");
  }
  std::vector<Row> rows;
  for (const KernelChoice& choice : choices)
    rows.push_back({choice.name, choice.chosen ? "runs" : choice.reason});
  console.result(
      fmt::format("A linear with M = {} (rows), N = {} (outputs), K = {} (inputs) as {}, on {}:\n\n",
                  problem[0], problem[1], problem[2], problem[3], active_instruction_set()));
  console.result(render_table(
      {{"kernel", Align::kLeft, Cut::kMiddle}, {"verdict", Align::kLeft, Cut::kMiddle}}, rows, kColumns));
}

}  // namespace

void add_kernels(CLI::App& app, CommandLine& line) {
  auto problem = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("kernels", kKernelsDescription);
  command->footer(kKernelsExamples);
  command->add_option("--explain", *problem, "Rows of activations, outputs, inputs and scheme of a linear")
      ->type_name("M N K SCHEME")
      ->expected(4);
  add_common_options(*command, line.common);
  command->callback([problem, &line] {
    line.job = [problem, &line](Console& console) {
      problem->empty() ? show_kernels(line.common, console) : explain(*problem, line.common, console);
    };
  });
}

}  // namespace halftone::cli
