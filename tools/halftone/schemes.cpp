// halftone schemes: the names that quantize takes, what each does, and which kernels run it here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/console.h"
#include "halftone/cli/kernels.h"
#include "halftone/cli/table.h"
#include "halftone/quant/config.h"

namespace halftone::cli {

namespace {

constexpr const char* kSchemesDescription =
    "List the quantization schemes, and the kernels that run them here\n\n"
    "Every command that takes a scheme knows these names; int4wo:64 is int4wo with groups of 64. Those\n"
    "that are calibrated need data: halftone ptq. Bits are those of a stored weight, scales included,\n"
    "in a layer of 4096 inputs.";
constexpr const char* kSchemesExamples = R"(Examples:
  halftone schemes
  halftone schemes --json)";

/// The kernel that a linear of a usual size gets.
std::string kernel_of(const std::string& name) {
  constexpr int64_t kRows = 16;
  constexpr int64_t kWidth = 4096;
  for (const KernelChoice& choice : explain_kernels(kRows, kWidth, kWidth, name)) {
    if (choice.chosen) return choice.name;
  }
  return {};
}

/// Layers that stay as they are run as they did: by PyTorch, or compiled.
std::string kernel_of(const Scheme& scheme) {
  return scheme.config.is_noquant() ? std::string() : kernel_of(scheme.names.front());
}

void show_schemes(const CommonOptions& common, Console& console) {
  if (common.json) {
    nlohmann::ordered_json report = {{"instruction_set", active_instruction_set()},
                                     {"schemes", nlohmann::json::array()}};
    for (const Scheme& scheme : schemes()) {
      report["schemes"].push_back({{"names", scheme.names},
                                   {"config", nlohmann::json::parse(scheme.config.to_json())},
                                   {"key", scheme.config.key()},
                                   {"weights", scheme.weights},
                                   {"activations", scheme.activations},
                                   {"bits_per_weight", scheme.bits_per_weight},
                                   {"kernel", kernel_of(scheme)}});
    }
    report["calibrated"] = nlohmann::json::array();
    for (const SchemeWithoutConfig& scheme : schemes_without_config()) {
      if (!scheme.needs_data) {
        report["measured"][scheme.name] = scheme.weights;
        continue;
      }
      report["calibrated"].push_back({{"name", scheme.name},
                                      {"weights", scheme.weights},
                                      {"activations", scheme.activations},
                                      {"bits_per_weight", scheme.bits_per_weight},
                                      {"how", scheme.how},
                                      {"kernel", kernel_of(scheme.name)}});
    }
    return console.result(report.dump() + "\n");
  }
  std::vector<Row> rows;
  std::vector<Row> kernels;
  for (const Scheme& scheme : schemes()) {
    rows.push_back({fmt::format("{}", fmt::join(scheme.names, ", ")), scheme.weights, scheme.activations,
                    fmt::format("{:.2f}", scheme.bits_per_weight)});
    const std::string kernel = kernel_of(scheme);
    kernels.push_back({scheme.names.front(), kernel.empty() ? "PyTorch's own" : kernel});
  }
  for (const SchemeWithoutConfig& scheme : schemes_without_config()) {
    rows.push_back({scheme.name, scheme.weights, scheme.activations,
                    scheme.needs_data ? fmt::format("{:.2f}", scheme.bits_per_weight) : "-"});
    if (scheme.needs_data) kernels.push_back({scheme.name, kernel_of(scheme.name)});
  }
  console.result(render_table({{"scheme"},
                               {"weights", Align::kLeft, Cut::kMiddle, 20},
                               {"activations", Align::kLeft, Cut::kMiddle, 16},
                               {"bits", Align::kRight}},
                              rows, kColumns));
  console.result(fmt::format("\nKernels for a linear of 16 rows and 4096 x 4096 weights, on {}:\n\n",
                             active_instruction_set()));
  console.result(render_table({{"scheme"}, {"kernel", Align::kLeft, Cut::kMiddle}}, kernels, kColumns));
}

}  // namespace

void add_schemes(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("schemes", kSchemesDescription);
  command->footer(kSchemesExamples);
  add_common_options(*command, line.common);
  command->callback(
      [&line] { line.job = [&line](Console& console) { show_schemes(line.common, console); }; });
}

}  // namespace halftone::cli
