// halftone inspect: what is in a model, layer by layer, and where its time goes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/console.h"
#include "common/gguf.h"
#include "common/inputs.h"
#include "common/model_file.h"
#include "halftone/base/error.h"
#include "halftone/capture/capture.h"
#include "halftone/graph/graph_module.h"
#include "inspect/inspect_backend.h"
#include "inspect/inspect_refused.h"
#include "inspect/inspect_report.h"
#include "inspect/inspect_submodules.h"

namespace halftone::cli {

namespace {

constexpr const char* kInspectDescription =
    "Show what is in a model, layer by layer\n\n"
    "Inputs with their dynamic dimensions, outputs, layers with operators, shapes and parameters,\n"
    "totals, and what could be quantized. Of a .pt2 file whose operators are unknown or refused here,\n"
    "what the file says of itself, and the reasons. Of a .gguf file architecture, types of the\n"
    "tensors, and metadata.";
constexpr const char* kInspectExamples = R"(Examples:
  halftone inspect model.pt2
  halftone inspect model.pt2 --time --threads 1
  halftone inspect model.pt2 --time --inputs in.safetensors
  halftone inspect model.pt2 --backend halftone
  halftone inspect model.pt2 --submodules
  halftone inspect model.pt2 --json | python3 -m json.tool
  halftone inspect model.pt2 --dot | dot -Tsvg > model.svg
  halftone inspect model.gguf --tensors)";

struct InspectOptions {
  ModelOptions model;
  bool graph = false;
  bool dot = false;
  bool time = false;
  bool submodules = false;
  bool tensors = false;
  std::string backend;
  std::vector<std::string> inputs;
};

/// Whether everything that was asked for is in the file's own words.
bool describes_only(const InspectOptions& options) {
  return !options.graph && !options.dot && !options.time && !options.submodules && options.backend.empty();
}

/// The model; nothing if it cannot be run here and was described instead.
std::shared_ptr<const GraphModule> open_or_describe(const InspectOptions& options,
                                                    const CommonOptions& common, Console& console) {
  try {
    return open_model(options.model);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported || !describes_only(options) ||
        model_file_kind(options.model.path) != ModelFileKind::kPt2)
      throw;
    const Pt2Description description = describe_pt2(options.model.path);
    if (description.refused.empty()) throw;  // it is something else
    inspect_refused(options.model.path, description, common.json, console);
    return nullptr;
  }
}

void inspect(const InspectOptions& options, const CommonOptions& common, Console& console) {
  const bool gguf = model_file_kind(options.model.path) == ModelFileKind::kGguf;
  if (gguf && !describes_only(options))
    throw UsageError(options.model.path +
                     ": a GGUF file is described only: it goes with --tensors and --json");
  if (gguf)
    return inspect_gguf({.path = options.model.path, .json = common.json, .tensors = options.tensors},
                        console);
  if (options.tensors) throw UsageError("--tensors goes with a .gguf file");
  const std::shared_ptr<const GraphModule> module = open_or_describe(options, common, console);
  if (!module) return;
  if (options.graph) return console.result(print_graph(module->graph()));
  if (options.dot) return console.result(print_dot(module->graph()));
  if (!options.backend.empty()) {
    const InputSet inputs = collect_inputs(*module, InputOptions{.files = options.inputs}).front();
    return inspect_backend(module, inputs.values, common.json, console);
  }
  if (options.submodules)
    return inspect_submodules(module, collect_inputs(*module, InputOptions{.files = options.inputs}).front(),
                              common.json, console);
  Session session(module);
  InspectReport report;
  report.module = module.get();
  report.path = options.model.path;
  report.file_bytes = static_cast<int64_t>(std::filesystem::file_size(options.model.path));
  report.summary = summarize(*module);
  report.state = session.state_names();
  if (options.time)
    report.times = measure_layers(
        session, collect_inputs(*module, InputOptions{.files = options.inputs}).front(), console);
  if (common.json) {
    console.result(
        report_json(report).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else {
    console.result(report_text(report));
  }
}

}  // namespace

void add_inspect(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect", kInspectDescription);
  command->footer(kInspectExamples);
  add_model_options(*command, options->model);
  command->get_option("MODEL")->description(
      "The model: a .pt2 file as torch.export.save writes it, a .ht file,\nor a .gguf file");
  auto* graph = command->add_flag("--graph", options->graph, "Print the graph in its text form instead");
  auto* dot =
      command->add_flag("--dot", options->dot, "Print the graph for Graphviz instead")->excludes(graph);
  auto* time =
      command->add_flag("--time", options->time, "Run the model, and show each layer's share of the time")
          ->excludes(graph)
          ->excludes(dot);
  auto* backend = command
                      ->add_option("--backend", options->backend,
                                   "Compile the model instead, and show what the passes did, the steps with\n"
                                   "their kernels, and what is left to ATen and why")
                      ->type_name("NAME")
                      ->check(CLI::IsMember({"halftone"}))
                      ->excludes(graph)
                      ->excludes(dot)
                      ->excludes(time);
  auto* submodules = command
                         ->add_flag("--submodules", options->submodules,
                                    "Run the model instead, and show which parts of it take the time and\n"
                                    "are worth tuning (see: halftone tune --by-submodule)")
                         ->excludes(graph)
                         ->excludes(dot)
                         ->excludes(time)
                         ->excludes(backend);
  command->add_flag("--tensors", options->tensors, "List every tensor of a .gguf file, too");
  command
      ->add_option("--inputs", options->inputs,
                   "Inputs for --time, --backend and --submodules (default: the model's\nsample inputs)")
      ->type_name("F.safetensors")
      ->expected(1);
  add_common_options(*command, line.common);
  command->get_option("--json")->excludes(graph)->excludes(dot);
  command->callback([options, backend, time, submodules, &line] {
    if (!options->inputs.empty() && backend->count() + time->count() + submodules->count() == 0)
      throw CLI::RequiresError("--inputs", "--time, --backend or --submodules");
    line.job = [options, &line](Console& console) { inspect(*options, line.common, console); };
  });
}

}  // namespace halftone::cli
