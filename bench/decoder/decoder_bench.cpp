// Tokens a second of a GGUF file: a prompt of 512 tokens, an answer of 128; each scheme in its turn, round after round.
//
//   decoder_bench MODEL.gguf [--schemes int8dq,int4wo] [--rounds 5] [--prompt 512] [--answer 128] [--threads N] [--json]
//
// The first round makes plans and packs weights, and is not counted. "of bandwidth" is what the weights and the cache of
// an answer's token take at the read bandwidth that is measured in the same run, divided by the token's time.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "halftone/cli/table.h"
#include "halftone/decoder/generate.h"
#include "kernels/peaks/peaks.h"

namespace {

using halftone::Align;

struct Settings {
  std::string model;
  std::vector<std::string> schemes = {"int8dq", "int8wo", "int4wo", "int4wo-int8act"};
  int64_t prompt = 512, answer = 128;
  int rounds = 5, threads = 0;
  bool json = false;
};

struct Candidate {
  halftone::Generator generator;
  std::string prompt;
  std::vector<double> prompt_rates, answer_rates;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

/// A text of `count` tokens.
std::string prompt_of(const halftone::Generator& generator, int64_t count) {
  const std::string words =
      "The house stood at the end of a long road, and every evening a light was seen there. ";
  std::string text;
  while (static_cast<int64_t>(generator.tokenizer().encode(text).size()) < count) text += words;
  std::vector<int64_t> tokens = generator.tokenizer().encode(text, {.add_special = false});
  tokens.resize(static_cast<size_t>(std::max<int64_t>(1, count - 1)));
  return generator.tokenizer().decode(tokens);
}

void take_turn(Candidate& candidate, int64_t answer, bool counted) {
  halftone::GenerateOptions options{.max_tokens = answer};
  options.sampling.temperature = 0;
  const halftone::GeneratedText made = candidate.generator.generate(candidate.prompt, options);
  if (!counted || made.tokens.size() < 2) return;
  candidate.prompt_rates.push_back(static_cast<double>(made.prompt_tokens) / made.prompt_seconds);
  candidate.answer_rates.push_back(static_cast<double>(made.tokens.size() - 1) / made.answer_seconds);
}

int run(const Settings& settings) {
  const int threads = settings.threads > 0 ? settings.threads : at::get_num_threads();
  halftone::ThreadPool pool(threads);
  const double bandwidth = halftone::kernels::measure_peaks(pool, 10).read_gbs * 1e9;
  std::vector<Candidate> candidates;
  for (const std::string& scheme : settings.schemes) {
    halftone::DecoderOptions options{.scheme = scheme, .context = settings.prompt + settings.answer + 64};
    options.threads = settings.threads;
    candidates.push_back({halftone::Generator::open(settings.model, options), "", {}, {}});
    candidates.back().prompt = prompt_of(candidates.back().generator, settings.prompt);
  }
  for (int round = 0; round <= settings.rounds; ++round) {
    for (Candidate& candidate : candidates) take_turn(candidate, settings.answer, round > 0);
  }
  nlohmann::ordered_json report = {{"read_bytes_per_second", bandwidth},
                                   {"schemes", nlohmann::json::array()}};
  std::vector<halftone::Row> rows;
  for (const Candidate& candidate : candidates) {
    if (candidate.answer_rates.empty()) {
      fmt::print(stderr, "decoder_bench: {} ends its answer at once\n", candidate.generator.info().scheme);
      return 1;
    }
    const halftone::DecoderInfo& info = candidate.generator.info();
    const double prompt = median(candidate.prompt_rates), answer = median(candidate.answer_rates);
    const double share = static_cast<double>(info.weight_bytes) * answer / bandwidth;
    rows.push_back({info.scheme, fmt::format("{:.0f}", prompt), fmt::format("{:.1f}", answer),
                    halftone::describe_bytes(info.weight_bytes), fmt::format("{:.0f} %", 100 * share)});
    report["schemes"].push_back({{"scheme", info.scheme},
                                 {"prompt_tokens_per_second", prompt},
                                 {"answer_tokens_per_second", answer},
                                 {"weight_bytes", info.weight_bytes},
                                 {"share_of_bandwidth", share}});
  }
  if (settings.json) {
    fmt::print("{}\n", report.dump());
    return 0;
  }
  fmt::print("{}", halftone::render_table({{"scheme"},
                                           {fmt::format("prompt of {}", settings.prompt), Align::kRight},
                                           {fmt::format("answer of {}", settings.answer), Align::kRight},
                                           {"weights", Align::kRight},
                                           {"of bandwidth", Align::kRight}},
                                          rows, 100));
  fmt::print("tokens a second, medians of {} rounds; reads {:.1f} GB/s\n", settings.rounds, bandwidth / 1e9);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("tokens a second of a GGUF file");
  app.add_option("MODEL", settings.model)->required()->check(CLI::ExistingFile);
  app.add_option("--schemes", settings.schemes)->delimiter(',');
  app.add_option("--rounds", settings.rounds)->check(CLI::PositiveNumber);
  app.add_option("--prompt", settings.prompt)->check(CLI::PositiveNumber);
  app.add_option("--answer", settings.answer)->check(CLI::PositiveNumber);
  app.add_option("--threads", settings.threads)->check(CLI::NonNegativeNumber);
  app.add_flag("--json", settings.json);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(settings);
  } catch (const halftone::Error& error) {
    fmt::print(stderr, "decoder_bench: {}\n", error.what());
    return 1;
  }
}
