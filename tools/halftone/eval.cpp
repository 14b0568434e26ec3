// halftone eval: how well a language model predicts a text, and what its scheme changed beside a reference.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/command_line.h"
#include "common/console.h"
#include "halftone/base/error.h"
#include "halftone/cli/table.h"
#include "halftone/cli/text_file.h"
#include "halftone/decoder/evaluate.h"

namespace halftone::cli {

namespace {

constexpr const char* kEvalDescription =
    "Measure how well a language model predicts a text\n\n"
    "The text is cut into windows; in each, the first half is read and the tokens of the second half are\n"
    "counted. Perplexity is exp of their mean negative log-probability: lower is better. With --reference\n"
    "the distributions of both models are compared token by token: KL divergence, and how often the most\n"
    "probable token is the same. Intervals are 95 %. Beyond --max-kl or --max-perplexity: exit code 1.";
constexpr const char* kEvalExamples = R"(Examples:
  halftone eval model.gguf --text book.txt
  halftone eval model.gguf --text book.txt --scheme int4wo --reference model.gguf --max-kl 0.05
  halftone eval model.gguf --text book.txt --windows 8 --window 256 --json)";

struct EvalRequest {
  std::string model, text;
  std::string reference, reference_scheme = "noquant";
  DecoderOptions decoder;
  EvaluateOptions evaluate;
  std::optional<double> max_kl, max_perplexity;
};

Generator open_model(const std::string& path, const std::string& scheme, const EvalRequest& request,
                     Console& console) {
  DecoderOptions options = request.decoder;
  options.scheme = scheme;
  std::optional<ProgressBar> bar;
  options.progress = [&](int64_t done, int64_t total, std::string_view) {
    if (!bar) bar.emplace(console, "reading weights", total);
    bar->update(done);
  };
  return Generator::open(path, options);
}

nlohmann::ordered_json as_json(const TokenMean& mean) {
  return {{"value", mean.value}, {"low", mean.low}, {"high", mean.high}};
}

nlohmann::ordered_json as_json(const EvalRequest& request, const Generator& model, const Evaluation& found) {
  nlohmann::ordered_json report = {{"model", request.model},
                                   {"scheme", model.info().scheme},
                                   {"weight_bytes", model.info().weight_bytes},
                                   {"windows", found.windows},
                                   {"counted_tokens", found.counted_tokens},
                                   {"perplexity", as_json(found.perplexity)}};
  if (found.reference) {
    report["reference"] = {{"model", request.reference},
                           {"scheme", request.reference_scheme},
                           {"perplexity", as_json(found.reference->perplexity)},
                           {"kl", as_json(found.reference->kl)},
                           {"max_kl", found.reference->max_kl},
                           {"same_first", as_json(found.reference->same_first)}};
  }
  return report;
}

std::string as_text(const EvalRequest& request, const Generator& model, const Evaluation& found) {
  const auto with_interval = [](const TokenMean& mean, double unit, const char* digits) {
    return fmt::format("{} ({} to {})", fmt::format(fmt::runtime(digits), unit * mean.value),
                       fmt::format(fmt::runtime(digits), unit * mean.low),
                       fmt::format(fmt::runtime(digits), unit * mean.high));
  };
  std::vector<Row> rows = {{"scheme", fmt::format("{}, {} of weights", model.info().scheme,
                                                  describe_bytes(model.info().weight_bytes))},
                           {"counted", fmt::format("{} tokens in {} window{}", found.counted_tokens,
                                                   found.windows, found.windows == 1 ? "" : "s")},
                           {"perplexity", with_interval(found.perplexity, 1, "{:.3f}")}};
  if (found.reference) {
    rows.push_back({"reference", fmt::format("{} as {}", request.reference, request.reference_scheme)});
    rows.push_back({"its perplexity", with_interval(found.reference->perplexity, 1, "{:.3f}")});
    rows.push_back({"KL divergence", with_interval(found.reference->kl, 1, "{:.5f}")});
    rows.push_back({"largest of a token", fmt::format("{:.5f}", found.reference->max_kl)});
    rows.push_back({"same first token", with_interval(found.reference->same_first, 100, "{:.1f} %")});
  }
  return render_table({{request.model}, {"95 % interval in brackets"}}, rows, kColumns);
}

void require_within(const char* option, double found, std::optional<double> limit) {
  if (limit && !(found <= *limit))
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{:.5f} is above --{} {}", found, option, *limit));
}

void eval(EvalRequest request, const CommonOptions& common, Console& console) {
  for (const std::string& scheme : {request.decoder.scheme, request.reference_scheme})
    parse_scheme_option([&] { require_decoder_scheme(scheme); });
  if (request.max_kl && request.reference.empty())
    throw UsageError("--max-kl needs a --reference to compare with");
  const std::string text = read_text_file(request.text);
  request.decoder.threads = common.threads;
  request.decoder.context = request.evaluate.window;
  const Generator model = open_model(request.model, request.decoder.scheme, request, console);
  std::optional<Generator> reference;
  if (!request.reference.empty())
    reference = open_model(request.reference, request.reference_scheme, request, console);
  std::optional<ProgressBar> bar;
  request.evaluate.progress = [&](int64_t done, int64_t total, std::string_view) {
    if (!bar) bar.emplace(console, "windows", total);
    bar->update(done);
  };
  const Evaluation found = evaluate(model, text, request.evaluate, reference ? &*reference : nullptr);
  bar.reset();
  console.result(common.json ? as_json(request, model, found).dump() + "\n" : as_text(request, model, found));
  require_within("max-perplexity", found.perplexity.value, request.max_perplexity);
  if (found.reference) require_within("max-kl", found.reference->kl.value, request.max_kl);
}

}  // namespace

void add_eval(CLI::App& app, CommandLine& line) {
  auto request = std::make_shared<EvalRequest>();
  CLI::App* command = app.add_subcommand("eval", kEvalDescription);
  command->footer(kEvalExamples);
  command->add_option("MODEL", request->model, "The model: a .gguf file, or a folder as generate takes it")
      ->type_name("")
      ->required();
  command->add_option("--text", request->text, "A text file, UTF-8")->type_name("F.txt")->required();
  command
      ->add_option("--scheme", request->decoder.scheme,
                   "How weights are stored and multiplied; halftone schemes lists them")
      ->type_name("S")
      ->capture_default_str();
  command
      ->add_option("--reference", request->reference,
                   "A model with the same tokens to compare with; the same file, say")
      ->type_name("MODEL");
  command->add_option("--reference-scheme", request->reference_scheme, "Its scheme; noquant: float32")
      ->type_name("S")
      ->capture_default_str();
  command
      ->add_option("--window", request->evaluate.window,
                   "Tokens of a window\n(default: 512, or the model's context)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command->add_option("--windows", request->evaluate.max_windows, "Windows, at most; 0: the whole text")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--max-kl", request->max_kl, "Exit code 1 if the mean KL divergence is larger")
      ->type_name("X")
      ->check(CLI::Validator(check_positive, "POSITIVE"));
  command->add_option("--max-perplexity", request->max_perplexity, "Exit code 1 if the perplexity is larger")
      ->type_name("X")
      ->check(CLI::Validator(check_positive, "POSITIVE"));
  add_common_options(*command, line.common);
  command->callback([&line, request] {
    line.job = [&line, request](Console& console) { eval(*request, line.common, console); };
  });
}

}  // namespace halftone::cli
