// The built-in models of the benchmark suite.
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/errors.h"
#include "base/nearest.h"
#include "bench/suite/builders.h"
#include "bench/suite/weights.h"
#include "capture/module/tracing/snapshots.h"

namespace halftone {
namespace {

struct SuiteEntry {
  BenchModelInfo info;
  SuiteModel (*make)();
};

const std::vector<SuiteEntry>& suite_entries() {
  static const std::vector<SuiteEntry> entries = {
      {{"bert", "encoder, 6 layers of width 384, 128 tokens with a mask", 2}, make_bert},
      {{"dlrm", "recommendation: 12 embeddings of 20000 rows, products pair by pair, perceptrons", 256},
       make_dlrm},
      {{"gpt", "causal decoder, 6 blocks of width 384, 64 tokens, 8192 words", 2}, make_gpt},
      {{"gru", "sound frames, 2 GRUs of 384 and perceptron", 8}, make_gru},
      {{"llama", "decoder with rotary positions and grouped queries, 4 blocks of width 512, 32 tokens", 2},
       make_llama},
      {{"lstm", "tagger: 2 two-way LSTMs of 256, 48 words", 8}, make_lstm},
      {{"mlp", "perceptron, 5 layers of 2048", 16}, make_mlp},
      {{"mlp_mixer", "Mixer-S/16: 8 blocks of width 512, 196 tokens; images 224 x 224", 1}, make_mlp_mixer},
      {{"mobilenet", "MobileNetV2, depthwise convolutions; images 160 x 160", 1}, make_mobilenet},
      {{"resnet50", "ResNet-50; images 224 x 224", 1}, make_resnet50},
      {{"tcn", "temporal convolutions with holes, 6 blocks of 128 channels, 512 steps", 4}, make_tcn},
      {{"text_cnn", "convolutions over 128 words, windows of 3, 4 and 5", 4}, make_text_cnn},
      {{"tiny_mlp", "perceptron, 5 layers of at most 48: too small for quantization to pay", 4},
       make_tiny_mlp},
      {{"unet", "U-Net, 3 levels of 32 to 256 channels; images 96 x 96", 1}, make_unet},
      {{"vae", "variational autoencoder, convolutions and wide linears; images 64 x 64", 4}, make_vae},
      {{"vit", "ViT-Ti/16: 12 blocks of width 192, 197 tokens; images 224 x 224", 1}, make_vit},
  };
  return entries;
}

}  // namespace

const std::vector<BenchModelInfo>& bench_models() {
  static const std::vector<BenchModelInfo> infos = [] {
    std::vector<BenchModelInfo> all;
    for (const SuiteEntry& entry : suite_entries()) all.push_back(entry.info);
    return all;
  }();
  return infos;
}

Samples SuiteModel::samples(int64_t batch, size_t calls, uint64_t seed) const {
  std::vector<Sample> all;
  for (size_t i = 0; i < calls; ++i) all.push_back(sample(batch, seed * 1000 + i));
  return all;
}

SuiteModel make_suite_model(std::string_view name, uint64_t seed) {
  std::vector<std::string> known;
  for (const SuiteEntry& entry : suite_entries()) {
    known.push_back(entry.info.name);
    if (entry.info.name != name) continue;
    ModuleSnapshot random_state(nullptr);  // torch's constructors draw weights
    SuiteModel model = entry.make();
    random_state.restore_random_state();
    set_weights(*model.module, seed);
    model.module->eval();
    model.name = entry.info.name;
    return model;
  }
  fail(ErrorCode::kInvalidArgument, "there is no model \"{}\" in the suite{}", name,
       did_you_mean(name, known));
}

}  // namespace halftone
