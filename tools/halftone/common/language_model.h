// What the commands of language models share: options, opening the model, figures.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/command_line.h"
#include "halftone/decoder/generate.h"

namespace CLI {
class Option;
}

namespace halftone::cli {

class Console;

struct LanguageModelOptions {
  std::string model, named_model;  ///< one of them
  DecoderOptions decoder;
  GenerateOptions generate;
};

/// Puts MODEL, --predict, --ctx-size, --scheme, --stop and the options of sampling on a subcommand, by llama.cpp's letters.
void add_language_model_options(CLI::App& command, LanguageModelOptions& options);
/// --temp can be set by HALFTONE_TEMP.
CLI::Option* with_variable(CLI::Option* option);

/// Reads and compiles the model, with a progress bar. UsageError if there is no MODEL; `example` is a right command line.
Generator open_language_model(LanguageModelOptions& options, const CommonOptions& common,
                              const std::string& example, Console& console);

/// Text, tokens, times.
nlohmann::ordered_json answer_as_json(const GeneratedText& answer);
nlohmann::ordered_json model_as_json(const DecoderInfo& info);
/// "12 tokens of prompt in 0.02 s (600 a second), …": for stderr.
std::string describe_speed(const GeneratedText& answer);

}  // namespace halftone::cli
