// halftone verify: whether a .ht or a .gguf file is sound, and what it holds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "common/command_line.h"
#include "common/console.h"
#include "common/gguf.h"
#include "halftone/base/error.h"
#include "halftone/capture/capture.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/cli/gguf.h"
#include "halftone/cli/message.h"
#include "halftone/cli/table.h"
#include "halftone/cli/text_file.h"
#include "verify_findings.h"

namespace halftone::cli {

namespace {

constexpr const char* kVerifyDescription =
    "Check that a .ht or .gguf file is sound, and say what it holds\n\n"
    "Reads every byte. Of a .ht: checksums, format, versions, graph, configs, backend. Of a .gguf,\n"
    "which has no checksums: format, sizes and places of the tensors, padding, metadata, whether all\n"
    "numbers are finite, and which types of tensors Halftone reads. Fails if anything is wrong, and\n"
    "says what.";
constexpr const char* kVerifyExamples = R"(Examples:
  halftone verify model.ht
  halftone verify model.gguf
  halftone verify model.ht --fast
  halftone verify model.ht --json)";

constexpr size_t kMagicBytes = 4;

struct VerifyOptions {
  std::string path;
  std::vector<std::string> libraries;
  bool fast = false;
};

using Json = nlohmann::ordered_json;

/// Untrusted text of a file, to be printed in a terminal.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char letter) { return static_cast<unsigned char>(letter) < ' ' || letter == '\x7f'; }, '?');
  return text;
}

/// Null if the text is empty. What a damaged file has there may be no JSON.
Json parsed(const std::string& text) {
  if (text.empty()) return nullptr;
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

Json backend_json(const CheckpointInfo& info) {
  if (info.backend.empty()) return nullptr;
  return {{"describe", info.backend}, {"config", parsed(info.backend_config)},
          {"device", info.device},    {"state", info.state},
          {"weights", info.weights},  {"samples", info.samples}};
}

Json to_json(const CheckpointInfo& info) {
  Json configs = Json::object();
  for (const auto& [layer, config] : info.configs) configs[layer] = Json::parse(config);
  return {{"sound", info.findings.empty()},
          {"bytes_checked", info.bytes_checked},
          {"version", info.version},
          {"written_by", info.written_by},
          {"needs", info.needs},
          {"kind", info.kind},
          {"sha256", info.sha256},
          {"chunks", info.chunks},
          {"bytes", info.bytes},
          {"tensors", info.tensors},
          {"quantized_layers", info.configs.size() + info.static_int8_layers},
          {"static_int8_layers", info.static_int8_layers},
          {"configs", configs},
          {"backend", backend_json(info)},
          {"tuning", parsed(info.tuning)},
          {"findings", info.findings}};
}

/// The CPU that the tuner names, with what it chose.
std::string describe_tuning(const CheckpointInfo& info) {
  const Json tuning = parsed(info.tuning);
  const auto text = [&](const char* key) {
    const bool is_text = tuning.is_object() && tuning.contains(key) && tuning[key].is_string();
    return is_text ? printable(tuning[key].get<std::string>()) : std::string();
  };
  std::string line = "on " + (text("cpu").empty() ? "a CPU that is not named" : text("cpu"));
  if (!text("chosen").empty()) line += fmt::format(", chose {}", text("chosen"));
  if (!text("strategy").empty()) line += fmt::format(" by {}", text("strategy"));
  return line;
}

std::string describe_backend(const CheckpointInfo& info) {
  if (info.backend.empty()) return {};
  std::string text =
      fmt::format("  backend   {}\n  weights   {}; device {}\n", printable(info.backend),
                  info.weights == "original" ? "those of the original model"
                                             : "as the backend needs them, quantized if it does that",
                  printable(info.device));
  if (!info.tuning.empty()) text += fmt::format("  tuned     {}\n", describe_tuning(info));
  constexpr size_t kMax = 4;
  for (size_t i = 0; i < std::min(info.samples.size(), kMax); ++i)
    text += fmt::format("  {}    {}\n", i == 0 ? "sample" : "      ", info.samples[i]);
  if (info.samples.size() > kMax) text += fmt::format("            … {} more\n", info.samples.size() - kMax);
  return text;
}

std::string quantized_layers(const CheckpointInfo& info) {
  const size_t count = info.configs.size() + info.static_int8_layers;
  return fmt::format(
      "{}{}", counted(count, "quantized layer"),
      info.static_int8_layers > 0 ? fmt::format(" ({} static int8)", info.static_int8_layers) : "");
}

std::string to_text(const VerifyOptions& options, const CheckpointInfo& info) {
  std::string text =
      info.bytes_checked
          ? fmt::format("{} is sound.\n", options.path)
          : fmt::format("{}: its metadata are sound. Weights and checksums were not looked at (--fast).\n",
                        options.path);
  text +=
      fmt::format("  format    .ht version {}, written by {}{}\n", info.version, printable(info.written_by),
                  info.needs.empty() ? "" : fmt::format(", needs Halftone ≥ {}", printable(info.needs)));
  text += fmt::format("  holds     a {}: {} tensor{}, {}, {}\n", printable(info.kind),
                      with_commas(static_cast<int64_t>(info.tensors)), info.tensors == 1 ? "" : "s",
                      quantized_layers(info), describe_bytes(info.bytes));
  text += describe_backend(info);
  const std::string chunks =
      info.chunks == 0 ? "" : fmt::format(", and a checksum of every 4 MiB ({} in all)", info.chunks);
  text += fmt::format("  sha256    {}{}\n", info.sha256, chunks);
  return text;
}

void verify(const VerifyOptions& options, const CommonOptions& common, Console& console) {
  if (is_gguf(read_file_start(options.path, kMagicBytes)))
    return verify_gguf({.path = options.path, .json = common.json, .fast = options.fast}, console);
  for (const std::string& library : options.libraries) load_operator_library(library);
  const CheckpointInfo info =
      verify_checkpoint(options.path, options.fast ? VerifyDepth::kMetadata : VerifyDepth::kEverything);
  if (common.json) {
    console.result(to_json(info).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  } else if (info.findings.empty()) {
    console.result(to_text(options, info));
  }
  throw_findings(options.path, info.findings);
}

}  // namespace

void add_verify(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand("verify", kVerifyDescription);
  command->footer(kVerifyExamples);
  command->add_option("FILE", options->path, "A .ht file, or a .gguf file")->required()->type_name("");
  command->add_flag("--fast", options->fast, "Only the metadata: neither weights nor checksums are read");
  add_library_option(*command, options->libraries);
  add_common_options(*command, line.common);
  command->callback([options, &line] {
    line.job = [options, &line](Console& console) { verify(*options, line.common, console); };
  });
}

}  // namespace halftone::cli
