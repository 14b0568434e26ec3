// minilm_accuracy --model FILE.pt2 --vocab FILE --sentences FILE… [--count N] [--markdown FILE]: what each
// scheme does to sentence embeddings. Exit 1 if a scheme misses its bound.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fortunes.h"
#include "halftone/capture/capture.h"
#include "halftone/graph/graph_module.h"
#include "halftone/quant/quantize.h"
#include "minilm/embedder.h"

namespace {

using halftone::QuantConfig;

struct Candidate {
  std::string label;
  QuantConfig config;
  bool embeddings = false;
  double min_cosine = 0;  ///< the mean cosine that is wanted; 0: only listed
  /// Where the wanted one is known to be missed: what was reached when that was found. Falling below it is a
  /// regression.
  double reached = 0;
};

std::vector<Candidate> candidates() {
  using namespace halftone;
  return {
      {"bf16wo", "bf16wo", false, 0.9999},
      {"bf16wo, embeddings too", "bf16wo", true, 0.9999},
      {"int8wo", "int8wo", false, 0.999},
      {"int8wo, embeddings too", "int8wo", true, 0.999},
      {"int8dq", "int8dq", false, 0.997},
      {"int8dq, 7-bit weights", Int8DynamicActivationInt8WeightConfig{.weight_bits = 7}, false, 0.995},
      {"int8dq, symmetric activations", Int8DynamicActivationInt8WeightConfig{.symmetric_activations = true},
       false, 0},
      {"fp8wo", "fp8wo", false, 0.998},
      {"fp8dq", "fp8dq", false, 0},
      {"int4wo, groups of 32", "int4wo", false, 0.98, 0.955},
      {"int4wo, groups of 32, zero points", Int4WeightOnlyConfig{.symmetric = false}, false, 0.98, 0.968},
      {"int4wo, groups of 32, int8 activations", Int4WeightOnlyConfig{.activations = Int4Activations::kInt8},
       false, 0.98, 0.955},
      {"int4wo, groups of 32, searched scales", Int4WeightOnlyConfig{.rounding = Int4Rounding::kSearch},
       false, 0.98, 0.962},
      {"int4wo, groups of 32, zero points, searched scales",
       Int4WeightOnlyConfig{.symmetric = false, .rounding = Int4Rounding::kSearch}, false, 0.98, 0.971},
      {"int4wo, groups of 128", Int4WeightOnlyConfig{.group_size = 128}, false, 0},
      {"intx, 6 bits, groups of 32", IntxWeightOnlyConfig{.bits = 6}, false, 0},
      {"intx, 3 bits, groups of 32", IntxWeightOnlyConfig{.bits = 3}, false, 0},
  };
}

/// Vectors of length 1, one a sentence. Sentences of like length share a batch, so that little is padded.
at::Tensor embed_all(const std::shared_ptr<halftone::GraphModule>& module, const minilm::Tokenizer& tokenizer,
                     const std::vector<std::string>& sentences) {
  constexpr size_t kBatch = 16;
  std::vector<size_t> order(sentences.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sentences[a].size() < sentences[b].size(); });
  halftone::Session session(module);
  const auto encoder = [&](const at::Tensor& ids, const at::Tensor& mask) {
    return session({ids, mask}).toTensor();
  };
  at::Tensor all;
  for (size_t start = 0; start < order.size(); start += kBatch) {
    const size_t stop = std::min(start + kBatch, order.size());
    std::vector<std::string> batch;
    for (size_t i = start; i < stop; ++i) batch.push_back(sentences[order[i]]);
    const at::Tensor vectors = minilm::embed(encoder, tokenizer, batch);
    if (!all.defined()) all = vectors.new_zeros({static_cast<int64_t>(sentences.size()), vectors.size(1)});
    for (size_t i = start; i < stop; ++i) {
      all[static_cast<int64_t>(order[i])].copy_(vectors[static_cast<int64_t>(i - start)]);
    }
  }
  return all;
}

/// For each sentence, which other one is nearest.
at::Tensor nearest(const at::Tensor& vectors) {
  at::Tensor cosines = vectors.mm(vectors.t());
  cosines.fill_diagonal_(-std::numeric_limits<double>::infinity());
  return cosines.argmax(1);
}

struct Row {
  std::string label;
  double mean_cosine, min_cosine, same_nearest, bound;
  double megabytes;
  double reached;
  bool holds() const { return mean_cosine >= bound; }
  /// A miss that was known before and has not grown.
  bool is_known_miss() const { return !holds() && reached > 0 && mean_cosine >= reached; }
};

Row measure(const Candidate& candidate, const std::string& model, const minilm::Tokenizer& tokenizer,
            const std::vector<std::string>& sentences, const at::Tensor& exact) {
  const auto module = halftone::load_pt2(model);
  const auto report = halftone::quantize_(*module, candidate.config, {.embeddings = candidate.embeddings});
  const at::Tensor vectors = embed_all(module, tokenizer, sentences).to(at::kDouble);
  // Divided by the lengths once more: single precision leaves them 1e-7 from 1.
  const at::Tensor cosines = (vectors * exact).sum(1) / (vectors.norm(2, 1) * exact.norm(2, 1));
  const double same = nearest(vectors).eq(nearest(exact)).to(at::kDouble).mean().item<double>();
  return {candidate.label,
          cosines.mean().item<double>(),
          cosines.min().item<double>(),
          same,
          candidate.min_cosine,
          static_cast<double>(report.bytes_after) / 1e6,
          candidate.reached};
}

std::string to_markdown(const std::vector<Row>& rows, size_t sentences, double fp32_megabytes) {
  std::string text = fmt::format(
      "# Accuracy\n\nMade by `make accuracy`; do not edit. all-MiniLM-L6-v2 with its real weights on {} "
      "English sentences\n"
      "(Debian's fortune files): cosine of each sentence's embedding to that of the fp32 model, and how "
      "often the nearest\n"
      "other sentence stays the same. The numbers are the same on every CPU but for the order of fp32 "
      "sums.\n\n"
      "| scheme | MB | mean cosine | least cosine | same nearest | wanted |\n| --- | --- | --- | --- | --- | "
      "--- |\n"
      "| fp32 | {:.1f} | 1 | 1 | 100 % | |\n",
      sentences, fp32_megabytes);
  for (const Row& row : rows) {
    text += fmt::format("| {} | {:.1f} | {:.5f} | {:.4f} | {:.1f} % | {} |\n", row.label, row.megabytes,
                        row.mean_cosine, row.min_cosine, 100 * row.same_nearest,
                        row.bound > 0 ? fmt::format("{} {}", row.bound, row.holds() ? "✓" : "MISSED") : "");
  }
  return text;
}

struct Arguments {
  std::string model, vocabulary, markdown;
  std::vector<std::string> sentences;
  size_t count = 1000;
};

int run(const Arguments& arguments) {
  std::vector<std::string> sentences = accuracy::read_fortunes(arguments.sentences);
  // Every nth, so that a small sample still has all kinds.
  if (sentences.size() > arguments.count) {
    std::vector<std::string> sample;
    for (size_t i = 0; i < arguments.count; ++i)
      sample.push_back(sentences[i * sentences.size() / arguments.count]);
    sentences = std::move(sample);
  }
  const auto tokenizer = minilm::Tokenizer::from_file(arguments.vocabulary);
  const auto module = halftone::load_pt2(arguments.model);
  const at::Tensor exact = embed_all(module, tokenizer, sentences).to(at::kDouble);
  const auto fp32 = halftone::quantize_(*module, "int8wo", {.dry_run = true});
  std::vector<Row> rows;
  bool holds = true;
  for (const Candidate& candidate : candidates()) {
    rows.push_back(measure(candidate, arguments.model, tokenizer, sentences, exact));
    const Row& row = rows.back();
    holds = holds && (row.holds() || row.is_known_miss());
    std::printf("%-40s mean cosine %.5f  least %.4f  same nearest %5.1f %%  %s\n", row.label.c_str(),
                row.mean_cosine, row.min_cosine, 100 * row.same_nearest,
                row.bound == 0        ? ""
                : row.holds()         ? "ok"
                : row.is_known_miss() ? "MISSES what is wanted, as known"
                                      : "MISSED its bound");
    std::fflush(stdout);
  }
  if (!arguments.markdown.empty()) {
    std::ofstream out(arguments.markdown);
    out << to_markdown(rows, sentences.size(), static_cast<double>(fp32.bytes_before) / 1e6);
    if (!out.flush()) throw std::runtime_error(arguments.markdown + ": cannot be written");
  }
  return holds ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("What each scheme does to MiniLM's sentence embeddings");
  app.add_option("--model", arguments.model, "MiniLM as .pt2")->required();
  app.add_option("--vocab", arguments.vocabulary, "its vocab.txt")->required();
  app.add_option("--sentences", arguments.sentences, "fortune files")->required();
  app.add_option("--count", arguments.count, "how many sentences, evenly taken")->capture_default_str();
  app.add_option("--markdown", arguments.markdown, "where the table goes");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "minilm_accuracy: %s\n", error.what());
    return 1;
  }
}
