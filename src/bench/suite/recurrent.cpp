// Recurrent models: a tagger of words with a two-way LSTM, and a classifier of sound frames with GRUs.
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/rnn.h>

#include "bench/suite/builders.h"

namespace halftone {
namespace {

constexpr int64_t kTaggerVocabulary = 8192, kTaggerTokens = 48, kSpeechFrames = 50, kSpeechBands = 80;

struct LstmTagger : torch::nn::Module {
  LstmTagger() {
    words = register_module("words", torch::nn::Embedding(kTaggerVocabulary, 256));
    lstm = register_module(
        "lstm", torch::nn::LSTM(
                    torch::nn::LSTMOptions(256, 256).num_layers(2).bidirectional(true).batch_first(true)));
    hidden = register_module("hidden", torch::nn::Linear(512, 512));
    head = register_module("head", torch::nn::Linear(512, 64));
  }
  at::Tensor forward(const at::Tensor& ids) {
    const at::Tensor states = std::get<0>(lstm->forward(words(ids)));
    return head(hidden(states).tanh());
  }
  torch::nn::Embedding words{nullptr};
  torch::nn::LSTM lstm{nullptr};
  torch::nn::Linear hidden{nullptr}, head{nullptr};
};

struct GruSpeech : torch::nn::Module {
  GruSpeech() {
    input = register_module("input", torch::nn::Linear(kSpeechBands, 256));
    gru = register_module("gru", torch::nn::GRU(torch::nn::GRUOptions(256, 384).num_layers(2)));
    hidden = register_module("hidden", torch::nn::Linear(384, 768));
    head = register_module("head", torch::nn::Linear(768, 128));
  }
  at::Tensor forward(const at::Tensor& frames) {
    // Not batch_first: a GRU's backward would turn its result around in place then, which no graph can say.
    const at::Tensor states = std::get<0>(gru->forward(input(frames).relu().transpose(0, 1)));
    return head(hidden(states.transpose(0, 1)).relu());
  }
  torch::nn::Linear input{nullptr}, hidden{nullptr}, head{nullptr};
  torch::nn::GRU gru{nullptr};
};

}  // namespace

SuiteModel make_lstm() {
  return one_tensor_model(std::make_shared<LstmTagger>(), "ids", id_sample(kTaggerTokens, kTaggerVocabulary),
                          label_loss);
}

SuiteModel make_gru() {
  return one_tensor_model(std::make_shared<GruSpeech>(), "frames",
                          float_sample({kSpeechFrames, kSpeechBands}), label_loss);
}

}  // namespace halftone
