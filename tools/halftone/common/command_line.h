// Shared by all subcommands: the options, the exit codes, and how a subcommand puts itself on the command
// line.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "halftone/base/error.h"

namespace CLI {
class App;
}

namespace halftone::cli {

class Console;

/// Exit codes of the program, the same for every subcommand.
enum ExitCode { kDone = 0, kJobFailed = 1, kWrongCommandLine = 2 };

struct CommonOptions {
  bool quiet = false;
  bool verbose = false;
  bool json = false;
  int threads = 0;  ///< 0: as many as torch wants
};

/// A wrong command line that shows only when the job begins, such as an unknown scheme:
/// kWrongCommandLine.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(ErrorCode::kInvalidArgument, message) {}
};

/// What `parse` gives. The library's kInvalidArgument or kNotFound about a name or number that the user typed
/// becomes a UsageError.
template <typename Parse>
auto parse_option(Parse&& parse) {
  try {
    return parse();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument && error.code() != ErrorCode::kNotFound) throw;
    throw UsageError(error.what());
  }
}

/// As parse_option(), for names of schemes: one that is known but cannot be done here (kUnsupported: it needs
/// data, it measures) is a wrong command line too. The message has the command that does it.
template <typename Parse>
auto parse_scheme_option(Parse&& parse) {
  try {
    return parse_option(parse);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    throw UsageError(error.what());
  }
}

/// UsageError, with the nearest name and all known ones, where the name that was given to this option is none
/// of them.
void require_known(const char* option, const std::string& name, const std::vector<std::string>& known);
/// For CLI::Validator: what is wrong with a regular expression; "" if nothing is.
std::string check_pattern(const std::string& pattern);

/// For CLI::Validator: what is wrong with a number that must be above 0, or not below it. The parser's own
/// validators spell out the largest double.
std::string check_positive(const std::string& number);
std::string check_not_negative(const std::string& number);

/// How a model's file is opened.
struct ModelOptions {
  std::string path;
  std::vector<std::string> libraries;  ///< shared libraries with custom operators, loaded before the model
  bool map = true;
  int64_t max_steps = 0;  ///< of a loop; 0: the library's default
};

/// What parsing gives: the options that all share, and the job of the subcommand that was named.
struct CommandLine {
  CommonOptions common;
  std::function<void(Console&)> job;
  int exit_code = 0;  ///< of a job that ends well; others than 0 are for what the command line documents
};

/// Puts --threads, --quiet and --verbose on a subcommand.
void add_effort_options(CLI::App& command, CommonOptions& options);
/// The same and --json.
void add_common_options(CLI::App& command, CommonOptions& options);
/// Puts --max-steps on a subcommand.
void add_steps_option(CLI::App& command, int64_t& max_steps);
/// Puts --load-library on a subcommand.
void add_library_option(CLI::App& command, std::vector<std::string>& libraries);
/// Puts MODEL, --load-library, --no-mmap and --max-steps on a subcommand.
void add_model_options(CLI::App& command, ModelOptions& options);

// One function a subcommand, in the file of that name. `line` must outlive the parser.
void add_autoquant(CLI::App& app, CommandLine& line);
void add_backends(CLI::App& app, CommandLine& line);
void add_bench(CLI::App& app, CommandLine& line);
void add_bench_child(CLI::App& app, CommandLine& line);
void add_chat(CLI::App& app, CommandLine& line);
void add_compare(CLI::App& app, CommandLine& line);
void add_completion(CLI::App& app, CommandLine& line);
void add_diagnose(CLI::App& app, CommandLine& line);
void add_eval(CLI::App& app, CommandLine& line);
void add_generate(CLI::App& app, CommandLine& line);
void add_inspect(CLI::App& app, CommandLine& line);
void add_kernels(CLI::App& app, CommandLine& line);
void add_minify(CLI::App& app, CommandLine& line);
void add_ptq(CLI::App& app, CommandLine& line);
void add_quantize(CLI::App& app, CommandLine& line);
void add_run(CLI::App& app, CommandLine& line);
void add_schemes(CLI::App& app, CommandLine& line);
void add_trial(CLI::App& app, CommandLine& line);
void add_tune(CLI::App& app, CommandLine& line);
void add_verify(CLI::App& app, CommandLine& line);

}  // namespace halftone::cli
