// halftone verify: whether a .ht file is sound, and what it holds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "command_line.h"
#include "console.h"
#include "halftone/capture.h"
#include "halftone/checkpoint.h"
#include "halftone/error.h"
#include "halftone/table.h"

namespace halftone::cli {

namespace {

constexpr const char* kDescription =
    "Check that a .ht file is sound\n\n"
    "Reads every byte: checksum, format, versions, graph, configs. Fails if anything is\n"
    "wrong, and says what.";
constexpr const char* kExamples = R"(Examples:
  halftone verify model.ht
  halftone verify model.ht --json)";

struct VerifyOptions {
  std::string path;
  std::vector<std::string> libraries;
};

nlohmann::ordered_json to_json(const CheckpointInfo& info) {
  nlohmann::ordered_json configs = nlohmann::ordered_json::object();
  for (const auto& [layer, config] : info.configs) configs[layer] = nlohmann::ordered_json::parse(config);
  return {{"sound", info.findings.empty()}, {"version", info.version},
          {"written_by", info.written_by},  {"kind", info.kind},
          {"sha256", info.sha256},          {"bytes", info.bytes},
          {"tensors", info.tensors},        {"configs", configs},
          {"findings", info.findings}};
}

std::string to_text(const VerifyOptions& options, const CheckpointInfo& info) {
  return fmt::format(
      "{} is sound.\n  format    .ht version {}, written by {}\n  holds     a {}: {} tensors, {} quantized "
      "layers, {}\n"
      "  sha256    {}\n",
      options.path, info.version, info.written_by, info.kind, with_commas(static_cast<int64_t>(info.tensors)),
      info.configs.size(), describe_bytes(info.bytes), info.sha256);
}

void verify(const VerifyOptions& options, const CommonOptions& common, Console& console) {
  for (const std::string& library : options.libraries) load_operator_library(library);
  const CheckpointInfo info = verify_checkpoint(options.path);
  if (common.json) {
    console.result(to_json(info).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                   "\n");
  } else if (info.findings.empty()) {
    console.result(to_text(options, info));
  }
  if (!info.findings.empty()) {
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: {} finding{}:\n{}", options.path, info.findings.size(),
                            info.findings.size() == 1 ? "" : "s", fmt::join(info.findings, "\n")));
  }
}

}  // namespace

void add_verify(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand("verify", kDescription);
  command->footer(kExamples);
  command->add_option("FILE", options->path, "A .ht file")->required()->type_name("");
  add_library_option(*command, options->libraries);
  add_common_options(*command, line.common);
  command->callback([options, &line] {
    line.job = [options, &line](Console& console) { verify(*options, line.common, console); };
  });
}

}  // namespace halftone::cli
