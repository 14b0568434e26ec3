// halftone completion: scripts that complete commands and options in a shell, made from the parser itself.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common/command_line.h"
#include "common/console.h"

namespace halftone::cli {

namespace {

constexpr const char* kCompletionDescription =
    "Print a script that completes commands, options and files in a shell\n\n"
    "bash: put it into ~/.bashrc, or save it as ~/.local/share/bash-completion/completions/halftone.\n"
    "zsh: save it as _halftone in a folder of $fpath. fish: save it as\n"
    "~/.config/fish/completions/halftone.fish.";
constexpr const char* kCompletionExamples = R"(Examples:
  halftone completion bash > ~/.local/share/bash-completion/completions/halftone
  source <(halftone completion bash)
  halftone completion zsh > ~/.zfunc/_halftone
  halftone completion fish > ~/.config/fish/completions/halftone.fish)";

struct CompletedOption {
  std::vector<std::string> names;  ///< "-o", "--output"
  std::string what;                ///< the first line of its help
  bool takes_value = false;
};

struct CompletedCommand {
  std::string name;
  std::string what;
  std::vector<CompletedOption> options;
};

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

CompletedOption completed(const CLI::Option& option) {
  CompletedOption result;
  for (const std::string& name : option.get_snames()) result.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) result.names.push_back("--" + name);
  result.what = first_line(option.get_description());
  result.takes_value = option.get_items_expected_max() > 0;
  return result;
}

/// What the program starts itself has no group, and no completion.
std::vector<CompletedCommand> commands_of(const CLI::App& app) {
  std::vector<CompletedCommand> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_group().empty()) continue;
    CompletedCommand& entry = commands.emplace_back();
    entry.name = command->get_name();
    entry.what = first_line(command->get_description());
    for (const CLI::Option* option : command->get_options())
      if (!option->get_positional()) entry.options.push_back(completed(*option));
  }
  return commands;
}

std::vector<std::string> names_of(const CompletedCommand& command) {
  std::vector<std::string> names;
  for (const CompletedOption& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

/// For text between single quotes.
std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// Files, unless the word begins with a dash or a command is still to come.
std::string bash_script(const std::vector<CompletedCommand>& commands) {
  std::string names, cases;
  for (const CompletedCommand& command : commands) {
    names += (names.empty() ? "" : " ") + command.name;
    cases += fmt::format("    {}) options={} ;;\n", command.name,
                         shell_quoted(fmt::format("{}", fmt::join(names_of(command), " "))));
  }
  return fmt::format(R"(# bash completion for halftone
_halftone() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" options=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W {} -- "$word"))
    return
  fi
  if [ "${{COMP_WORDS[1]}}" = help ]; then
    COMPREPLY=($(compgen -W {} -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -o bashdefault -F _halftone halftone
)",
                     shell_quoted(names + " help --help --version"), shell_quoted(names), cases);
}

/// Brackets and colons have a meaning in the specifications of _arguments and _describe.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_script(const std::vector<CompletedCommand>& commands) {
  std::string names, cases;
  for (const CompletedCommand& command : commands) {
    names += fmt::format("    {}\n", shell_quoted(command.name + ":" + zsh_text(command.what)));
    std::string options;
    for (const CompletedOption& option : command.options) {
      for (const std::string& name : option.names)
        options += fmt::format(" \\\n        {}",
                               shell_quoted(fmt::format("*{}[{}]{}", name, zsh_text(option.what),
                                                        option.takes_value ? ":value:_files" : "")));
    }
    cases +=
        fmt::format("    {})\n      _arguments{} \\\n        '*:file:_files' ;;\n", command.name, options);
  }
  return fmt::format(R"(#compdef halftone
_halftone() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command="$words[2]"
  shift words
  (( CURRENT-- ))
  case "$command" in
{}  esac
}}
if [ "$funcstack[1]" = _halftone ]; then _halftone "$@"; else compdef _halftone halftone; fi
)",
                     names, cases);
}

std::string fish_script(const std::vector<CompletedCommand>& commands) {
  std::string text = "# fish completion for halftone\n";
  for (const CompletedCommand& command : commands) {
    text += fmt::format("complete -c halftone -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                        shell_quoted(command.what));
    for (const CompletedOption& option : command.options) {
      text += fmt::format("complete -c halftone -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& name : option.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      text += fmt::format("{} -d {}\n", option.takes_value ? " -r" : "", shell_quoted(option.what));
    }
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& app, CommandLine& line) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", kCompletionDescription);
  command->footer(kCompletionExamples);
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("")
      ->check(CLI::Validator(
          [](const std::string& name) {
            const bool known = name == "bash" || name == "zsh" || name == "fish";
            return known ? std::string() : fmt::format("\"{}\" is not known; known: bash, zsh, fish", name);
          },
          ""));
  // What is parsed is what is completed: the commands are taken from the parser when the job runs.
  command->callback([shell, &app, &line] {
    line.job = [shell, commands = commands_of(app)](Console& console) {
      console.result(*shell == "bash"  ? bash_script(commands)
                     : *shell == "zsh" ? zsh_script(commands)
                                       : fish_script(commands));
    };
  });
}

}  // namespace halftone::cli
