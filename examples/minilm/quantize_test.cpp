// quantize_ on the C++ encoder with its real weights: sentence vectors stay where they were.
#include "halftone/quant/quantize.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cosine_similarity.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "halftone/quant/quantized_tensor.h"
#include "minilm/embedder.h"

namespace minilm {
namespace {

const std::vector<std::string> kSentences = {
    "A printer shades a photograph with dots of one ink.",
    "The smaller the dots, the less the eye notices them.",
    "Yesterday it rained so hard that the cellar was flooded.",
    "How many eggs do I need for this cake?",
    "The committee postponed its decision until next spring.",
    "Memory is read faster when there is less of it to read.",
    "She plays the cello in an orchestra on Thursdays.",
    "No refunds without a receipt.",
};

at::Tensor sentence_vectors(Encoder& encoder, const Tokenizer& tokenizer) {
  const at::NoGradGuard no_grad;
  return embed([&](const at::Tensor& ids, const at::Tensor& mask) { return encoder(ids, mask); }, tokenizer,
               kSentences);
}

double smallest_cosine(const at::Tensor& a, const at::Tensor& b) {
  return at::cosine_similarity(a, b).min().item<double>();
}

TEST(QuantizeMiniLM, SentenceVectorsStayWhereTheyWere) {
  const std::string folder = MINILM_DIR;
  if (folder.empty()) GTEST_SKIP() << "all-MiniLM-L6-v2 is not installed";
  const Tokenizer tokenizer = Tokenizer::from_file(folder + "/vocab.txt");
  Encoder encoder = load_encoder(folder);
  const at::Tensor before = sentence_vectors(encoder, tokenizer);
  const halftone::QuantizeReport report = halftone::quantize_(*encoder, "int8wo");
  EXPECT_EQ(report.count(halftone::LayerReport::Outcome::kQuantized), 36u);
  EXPECT_TRUE(halftone::is_quantized_tensor(
      encoder->named_parameters()["encoder.layer.0.attention.self.query.weight"]));
  EXPECT_GT(smallest_cosine(sentence_vectors(encoder, tokenizer), before), 0.999);

  halftone::QuantizeOptions options;
  options.embeddings = true;
  EXPECT_GT(halftone::quantize_(*encoder, "int8wo", options).count(halftone::LayerReport::Outcome::kAlready),
            0u);
  EXPECT_GT(smallest_cosine(sentence_vectors(encoder, tokenizer), before), 0.999);
}

}  // namespace
}  // namespace minilm
