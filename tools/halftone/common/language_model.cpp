#include "common/language_model.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/console.h"
#include "halftone/cli/table.h"

namespace halftone::cli {

namespace {

double per_second(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

/// The first token of an answer comes with the prompt.
int64_t steps_of(const GeneratedText& answer) {
  return std::max<int64_t>(0, static_cast<int64_t>(answer.tokens.size()) - 1);
}

/// A Conversation computes only what its cache does not have.
int64_t computed_tokens(const GeneratedText& answer) {
  return answer.prompt_tokens - answer.reused_tokens;
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

CLI::Option* with_variable(CLI::Option* option) {
  std::string name = "HALFTONE_" + option->get_lnames().front();
  for (char& letter : name) letter = letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
  return option->envname(name);
}

void add_language_model_options(CLI::App& command, LanguageModelOptions& options) {
  auto* model =
      command
          .add_option(
              "MODEL", options.model,
              "The model: a .gguf file, or a folder with\nconfig.json, tokenizer.json and .safetensors files")
          ->type_name("");
  with_variable(
      command.add_option("-m,--model", options.named_model, "The same, as llama.cpp's programs take it")
          ->type_name("F.gguf")
          ->excludes(model));
  with_variable(
      command.add_option("-n,--predict", options.generate.max_tokens, "Tokens of the answer, at most")
          ->type_name("N")
          ->check(CLI::NonNegativeNumber)
          ->capture_default_str());
  with_variable(command
                    .add_option("-c,--ctx-size", options.decoder.context,
                                "Tokens of prompt and answer together\n(default: the model's, at most 2048)")
                    ->type_name("N")
                    ->check(CLI::PositiveNumber));
  with_variable(command
                    .add_option("--scheme", options.decoder.scheme,
                                "How weights are stored and multiplied; halftone schemes lists them")
                    ->type_name("S")
                    ->capture_default_str());
  command.add_option("--stop", options.generate.stop, "A text that ends the answer; may be repeated")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_sampling_options(command, options.generate.sampling);
}

Generator open_language_model(LanguageModelOptions& options, const CommonOptions& common,
                              const std::string& example, Console& console) {
  if (options.model.empty()) options.model = options.named_model;
  if (options.model.empty()) throw UsageError("MODEL is missing: " + example);
  options.decoder.threads = common.threads;
  // Before the model is loaded, which takes seconds.
  parse_scheme_option([&] { require_decoder_scheme(options.decoder.scheme); });
  std::optional<ProgressBar> bar;
  options.decoder.progress = [&](int64_t done, int64_t total, std::string_view) {
    if (!bar) bar.emplace(console, "reading weights", total);
    bar->update(done);
  };
  Generator generator = Generator::open(options.model, options.decoder);
  bar.reset();
  options.decoder.progress = {};
  const DecoderInfo& info = generator.info();
  console.detail(fmt::format("{}: {} layers, {} parameters, {} as {}, {} for the KV cache of {} tokens",
                             info.name.empty() ? info.architecture : info.name, info.layers, info.parameters,
                             describe_bytes(info.weight_bytes), info.scheme, describe_bytes(info.cache_bytes),
                             info.context));
  return generator;
}

nlohmann::ordered_json answer_as_json(const GeneratedText& answer) {
  nlohmann::ordered_json report = {
      {"text", answer.text},
      {"tokens", answer.tokens},
      {"stop_reason", to_string(answer.stop_reason)},
      {"prompt_tokens", answer.prompt_tokens},
      {"prompt_seconds", answer.prompt_seconds},
      {"prompt_tokens_per_second", per_second(computed_tokens(answer), answer.prompt_seconds)},
      {"answer_seconds", answer.answer_seconds},
      {"tokens_per_second", per_second(steps_of(answer), answer.answer_seconds)}};
  if (!answer.logprobs.empty()) report["logprobs"] = answer.logprobs;
  return report;
}

nlohmann::ordered_json model_as_json(const DecoderInfo& info) {
  return {{"architecture", info.architecture},
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
          {"cache_bytes", info.cache_bytes}};
}

std::string describe_speed(const GeneratedText& answer) {
  const std::string kept =
      answer.reused_tokens > 0 ? fmt::format(" ({} more were in the cache)", answer.reused_tokens) : "";
  return fmt::format(
      "{} tokens of prompt{} in {:.2f} s ({:.0f} a second), {} of answer in {:.2f} s ({:.1f} a second); {}",
      computed_tokens(answer), kept, answer.prompt_seconds,
      per_second(computed_tokens(answer), answer.prompt_seconds), answer.tokens.size(), answer.answer_seconds,
      per_second(steps_of(answer), answer.answer_seconds), to_string(answer.stop_reason));
}

}  // namespace halftone::cli
