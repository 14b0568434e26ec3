// embed_sentences --model-dir DIR [--pt2 FILE] [--ht FILE]: finds the nearest of some sentences to each query
// with MiniLM as a C++ module and, side by side, with the same encoder as Halftone loads it from a .pt2 file,
// and as it was tuned, saved and is deployed from a .ht file.
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "halftone/backend/backend.h"
#include "halftone/capture/capture.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/graph/graph_module.h"
#include "minilm/embedder.h"

namespace {

const std::vector<std::string> kSentences = {
    "Knead the dough for ten minutes and let it rise under a cloth.",
    "The last train to the airport leaves at a quarter past eleven.",
    "Water the tomatoes early in the morning, before the sun is strong.",
    "Interest rates rose again as the central bank fought inflation.",
    "A cache miss costs hundreds of cycles while the core waits for memory.",
    "The goalkeeper saved two penalties and became the hero of the match.",
    "Take one tablet after each meal and drink plenty of water.",
    "Whales talk to each other over hundreds of kilometres of open sea.",
    "The museum is closed on Mondays and on public holidays.",
    "Her new novel tells the story of three sisters in a fishing village.",
    "Snow is expected above a thousand metres during the night.",
    "Please send the signed contract back before the end of the week.",
};
const std::vector<std::string> kQueries = {
    "How do I bake bread at home?",
    "Why is my program slow when its data does not fit in the cache?",
    "What will the weather be like in the mountains?",
};

struct Arguments {
  std::string model_dir;
  std::string pt2;  // empty: without
  std::string ht;   // the same
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--model-dir") == 0) {
      arguments.model_dir = argv[i + 1];
    } else if (std::strcmp(argv[i], "--pt2") == 0) {
      arguments.pt2 = argv[i + 1];
    } else if (std::strcmp(argv[i], "--ht") == 0) {
      arguments.ht = argv[i + 1];
    } else {
      return std::nullopt;
    }
  }
  if (arguments.model_dir.empty() || argc % 2 == 0) return std::nullopt;
  return arguments;
}

/// The vectors of sentences and queries under one encoder.
struct Embeddings {
  std::string label;
  at::Tensor sentences, queries;
};

Embeddings embed_all(std::string label, const minilm::EncoderFunction& encoder,
                     const minilm::Tokenizer& tokenizer) {
  return {std::move(label), minilm::embed(encoder, tokenizer, kSentences),
          minilm::embed(encoder, tokenizer, kQueries)};
}

void print_nearest(const Embeddings& embeddings, size_t query) {
  // Vectors of length 1: the dot product is the cosine.
  const at::Tensor cosines = embeddings.sentences.mv(embeddings.queries[static_cast<int64_t>(query)]);
  const int64_t best = cosines.argmax().item<int64_t>();
  std::printf("  %-12s %.4f  %s\n", embeddings.label.c_str(), cosines[best].item<double>(),
              kSentences[best].c_str());
}

double largest_difference(const Embeddings& a, const Embeddings& b) {
  const at::Tensor sentences = (a.sentences - b.sentences).abs().max();
  const at::Tensor queries = (a.queries - b.queries).abs().max();
  return std::max(sentences.item<double>(), queries.item<double>());
}

void run(const Arguments& arguments) {
  const auto tokenizer = minilm::Tokenizer::from_file(arguments.model_dir + "/vocab.txt");
  minilm::Encoder encoder = minilm::load_encoder(arguments.model_dir);
  std::optional<halftone::Session> session;
  if (!arguments.pt2.empty()) session.emplace(halftone::load_pt2(arguments.pt2));
  std::optional<halftone::Backend> deployed;
  if (!arguments.ht.empty()) {
    deployed.emplace(halftone::load(arguments.ht));
    deployed->deploy();
  }

  // After loading: a tensor that is made in inference mode could not be trained or quantized in place later.
  const c10::InferenceMode inference;
  const auto before = [&](const at::Tensor& ids, const at::Tensor& mask) { return encoder(ids, mask); };
  std::vector<Embeddings> results{embed_all("C++ module", before, tokenizer)};
  if (session) {
    const auto after = [&](const at::Tensor& ids, const at::Tensor& mask) {
      return (*session)({ids, mask}).toTensor();
    };
    results.push_back(embed_all("Halftone", after, tokenizer));
  }
  if (deployed) {
    const auto tuned = [&](const at::Tensor& ids, const at::Tensor& mask) {
      return deployed->infer({ids, mask}).toTensor();
    };
    results.push_back(embed_all("tuned", tuned, tokenizer));
  }

  for (size_t query = 0; query < kQueries.size(); ++query) {
    std::printf("%s\n", kQueries[query].c_str());
    for (const Embeddings& embeddings : results) print_nearest(embeddings, query);
  }
  if (session) {
    std::printf("largest difference between the first two, in any of %zu vectors: %.1e\n",
                kSentences.size() + kQueries.size(), largest_difference(results[0], results[1]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> arguments = parse(argc, argv);
  if (!arguments) {
    std::fprintf(stderr,
                 "usage: embed_sentences --model-dir DIR [--pt2 FILE] [--ht FILE]\n"
                 "  DIR    holds config.json, model.safetensors and vocab.txt\n"
                 "  --pt2  the same encoder, exported by scripts/export_minilm.py\n"
                 "  --ht   the same, tuned by halftone tune\n");
    return 2;
  }
  try {
    run(*arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "embed_sentences: %s\n", error.what());
    return 1;
  }
  return 0;
}
