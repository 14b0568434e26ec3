// halftone diagnose: what quantizing each layer would cost.
#include "halftone/quant/diagnose.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/console.h"
#include "common/inputs.h"
#include "common/measure_text.h"
#include "common/model_file.h"
#include "common/output_file.h"
#include "common/scheme_options.h"
#include "halftone/cli/table.h"
#include "tune_files.h"

namespace halftone::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDiagnoseDescription =
    "Show what quantizing each layer would cost, the most harmful first\n\n"
    "Per layer: signal-to-noise ratio (dB), cosine and largest error of the weight, of the layer's\n"
    "output, and of the model's result where this layer alone is quantized, each against the model as\n"
    "it is; share: the layer's part of the noise that all layers, each alone, bring into the result.\n"
    "The model runs once for each layer.";
constexpr const char* kDiagnoseExamples = R"(Examples:
  halftone diagnose model.pt2 --scheme int4wo
  halftone diagnose model.pt2 --scheme int8dq --inputs a.safetensors --inputs b.safetensors
  halftone diagnose model.pt2 --scheme int8wo --csv layers.csv)";

struct DiagnoseRequest {
  ModelOptions model;
  SchemeOptions scheme;
  InputOptions inputs;
  OutputOptions csv;
};

std::string report_json(const Diagnosis& diagnosis) {
  Json report = {{"layers", Json::array()}, {"result", measure_json(diagnosis.result)}};
  for (const LayerDiagnosis& layer : diagnosis.layers) {
    report["layers"].push_back({{"name", layer.layer.name},
                                {"kind", layer.layer.kind},
                                {"n", layer.layer.n},
                                {"k", layer.layer.k},
                                {"config", Json::parse(layer.config.to_json())},
                                {"weight", measure_json(layer.weight)},
                                {"output", measure_json(layer.output)},
                                {"result", measure_json(layer.result)},
                                {"share", layer.share}});
  }
  return report.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string report_text(const Diagnosis& diagnosis) {
  std::vector<Row> rows;
  for (const LayerDiagnosis& layer : diagnosis.layers) {
    rows.push_back({layer.layer.name, fmt::format("{:.1f} %", 100 * layer.share), decibels(layer.weight),
                    fmt::format("{:.2g}", layer.weight.max_error), decibels(layer.output),
                    fmt::format("{:.5f}", layer.output.cosine), fmt::format("{:.2g}", layer.output.max_error),
                    decibels(layer.result), fmt::format("{:.6f}", layer.result.cosine)});
  }
  std::string text = render_table({{"layer", Align::kLeft, Cut::kName, 20},
                                   {"share", Align::kRight},
                                   {"weight dB", Align::kRight},
                                   {"max", Align::kRight},
                                   {"output dB", Align::kRight},
                                   {"cosine", Align::kRight},
                                   {"max", Align::kRight},
                                   {"result dB", Align::kRight},
                                   {"cosine", Align::kRight}},
                                  rows, kColumns);
  const ErrorMeasure& result = diagnosis.result;
  const std::string noise =
      std::isfinite(result.snr_db) ? fmt::format("{:.1f} dB", result.snr_db) : "no noise in what is finite";
  text += result.is_exact()
              ? std::string("\nAll of them quantized: exactly the same\n")
              : fmt::format("\nAll of them quantized: {}, cosine {:.6f}, largest error {:.3g}\n", noise,
                            result.cosine, result.max_error);
  return text + not_finite_text(result);
}

/// As RFC 4180 quotes it.
std::string csv_cell(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void write_csv(const Diagnosis& diagnosis, const std::string& path) {
  std::string text =
      "layer,kind,n,k,config,share,weight_snr_db,weight_cosine,weight_max_error,output_snr_db,output_"
      "cosine,output_max_error,"
      "result_snr_db,result_cosine,result_max_error\n";
  for (const LayerDiagnosis& layer : diagnosis.layers) {
    text += fmt::format("{},{},{},{},{},{}", csv_cell(layer.layer.name), layer.layer.kind, layer.layer.n,
                        layer.layer.k, csv_cell(layer.config.describe()), layer.share);
    for (const ErrorMeasure* measure : {&layer.weight, &layer.output, &layer.result})
      text += fmt::format(",{},{},{}", measure->snr_db, measure->cosine, measure->max_error);
    text += '\n';
  }
  write_text(path, text);
}

void diagnose_model(const DiagnoseRequest& options, const CommonOptions& common, Console& console) {
  require_writable(options.csv, {options.model.path, options.inputs.files});
  const QuantConfig config = config_of(options.scheme);
  QuantizeOptions layers = layers_of(options.scheme);
  const std::shared_ptr<GraphModule> module = open_model(options.model);
  std::vector<std::vector<c10::IValue>> calls;
  for (InputSet& inputs : collect_inputs(*module, options.inputs)) calls.push_back(std::move(inputs.values));
  Diagnosis diagnosis;
  {
    std::optional<ProgressBar> bar;
    layers.progress = [&](int64_t done, int64_t total, std::string_view) {
      if (!bar) bar.emplace(console, "running the model", total);
      bar->update(done);
    };
    diagnosis = diagnose(*module, config, calls, layers);
  }
  if (!options.csv.path.empty()) write_csv(diagnosis, options.csv.path);
  console.result(common.json ? report_json(diagnosis) : report_text(diagnosis));
}

}  // namespace

void add_diagnose(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<DiagnoseRequest>();
  CLI::App* command = app.add_subcommand("diagnose", kDiagnoseDescription);
  command->footer(kDiagnoseExamples);
  add_model_options(*command, options->model);
  add_scheme_options(*command, options->scheme);
  add_input_options(*command, options->inputs,
                    "Inputs of one call; may be repeated (default: the model's sample inputs)");
  command->add_option("--csv", options->csv.path, "Also write the table as CSV, with all digits")
      ->type_name("F.csv");
  add_force_option(*command, options->csv.force);
  add_common_options(*command, line.common);
  command->callback([options, &line] {
    line.job = [options, &line](Console& console) { diagnose_model(*options, line.common, console); };
  });
}

}  // namespace halftone::cli
