// halftone generate: continues a text with a language model.
#include "halftone/decoder/generate.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/command_line.h"
#include "common/console.h"
#include "common/language_model.h"
#include "halftone/decoder/conversation.h"

namespace halftone::cli {

namespace {

constexpr const char* kGenerateDescription =
    "Continue a text with a language model from a GGUF file or a folder\n\n"
    "The model's weights are made low-bit with --scheme, compiled, and run with a KV cache. The answer\n"
    "goes to stdout as it comes. Without --prompt the prompt is read from stdin. Each option may be set\n"
    "by an environment variable too: HALFTONE_TEMP=0 is --temp 0.";
constexpr const char* kGenerateExamples = R"(Examples:
  halftone generate model.gguf -p "The house stood at the end of" -n 64
  halftone generate Qwen3-0.6B/ -p "Once upon a time" --temp 0 --scheme int8wo
  halftone generate model.gguf --chat -p "What is a house?"
  cat story.txt | halftone generate model.gguf --json --logprobs)";

struct GenerateRequest : LanguageModelOptions {
  std::optional<std::string> prompt;
  bool chat = false;
};

std::string prompt_of(const GenerateRequest& request) {
  if (request.prompt && *request.prompt != "-") return *request.prompt;
  if (!request.prompt && isatty(STDIN_FILENO) == 1)
    throw UsageError("there is no prompt: give --prompt TEXT, or a text on stdin");
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

void generate(GenerateRequest request, const CommonOptions& common, Console& console) {
  constexpr const char* kExample = "halftone generate model.gguf -p TEXT";
  if (request.model.empty() && request.named_model.empty())
    throw UsageError(std::string("MODEL is missing: ") + kExample);
  const std::string prompt = prompt_of(request);
  const Generator generator = open_language_model(request, common, kExample, console);
  if (!common.json) {
    request.generate.on_text = [&](std::string_view text) {
      console.result(text);
      std::fflush(stdout);  // a text that comes word by word is read so
      return true;
    };
  }
  const GeneratedText answer = request.chat ? Conversation(generator).say(prompt, request.generate)
                                            : generator.generate(prompt, request.generate);
  if (common.json) {
    nlohmann::ordered_json report = answer_as_json(answer);
    report["model"] = model_as_json(generator.info());
    return console.result(report.dump() + "\n");
  }
  console.result("\n");
  std::fflush(stdout);
  console.info(describe_speed(answer));
}

}  // namespace

void add_generate(CLI::App& app, CommandLine& line) {
  auto request = std::make_shared<GenerateRequest>();
  CLI::App* command = app.add_subcommand("generate", kGenerateDescription);
  command->footer(kGenerateExamples);
  add_language_model_options(*command, *request);
  with_variable(
      command->add_option("-p,--prompt", request->prompt, "The text to continue; - or nothing: from stdin")
          ->type_name("TEXT"));
  command->add_flag(
      "--chat", request->chat,
      "The prompt is what a user says, and the model answers: its chat template\nis put around the text");
  command->add_flag("--logprobs", request->generate.logprobs,
                    "With --json: the logarithm of each token's probability");
  add_common_options(*command, line.common);
  command->callback([&line, request] {
    line.job = [&line, request](Console& console) { generate(*request, line.common, console); };
  });
}

}  // namespace halftone::cli
