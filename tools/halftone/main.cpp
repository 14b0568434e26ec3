// The command line of Halftone: parses, runs the subcommand, and turns every failure into a message and an
// exit code.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/console.h"
#include "halftone/base/error.h"
#include "halftone/base/version.h"
#include "halftone/cli/interrupt.h"
#include "halftone/cli/message.h"
#include "halftone/cli/names.h"

namespace halftone::cli {

namespace {

constexpr const char* kMainDescription =
    "Halftone makes PyTorch models small and fast, and runs them without Python.";
constexpr const char* kMainExamples = R"(Examples:
  halftone tune model.pt2 -o tuned.ht     find the fastest way to run it that gives the same answers
  halftone run tuned.ht --repeat 50       run that on the model's sample inputs and time it
  halftone inspect model.pt2              what is in the model, layer by layer
  halftone run --help                     all options of one command

Exit codes: 0 done, 1 the job failed, 2 wrong command line, 130 interrupted.
Results go to stdout, messages to stderr.)";

/// Lists subcommands with the first line of their description only: the summary.
class SummaryFormatter : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string& description = command->get_description();
    std::ostringstream line;
    CLI::detail::format_help(line, command->get_name(), description.substr(0, description.find('\n')),
                             column_width_);
    return line.str();
  }

  /// Without the parser's own count: "M N K SCHEME x 4".
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option);
    const std::string count = fmt::format(" x {}", option->get_expected_min());
    const size_t place = option->get_expected_min() > 1 ? text.find(count) : std::string::npos;
    return place == std::string::npos ? text : text.substr(0, place) + text.substr(place + count.size());
  }
};

/// One paragraph: torch's messages come with blank lines and trailing spaces.
std::string one_paragraph(const std::string& text) {
  std::string paragraph;
  for (const std::string& line : CLI::detail::split(bounded_message(text), '\n')) {
    const size_t end = line.find_last_not_of(" \t\r");
    if (end == std::string::npos) continue;
    if (!paragraph.empty()) paragraph += '\n';
    paragraph += line.substr(0, end + 1);
  }
  return paragraph;
}

Verbosity verbosity_of(const CommonOptions& options) {
  if (options.quiet) return Verbosity::kQuiet;
  return options.verbose ? Verbosity::kVerbose : Verbosity::kNormal;
}

int run_job(const CommandLine& line) {
  try {
    end_on_interrupt();
    Console console(verbosity_of(line.common));
    if (line.common.threads > 0) at::set_num_threads(line.common.threads);
    const c10::AutoGradMode no_grad(false);
    line.job(console);
    console.flush();
    return line.exit_code;
  } catch (const UsageError& error) {
    Console::error(one_paragraph(error.what()));
    return kWrongCommandLine;
  } catch (const Error& error) {
    Console::error(one_paragraph(error.what()));
  } catch (const c10::Error& error) {
    Console::error(one_paragraph(error.what_without_backtrace()));
  } catch (const std::bad_alloc&) {
    Console::error("out of memory");
  } catch (const std::exception& error) {
    Console::error(one_paragraph(error.what()));
  }
  return kJobFailed;
}

/// Those that --help lists: what the program starts itself has no group.
std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// The first word must name a command. "help" and "help COMMAND" are as good as --help.
std::vector<std::string> command_first(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty()) return words;
  if (words.front() == "help") {
    words.erase(words.begin());
    words.resize(std::min<size_t>(words.size(), 1));
    words.emplace_back("--help");
  }
  const std::string& first = words.front();
  const auto commands =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == first; });
  if (!commands.empty()) return words;
  const std::vector<std::string> known = command_names(app);
  if (!first.starts_with("-"))
    throw UsageError(fmt::format("there is no command \"{}\"{}. There are: {}", first,
                                 did_you_mean(first, known), fmt::join(known, ", ")));
  const auto command = std::find_if(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(known.begin(), known.end(), word) != known.end();
  });
  if (command != words.end() && first != "--help" && first != "-h" && first != "--version")
    throw UsageError(fmt::format("options stand behind the command: halftone {} … {}", *command, first));
  return words;
}

/// What the parser could not place, as a sentence.
std::string unexpected(const CLI::App& app, const CLI::ParseError& error) {
  const auto commands = app.get_subcommands();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || commands.empty()) return error.what();
  const CLI::App& command = *commands.front();
  std::vector<std::string> left = app.remaining(/*recurse=*/true);
  const auto option =
      std::find_if(left.begin(), left.end(), [](const std::string& word) { return word.starts_with("-"); });
  if (option == left.end()) {
    return left.empty()
               ? error.what()
               : fmt::format("\"{}\" was not expected behind halftone {}", left.front(), command.get_name());
  }
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("halftone {} has no option {}{}", command.get_name(), name,
                     did_you_mean(name, option_names(command)));
}

int parse_and_run(int argc, char** argv) {
  CLI::App app(kMainDescription, "halftone");
  auto formatter = std::make_shared<SummaryFormatter>();
  formatter->column_width(28);
  app.formatter(formatter);
  app.set_version_flag("--version", fmt::format("halftone {} (torch {})", version(), torch_version()),
                       "Print the versions of Halftone and torch");
  app.require_subcommand(
      0, 1);  // none is refused below, after unknown names, which the user should hear of first
  app.footer(kMainExamples);
  CommandLine line;
  add_autoquant(app, line);
  add_backends(app, line);
  add_bench(app, line);
  add_bench_child(app, line);
  add_chat(app, line);
  add_compare(app, line);
  add_completion(app, line);
  add_diagnose(app, line);
  add_eval(app, line);
  add_generate(app, line);
  add_inspect(app, line);
  add_kernels(app, line);
  add_minify(app, line);
  add_ptq(app, line);
  add_quantize(app, line);
  add_run(app, line);
  add_schemes(app, line);
  add_trial(app, line);
  add_tune(app, line);
  add_verify(app, line);
  try {
    std::vector<std::string> words = command_first(app, {argv + 1, argv + argc});
    std::reverse(words.begin(), words.end());  // as the parser takes them
    app.parse(std::move(words));
    if (!line.job)
      throw CLI::RequiredError(fmt::format("A command ({})", fmt::join(command_names(app), ", ")));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app.exit(error);  // help and version, on stdout
      return kDone;
    }
    const auto named = app.get_subcommands();
    Console::error(fmt::format("{}\nSee: halftone{} --help", unexpected(app, error),
                               named.empty() ? "" : " " + named.front()->get_name()));
    return kWrongCommandLine;
  } catch (const UsageError& error) {
    Console::error(fmt::format("{}\nSee: halftone --help", error.what()));
    return kWrongCommandLine;
  }
  return run_job(line);
}

}  // namespace

}  // namespace halftone::cli

int main(int argc, char** argv) {
  return halftone::cli::parse_and_run(argc, argv);
}
