// Selects the models of a suite that run.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <regex>

#include "base/errors.h"
#include "bench/run/job.h"
#include "halftone/bench/bench.h"
#include "halftone/cli/message.h"

namespace halftone {
namespace {

std::vector<std::string> models_of_suite(const std::string& suite) {
  std::vector<std::string> models;
  if (suite == "builtin") {
    for (const BenchModelInfo& info : bench_models()) models.push_back(info.name);
    return models;
  }
  std::error_code error;
  if (std::filesystem::is_regular_file(suite, error)) {
    if (!is_model_file(suite))
      fail(ErrorCode::kInvalidArgument, "suite {}: a model is a .pt2 or a .ht file", suite);
    return {suite};
  }
  if (!std::filesystem::is_directory(suite, error))
    fail(ErrorCode::kNotFound, "suite {}: neither \"builtin\" nor a folder nor a file", suite);
  for (const auto& entry : std::filesystem::directory_iterator(suite)) {
    if (entry.path().extension() == ".pt2" && entry.is_regular_file())
      models.push_back(entry.path().string());
  }
  if (models.empty()) fail(ErrorCode::kInvalidArgument, "suite {}: there is no .pt2 file in it", suite);
  std::sort(models.begin(), models.end());
  return models;
}

/// Keeps the models whose names match, or those that do not.
void keep_matching(std::vector<std::string>& models, const char* role, const std::string& pattern,
                   bool matching) {
  if (pattern.empty()) return;
  const size_t before = models.size();
  size_t matched = 0;
  try {
    const std::regex regex(pattern, std::regex::ECMAScript);
    std::erase_if(models, [&](const std::string& model) {
      const bool match = std::regex_match(bench_row_name(model), regex);
      matched += match ? 1 : 0;
      return match != matching;
    });
  } catch (const std::regex_error& error) {
    fail(ErrorCode::kInvalidArgument, "{} \"{}\" is no regular expression: {}", role, pattern, error.what());
  }
  if (matched == 0)
    fail(ErrorCode::kInvalidArgument, "{} \"{}\" matches none of the {}", role, pattern,
         counted(before, "model"));
}

int partition_number(std::string_view digits, std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    fail(ErrorCode::kInvalidArgument, "partition \"{}\": must be K/N, such as 2/4", text);
  return number;
}

}  // namespace

void set_partition(BenchSelection& selection, std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos)
    fail(ErrorCode::kInvalidArgument, "partition \"{}\": must be K/N, such as 2/4", text);
  const int part = partition_number(text.substr(0, slash), text);
  const int parts = partition_number(text.substr(slash + 1), text);
  if (parts < 1 || part < 1 || part > parts)
    fail(ErrorCode::kInvalidArgument, "partition \"{}\": K must be from 1 to N", text);
  selection.part = part;
  selection.parts = parts;
}

std::vector<std::string> select_bench_models(const std::string& suite, const BenchSelection& selection) {
  if (selection.parts < 1 || selection.part < 1 || selection.part > selection.parts)
    fail(ErrorCode::kInvalidArgument, "part {} of {}", selection.part, selection.parts);
  std::vector<std::string> models = models_of_suite(suite);
  keep_matching(models, "only", selection.only, true);
  keep_matching(models, "exclude", selection.exclude, false);
  std::vector<std::string> part;
  for (size_t i = static_cast<size_t>(selection.part) - 1; i < models.size();
       i += static_cast<size_t>(selection.parts))
    part.push_back(models[i]);
  if (part.empty()) {
    fail(ErrorCode::kInvalidArgument, "suite {}: no model is left in part {} of {} of {}", suite,
         selection.part, selection.parts, models.size());
  }
  return part;
}

}  // namespace halftone
