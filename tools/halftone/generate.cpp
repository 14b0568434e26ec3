// halftone generate: continues a text with a language model.
#include "halftone/decoder/generate.h"

#include <fmt/format.h>
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
#include "halftone/cli/table.h"

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
  cat story.txt | halftone generate model.gguf --json --logprobs)";

struct GenerateRequest {
  std::string model, named_model;  ///< one of them
  std::optional<std::string> prompt;
  DecoderOptions decoder;
  GenerateOptions generate;
};

std::string prompt_of(const GenerateRequest& request) {
  if (request.prompt && *request.prompt != "-") return *request.prompt;
  if (!request.prompt && isatty(STDIN_FILENO) == 1)
    throw UsageError("there is no prompt: give --prompt TEXT, or a text on stdin");
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

double per_second(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

/// The first token of an answer comes with the prompt.
int64_t steps_of(const GeneratedText& answer) {
  return std::max<int64_t>(0, static_cast<int64_t>(answer.tokens.size()) - 1);
}

nlohmann::ordered_json as_json(const Generator& generator, const GeneratedText& answer) {
  const DecoderInfo& info = generator.info();
  nlohmann::ordered_json report = {
      {"text", answer.text},
      {"tokens", answer.tokens},
      {"stop_reason", to_string(answer.stop_reason)},
      {"prompt_tokens", answer.prompt_tokens},
      {"prompt_seconds", answer.prompt_seconds},
      {"prompt_tokens_per_second", per_second(answer.prompt_tokens, answer.prompt_seconds)},
      {"answer_seconds", answer.answer_seconds},
      {"tokens_per_second", per_second(steps_of(answer), answer.answer_seconds)},
      {"model",
       {{"architecture", info.architecture},
        {"name", info.name},
        {"scheme", info.scheme},
        {"layers", info.layers},
        {"width", info.width},
        {"heads", info.heads},
        {"kv_heads", info.kv_heads},
        {"vocabulary", info.vocabulary},
        {"context", info.context},
        {"trained_context", info.trained_context},
        {"parameters", info.parameters},
        {"weight_bytes", info.weight_bytes},
        {"cache_bytes", info.cache_bytes}}}};
  if (!answer.logprobs.empty()) report["logprobs"] = answer.logprobs;
  return report;
}

void generate(GenerateRequest request, const CommonOptions& common, Console& console) {
  if (request.model.empty()) request.model = request.named_model;
  if (request.model.empty()) throw UsageError("MODEL is missing: halftone generate model.gguf -p TEXT");
  const std::string prompt = prompt_of(request);
  request.decoder.threads = common.threads;
  // Before the model is loaded, which takes seconds.
  parse_scheme_option([&] { require_decoder_scheme(request.decoder.scheme); });
  std::optional<Generator> generator;
  {
    std::optional<ProgressBar> bar;
    request.decoder.progress = [&](int64_t done, int64_t total, std::string_view) {
      if (!bar) bar.emplace(console, "reading weights", total);
      bar->update(done);
    };
    generator.emplace(Generator::open(request.model, request.decoder));
  }
  const DecoderInfo& info = generator->info();
  console.detail(fmt::format("{}: {} layers, {} parameters, {} as {}, {} for the KV cache of {} tokens",
                             info.name.empty() ? info.architecture : info.name, info.layers, info.parameters,
                             describe_bytes(info.weight_bytes), info.scheme, describe_bytes(info.cache_bytes),
                             info.context));
  if (!common.json) {
    request.generate.on_text = [&](std::string_view text) {
      console.result(text);
      std::fflush(stdout);  // a text that comes word by word is read so
      return true;
    };
  }
  const GeneratedText answer = generator->generate(prompt, request.generate);
  if (common.json) return console.result(as_json(*generator, answer).dump() + "\n");
  console.result("\n");
  std::fflush(stdout);
  console.info(fmt::format(
      "{} tokens of prompt in {:.2f} s ({:.0f} a second), {} of answer in {:.2f} s ({:.1f} a second); {}",
      answer.prompt_tokens, answer.prompt_seconds, per_second(answer.prompt_tokens, answer.prompt_seconds),
      answer.tokens.size(), answer.answer_seconds, per_second(steps_of(answer), answer.answer_seconds),
      to_string(answer.stop_reason)));
}

/// --temp: HALFTONE_TEMP.
CLI::Option* with_variable(CLI::Option* option) {
  std::string name = "HALFTONE_" + option->get_lnames().front();
  for (char& letter : name) letter = letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
  return option->envname(name);
}

void add_sampling_options(CLI::App& command, SamplingOptions& sampling) {
  const auto add = [&](const char* names, auto& value, const char* what, const char* type) {
    return with_variable(command.add_option(names, value, what)->type_name(type)->capture_default_str());
  };
  add("--temp", sampling.temperature, "Temperature; 0: always the most probable token", "T")
      ->check(CLI::NonNegativeNumber);
  add("--top-k", sampling.top_k, "Draw from the K most probable tokens; 0: all", "K")
      ->check(CLI::NonNegativeNumber);
  add("--top-p", sampling.top_p, "From the most probable that together have probability P", "P")
      ->check(CLI::Range(1e-9, 1.0));
  add("--min-p", sampling.min_p, "From those with at least P times the highest probability", "P")
      ->check(CLI::Range(0.0, 1.0));
  add("--repeat-penalty", sampling.repeat_penalty,
      "Makes tokens that are there already less probable; 1: not", "X")
      ->check(CLI::PositiveNumber);
  add("--repeat-last-n", sampling.repeat_last, "How many of the last tokens that counts", "N")
      ->check(CLI::NonNegativeNumber);
  add("-s,--seed", sampling.seed, "The same seed gives the same text", "N");
}

}  // namespace

void add_generate(CLI::App& app, CommandLine& line) {
  auto request = std::make_shared<GenerateRequest>();
  CLI::App* command = app.add_subcommand("generate", kGenerateDescription);
  command->footer(kGenerateExamples);
  auto* model =
      command
          ->add_option(
              "MODEL", request->model,
              "The model: a .gguf file, or a folder with\nconfig.json, tokenizer.json and .safetensors files")
          ->type_name("");
  with_variable(
      command->add_option("-m,--model", request->named_model, "The same, as llama.cpp's programs take it")
          ->type_name("F.gguf")
          ->excludes(model));
  with_variable(
      command->add_option("-p,--prompt", request->prompt, "The text to continue; - or nothing: from stdin")
          ->type_name("TEXT"));
  with_variable(
      command->add_option("-n,--predict", request->generate.max_tokens, "Tokens of the answer, at most")
          ->type_name("N")
          ->check(CLI::NonNegativeNumber)
          ->capture_default_str());
  with_variable(command
                    ->add_option("-c,--ctx-size", request->decoder.context,
                                 "Tokens of prompt and answer together\n(default: the model's, at most 2048)")
                    ->type_name("N")
                    ->check(CLI::PositiveNumber));
  with_variable(command
                    ->add_option("--scheme", request->decoder.scheme,
                                 "How weights are stored and multiplied; halftone schemes lists them")
                    ->type_name("S")
                    ->capture_default_str());
  command->add_option("--stop", request->generate.stop, "A text that ends the answer; may be repeated")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--logprobs", request->generate.logprobs,
                    "With --json: the logarithm of each token's probability");
  add_sampling_options(*command, request->generate.sampling);
  add_common_options(*command, line.common);
  command->callback([&line, request] {
    line.job = [&line, request](Console& console) { generate(*request, line.common, console); };
  });
}

}  // namespace halftone::cli
