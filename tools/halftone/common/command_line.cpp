#include "common/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

#include "halftone/cli/names.h"
#include "halftone/graph/limits.h"

namespace halftone::cli {

namespace {

constexpr int kMaxThreads = 1024;

/// NaN, which no comparison holds for, if it is none or not finite.
double number_in(const std::string& text) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double number = kNone;
  if (!CLI::detail::lexical_cast(text, number) || !std::isfinite(number)) return kNone;
  return number;
}

}  // namespace

void require_known(const char* option, const std::string& name, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw UsageError(fmt::format("{}: there is no \"{}\"{}; known: {}", option, name, did_you_mean(name, known),
                               fmt::join(known, ", ")));
}

std::string check_pattern(const std::string& pattern) {
  try {
    const std::regex ignored(pattern);
    return {};
  } catch (const std::regex_error& error) {
    return fmt::format("\"{}\" is no regular expression: {}", pattern, error.what());
  }
}

std::string check_positive(const std::string& number) {
  return number_in(number) > 0 ? "" : fmt::format("{} is not a number above 0", number);
}

std::string check_not_negative(const std::string& number) {
  return number_in(number) >= 0 ? "" : fmt::format("{} is not a number of 0 or more", number);
}

void add_effort_options(CLI::App& command, CommonOptions& options) {
  command.add_option("--threads", options.threads, "Threads for the operators (default: what torch chooses)")
      ->type_name("N")
      ->check(CLI::Range(1, kMaxThreads));
  auto* quiet = command.add_flag("--quiet", options.quiet, "No messages but warnings and errors");
  command.add_flag("--verbose", options.verbose, "More messages")->excludes(quiet);
}

void add_common_options(CLI::App& command, CommonOptions& options) {
  command.add_flag("--json", options.json, "Print the result as JSON, for programs");
  add_effort_options(command, options);
}

void add_library_option(CLI::App& command, std::vector<std::string>& libraries) {
  command
      .add_option("--load-library", libraries,
                  "Shared library with custom operators; may be repeated.\nIt is code, and it runs: only a "
                  "file that you trust")
      ->type_name("F.so")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_steps_option(CLI::App& command, int64_t& max_steps) {
  command
      .add_option(
          "--max-steps", max_steps,
          fmt::format("Steps that a loop of the model may take in one call\n(default: {})", kDefaultMaxSteps))
      ->type_name("N")
      ->check(CLI::Validator(check_positive, "POSITIVE"));
}

void add_model_options(CLI::App& command, ModelOptions& options) {
  command
      .add_option("MODEL", options.path,
                  "The model: a .pt2 file as torch.export.save writes it, or a .ht file")
      ->required()
      ->type_name("");
  add_library_option(command, options.libraries);
  command.add_flag_callback(
      "--no-mmap", [&options] { options.map = false; },
      "Read the weights instead of mapping the file: needs more memory,\nbut the file may change meanwhile");
  add_steps_option(command, options.max_steps);
}

}  // namespace halftone::cli
