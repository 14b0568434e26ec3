// halftone ptq: calibrates a model and writes it in static int8.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/calibration.h"
#include "common/command_line.h"
#include "common/console.h"
#include "common/model_file.h"
#include "common/output_file.h"
#include "halftone/base/error.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/cli/table.h"
#include "halftone/cli/text_file.h"
#include "halftone/ptq/static_int8.h"
#include "tune_files.h"

namespace halftone::cli {

namespace {

constexpr const char* kPtqDescription =
    "Calibrate a model and write it in static int8\n\n"
    "Runs the model on --data and watches its values, finds the patterns that the backend config knows\n"
    "(convolution, batch norm and relu; sums; pooling ...), gives each value a scale and a zero point,\n"
    "and replaces the patterns by int8 operators. Prints which patterns matched, what each layer lost,\n"
    "and what stayed in floating point and why. A model without any match is an error.\n\n"
    "Bits: on machines without 8-bit dot products (AVX2) 7 bits for activations and weights are fastest.\n"
    "torch.ao's default for x86 is 7 and 8; with VNNI take 8 and 8.";
constexpr const char* kPtqExamples = R"(Examples:
  halftone ptq resnet.pt2 --data images.safetensors -o resnet.ht
  halftone ptq resnet.pt2 --data images.safetensors --batch 8 --weight-bits 7 -o resnet.ht --report
  halftone ptq m.pt2 --data d.safetensors --backend-config mine.json --qconfig mine_q.json -o m.ht
  halftone ptq model.pt2 --data d.safetensors --statistics-out seen.json -o m.ht
  halftone ptq model.pt2 --data d.safetensors --statistics seen.json --weight-bits 7 -o m7.ht)";

struct PtqRequest {
  ModelOptions model;
  std::vector<std::string> data;
  int64_t batch = 0;
  std::string backend_config = "x86", qconfig;
  StaticInt8Bits bits;
  std::string statistics, statistics_out;
  OutputOptions output;
  bool reference = false, require_all = false, report = false;
};

bool is_file_name(const std::string& text) {
  return text.ends_with(".json") || std::filesystem::exists(text);
}

BackendConfig backend_config_of(const PtqRequest& request) {
  if (!is_file_name(request.backend_config))
    return parse_option([&] { return builtin_backend_config(request.backend_config); });
  return BackendConfig::from_dict(read_text_file(request.backend_config), request.backend_config);
}

QConfigMapping mapping_of(const PtqRequest& request) {
  if (request.qconfig.empty()) return static_int8_mapping(request.bits);
  if (!is_file_name(request.qconfig))
    return parse_option([&] { return default_qconfig_mapping(request.qconfig); });
  return QConfigMapping::from_dict(read_text_file(request.qconfig), request.qconfig);
}

StaticInt8Result quantize_model(const PtqRequest& request, const GraphModule& module, Console& console) {
  StaticInt8Options options;
  options.backend_config = backend_config_of(request);
  options.mapping = mapping_of(request);
  options.require_all = request.require_all;
  if (!request.statistics.empty()) options.statistics = read_text_file(request.statistics);
  const CalibrationCalls data = collect_calibration(module, request.data, request.batch);
  for (const std::string& note : data.notes) console.warn(note);
  std::optional<ProgressBar> bar;
  options.progress = [&](int64_t done, int64_t total, std::string_view what) {
    if (!bar) bar.emplace(console, "ptq", total);
    bar->update(done, what);
  };
  return quantize_static(module, data.calls, options);
}

void print_ptq(const PtqRequest& request, const StaticInt8Result& result, const CommonOptions& common,
               Console& console) {
  if (common.json) {
    auto json = nlohmann::ordered_json::parse(result.to_json());
    if (!request.output.path.empty()) json["output"] = request.output.path;
    return console.result(json.dump() + "\n");
  }
  constexpr size_t kWorstLayers = 5;
  console.result(result.to_text(request.report ? result.errors.size() : kWorstLayers));
  if (!request.output.path.empty())
    console.info(fmt::format("wrote {} ({}; {} has {}); to run it: halftone run {}", request.output.path,
                             describe_bytes(file_bytes(request.output.path)), request.model.path,
                             describe_bytes(file_bytes(request.model.path)), request.output.path));
}

/// A file that is written is not yet a file that is good.
void warn_of_loss(const StaticInt8Result& result, Console& console) {
  constexpr double kUsualCosine = 0.99;
  if (result.cosine >= kUsualCosine) return;
  console.warn(
      fmt::format("the results' cosine to fp32's is {:.4f}: this model loses much in static int8. More bits "
                  "(--activation-bits 8), more data, a --qconfig that leaves out the worst layers "
                  "(--report) may help; for linears there is halftone quantize --scheme int8dq",
                  result.cosine));
}

void run_ptq(const PtqRequest& request, const CommonOptions& common, Console& console) {
  FilesRead read{request.model.path, request.data};
  for (const std::string& path : {request.backend_config, request.qconfig, request.statistics})
    read.others.push_back(path);
  for (const OutputOptions& output : {request.output, {request.statistics_out, request.output.force}})
    require_writable(output, read);
  const std::shared_ptr<GraphModule> module = open_model(request.model);
  const StaticInt8Result result = quantize_model(request, *module, console);
  if (!request.statistics_out.empty()) write_text(request.statistics_out, result.statistics);
  if (!request.output.path.empty())
    save_checkpoint(request.reference ? *result.reference : *result.module, request.output.path);
  print_ptq(request, result, common, console);
  warn_of_loss(result, console);
}

void add_ptq_schemes(CLI::App& command, PtqRequest& request) {
  command
      .add_option("--backend-config", request.backend_config,
                  fmt::format("{}, or a file", fmt::join(builtin_backend_configs(), ", ")))
      ->type_name("NAME|FILE.json")
      ->capture_default_str();
  auto* qconfig = command
                      .add_option("--qconfig", request.qconfig,
                                  "x86, fbgemm, qnnpack, onednn (torch.ao's defaults), or a file\n"
                                  "(default: x86's, in the bits below)")
                      ->type_name("NAME|FILE.json");
  command.add_option("--activation-bits", request.bits.activation, "7 or 8")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::IsMember({7, 8}))
      ->excludes(qconfig);
  command.add_option("--weight-bits", request.bits.weight, "7 or 8")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::IsMember({7, 8}))
      ->excludes(qconfig);
  command.add_flag("--require-all", request.require_all,
                   "An operation that stays float between quantized ones is an error");
}

}  // namespace

void add_ptq(CLI::App& app, CommandLine& line) {
  auto request = std::make_shared<PtqRequest>();
  CLI::App* command = app.add_subcommand("ptq", kPtqDescription);
  command->footer(kPtqExamples);
  add_model_options(*command, request->model);
  command
      ->add_option("--data", request->data,
                   "Tensors by the model's input names (.safetensors, .npz), cut into calls\n"
                   "along their first dimension; may be repeated")
      ->type_name("F.safetensors")
      ->required()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--batch", request->batch, "Entries of a call (default: as the model's sample inputs)")
      ->type_name("N")
      ->check(CLI::Validator(check_positive, "POSITIVE"));
  add_ptq_schemes(*command, *request);
  command
      ->add_option("--statistics", request->statistics, "Use what an earlier run saw: nothing is calibrated")
      ->type_name("S.json");
  command->add_option("--statistics-out", request->statistics_out, "Write what was seen")
      ->type_name("S.json");
  add_output_options(*command, request->output, "The checkpoint to write");
  command->get_option("--output")->required();
  command->add_flag("--reference", request->reference,
                    "Write the reference graph (explicit quantize and dequantize) instead");
  command->add_flag("--report", request->report, "The loss of every layer, not of the worst five");
  add_common_options(*command, line.common);
  command->callback([request, &line] {
    line.job = [request, &line](Console& console) { run_ptq(*request, line.common, console); };
  });
}

}  // namespace halftone::cli
