// halftone quantize: makes a model low-bit and writes it as a checkpoint.
#include "halftone/quant/quantize.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "autoquant_job.h"
#include "common/command_line.h"
#include "common/console.h"
#include "common/model_file.h"
#include "common/output_file.h"
#include "common/scheme_options.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/cli/table.h"

namespace halftone::cli {

namespace {

constexpr const char* kQuantizeDescription =
    "Make a model low-bit and write it as a .ht checkpoint\n\n"
    "Prints what became of each layer: quantized, or kept and why. A pattern that matches no layer is\n"
    "an error, and so is a model with nothing to quantize. Patterns are ECMAScript regular expressions\n"
    "on whole layer names, which --dry-run lists.";
constexpr const char* kQuantizeExamples = R"(Examples:
  halftone quantize model.pt2 --scheme int8wo -o model.ht
  halftone quantize model.pt2 --scheme int4wo --group-size 64 --dry-run
  halftone quantize model.pt2 --scheme int4wo --override 'encoder.*out=int8wo' -o model.ht
  halftone run model.ht)";

struct QuantizeRequest {
  ModelOptions model;
  SchemeOptions scheme;
  OutputOptions output;
  bool dry_run = false;
  bool packed = false;
};

/// The scheme that is not a config: it measures, and its file says which layer got what.
void quantize_by_measuring(const QuantizeRequest& options, const CommonOptions& common, Console& console) {
  const SchemeOptions& scheme = options.scheme;
  if (scheme.group_size > 0 || scheme.weight_bits > 0 || !scheme.overrides.empty() ||
      scheme.min_weights > 0 || scheme.embeddings || options.packed || options.dry_run) {
    throw UsageError(
        "--scheme autoquant takes --include, --exclude and -o only; everything else: halftone "
        "autoquant --help");
  }
  AutoquantRequest request;
  request.model = options.model;
  request.include = scheme.include;
  request.exclude = scheme.exclude;
  request.output = options.output;
  run_autoquant(request, common, console);
}

void quantize(const QuantizeRequest& options, const CommonOptions& common, Console& console) {
  if (options.output.path.empty() && !options.dry_run)
    throw UsageError("-o OUT.ht is missing (or --dry-run, to write nothing)");
  require_writable(options.output, {options.model.path});
  if (options.scheme.scheme == "autoquant") return quantize_by_measuring(options, common, console);
  const QuantConfig config = config_of(options.scheme);
  QuantizeOptions layers = layers_of(options.scheme);
  layers.dry_run = options.dry_run;
  const std::shared_ptr<GraphModule> module = open_model(options.model);
  QuantizeReport report;
  {
    std::optional<ProgressBar> bar;
    layers.progress = [&](int64_t done, int64_t total, std::string_view) {
      if (!bar) bar.emplace(console, "quantizing", total);
      bar->update(done);
    };
    report = quantize_(*module, config, layers);
  }
  if (!options.dry_run) save_checkpoint(*module, options.output.path, {.packed = options.packed});
  console.result(common.json ? report.to_json() + "\n" : report.to_text());
  for (const std::string& warning : report.warnings()) console.warn(warning);
  if (options.dry_run) return console.info("a dry run: nothing was written");
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(options.output.path));
  console.info(fmt::format("wrote {} ({}); to run it: halftone run {}", options.output.path,
                           describe_bytes(bytes), options.output.path));
}

}  // namespace

void add_quantize(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<QuantizeRequest>();
  CLI::App* command = app.add_subcommand("quantize", kQuantizeDescription);
  command->footer(kQuantizeExamples);
  add_model_options(*command, options->model);
  add_scheme_options(*command, options->scheme);
  add_output_options(*command, options->output, "The checkpoint to write");
  command->add_flag("--packed", options->packed, "Also store weights as this machine's kernels want them");
  command->add_flag("--dry-run", options->dry_run, "Only print what would become of each layer");
  add_common_options(*command, line.common);
  command->callback([options, &line] {
    line.job = [options, &line](Console& console) { quantize(*options, line.common, console); };
  });
}

}  // namespace halftone::cli
