#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "common/console.h"
#include "common/gguf.h"
#include "halftone/base/error.h"
#include "halftone/cli/gguf.h"
#include "halftone/cli/table.h"
#include "halftone/cli/terminal_text.h"
#include "verify_findings.h"

namespace halftone::cli {

namespace {

using CheckJson = nlohmann::ordered_json;

/// "Q4_1, F32"; empty if there are none.
std::string type_names(const GgufDescription& model, bool readable) {
  std::vector<std::string> names;
  for (const GgufDescription::TypeTotal& type : model.types) {
    if (type.readable == readable) names.push_back(type.type);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

CheckJson check_json(const GgufCheck& check) {
  const GgufDescription& model = check.description;
  CheckJson types = CheckJson::object();
  for (const GgufDescription::TypeTotal& type : model.types)
    types[type.type] = {{"tensors", type.tensors}, {"readable", type.readable}};
  return {{"sound", check.findings.empty()},    {"format", "gguf"},
          {"version", model.version},           {"numbers_checked", check.numbers_checked},
          {"architecture", model.architecture}, {"tensors", model.tensors.size()},
          {"parameters", model.parameters},     {"bytes", model.file_bytes},
          {"types", std::move(types)},          {"sha256", check.sha256},
          {"findings", check.findings}};
}

std::string check_text(const std::string& path, const GgufCheck& check) {
  const GgufDescription& model = check.description;
  std::string text =
      check.numbers_checked
          ? fmt::format("{} is sound.\n", path)
          : fmt::format("{}: its metadata are sound. The weights were not looked at (--fast).\n", path);
  text += fmt::format(
      "  format    GGUF version {}{}\n", model.version,
      model.architecture.empty() ? "" : ", architecture " + terminal_text(model.architecture, 60));
  text += fmt::format("  holds     {} tensors, {} parameters, {}\n",
                      with_commas(static_cast<int64_t>(model.tensors.size())), with_commas(model.parameters),
                      describe_bytes(model.file_bytes));
  if (model.split_count)
    text += fmt::format("  part of   {} files; only this one was looked at\n", *model.split_count);
  const std::string read = type_names(model, true);
  const std::string not_read = type_names(model, false);
  if (!read.empty()) text += fmt::format("  read      {}\n", read);
  if (!not_read.empty())
    text += fmt::format("  not read  {}: Halftone does not know their numbers\n", not_read);
  if (check.numbers_checked)
    text += fmt::format("  sha256    {}, of the file: GGUF has no checksum\n", check.sha256);
  return text;
}

}  // namespace

void verify_gguf(const GgufOptions& options, Console& console) {
  const GgufCheck check = check_gguf(options.path, !options.fast);
  if (options.json) {
    console.result(check_json(check).dump(-1, ' ', false, CheckJson::error_handler_t::replace) + "\n");
  } else if (check.findings.empty()) {
    console.result(check_text(options.path, check));
  }
  throw_findings(options.path, check.findings);
}

}  // namespace halftone::cli
