// The decoder against PyTorch's operators on the whole sequence at once: no cache, no capture, other formulas.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <thread>

#include "base/expect_error.h"
#include "decoder/decoder_scheme.h"
#include "decoder/sequence.h"
#include "halftone/compile/compile.h"

namespace halftone {
namespace {

constexpr int64_t kContext = 400;

DecoderConfig config_of(int64_t layers = 3) {
  DecoderConfig config;
  config.file = "test";
  config.architecture = "llama";
  config.layers = layers;
  config.width = 48;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_width = 8;
  config.hidden = 80;
  config.vocabulary = 101;
  config.trained_context = kContext;
  config.rotaries[0].base = 500;
  return config;
}

DecoderWeights weights_of(const DecoderConfig& config, bool tied) {
  at::manual_seed(11);
  const auto matrix = [](int64_t rows, int64_t columns) {
    return at::randn({rows, columns}) / std::sqrt(columns);
  };
  const auto norm = [&] { return at::rand({config.width}) + 0.5; };
  const auto biased_norm = [&](bool there) {
    if (!there) return BiasedWeight{};
    return BiasedWeight{norm(), config.layer_norms ? at::randn({config.width}) : at::Tensor()};
  };
  DecoderWeights weights{at::randn({config.vocabulary, config.width}), {norm(), {}}, {}, {}, {}};
  if (!tied) weights.head = matrix(config.vocabulary, config.width);
  const int64_t queries = config.heads * config.head_width, keys = config.kv_heads * config.head_width;
  for (int64_t i = 0; i < config.layers; ++i) {
    const auto linear = [&](int64_t rows, int64_t columns, bool bias) {
      return BiasedWeight{matrix(rows, columns), bias ? at::randn({rows}) : at::Tensor()};
    };
    const auto head_norm = [&](int64_t all) {
      if (config.head_norm == HeadNorm::kNone) return BiasedWeight{};
      return BiasedWeight{at::rand({config.head_norm == HeadNorm::kHead ? config.head_width : all}) + 0.5,
                          {}};
    };
    weights.layers.push_back(
        {.attention_norm = biased_norm(config.norms_before),
         .feed_forward_norm = biased_norm(config.norms_before),
         .attention_after_norm = biased_norm(config.norms_after),
         .feed_forward_after_norm = biased_norm(config.norms_after),
         .query = linear(queries, config.width, config.qkv_bias),
         .key = linear(keys, config.width, config.qkv_bias),
         .value = linear(keys, config.width, config.qkv_bias),
         .attention_output = linear(config.width, queries, config.output_bias),
         .query_norm = head_norm(queries),
         .key_norm = head_norm(keys),
         .gate = config.gated ? linear(config.hidden, config.width, config.forward_bias) : BiasedWeight{},
         .up = linear(config.hidden, config.width, config.forward_bias),
         .down = linear(config.width, config.hidden, config.forward_bias)});
  }
  if (config.layer_norms) weights.norm.bias = at::randn({config.width});
  if (config.learned_positions) weights.positions = at::randn({config.trained_context, config.width});
  return weights;
}

/// Rotation as multiplication of complex numbers, in double precision; [t, heads, d].
at::Tensor rotated(const at::Tensor& x, double base) {
  const int64_t t = x.size(0), half = x.size(2) / 2;
  const at::Tensor speeds = at::pow(base, -at::arange(half, at::kDouble) / static_cast<double>(half));
  const at::Tensor angles = at::outer(at::arange(t, at::kDouble), speeds).unsqueeze(1);
  const at::Tensor turned =
      at::complex(x.narrow(2, 0, half).to(at::kDouble), x.narrow(2, half, half).to(at::kDouble)) *
      at::polar(at::ones_like(angles), angles);
  return at::cat({at::real(turned), at::imag(turned)}, 2).to(at::kFloat);
}

at::Tensor normed(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return x * at::rsqrt(x.pow(2).mean({-1}, true) + eps) * weight;
}

/// Logits of all tokens, [t, vocabulary].
at::Tensor reference(const DecoderConfig& config, const DecoderWeights& weights,
                     const std::vector<int64_t>& tokens) {
  const auto t = static_cast<int64_t>(tokens.size());
  at::Tensor x = weights.embedding.index_select(0, at::tensor(tokens));
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const DecoderLayerWeights& layer = weights.layers[i];
    const at::Tensor n = normed(x, layer.attention_norm.weight, config.norm_eps);
    const at::Tensor q = rotated(at::mm(n, layer.query.weight.t()).view({t, config.heads, config.head_width}),
                                 config.rotaries[0].base);
    const int64_t group = config.heads / config.kv_heads;
    at::Tensor k = rotated(at::mm(n, layer.key.weight.t()).view({t, config.kv_heads, config.head_width}),
                           config.rotaries[0].base);
    at::Tensor v = at::mm(n, layer.value.weight.t()).view({t, config.kv_heads, config.head_width});
    k = k.repeat_interleave(group, 1).transpose(0, 1);
    v = v.repeat_interleave(group, 1).transpose(0, 1);
    at::Tensor scores = at::bmm(q.transpose(0, 1), k.transpose(1, 2)) / std::sqrt(config.head_width);
    scores = scores + at::full({t, t}, -INFINITY).triu(1);
    if (config.kind_of(static_cast<int64_t>(i)).windowed)
      scores = scores + at::full({t, t}, -INFINITY).tril(-config.window);
    const at::Tensor y = at::bmm(at::softmax(scores, -1), v).transpose(0, 1).reshape({t, -1});
    x = x + at::mm(y, layer.attention_output.weight.t());
    const at::Tensor f = normed(x, layer.feed_forward_norm.weight, config.norm_eps);
    x = x + at::mm(at::silu(at::mm(f, layer.gate.weight.t())) * at::mm(f, layer.up.weight.t()),
                   layer.down.weight.t());
  }
  const at::Tensor head = weights.head.defined() ? weights.head : weights.embedding;
  return at::mm(normed(x, weights.norm.weight, config.norm_eps), head.t());
}

CompiledDecoder compiled(const DecoderConfig& config, const DecoderWeights& weights, int threads = 0) {
  const auto module = capture_decoder(config, weights, kContext);
  return {module, compile(module, {.threads = threads}), kContext, config.window};
}

std::vector<int64_t> random_tokens(const DecoderConfig& config, int64_t count) {
  const at::Tensor drawn = at::randint(config.vocabulary, {count}, at::kLong);
  return {drawn.const_data_ptr<int64_t>(), drawn.const_data_ptr<int64_t>() + count};
}

void expect_near(const at::Tensor& found, const at::Tensor& expected, const std::string& what) {
  const double error = (found.flatten() - expected).abs().max().item<double>();
  EXPECT_LT(error, 1e-4 * (1 + expected.abs().max().item<double>())) << what;
}

TEST(Decoder, StepByStepIsTheWholeSequenceAtOnce) {
  for (const bool tied : {true, false}) {
    const DecoderConfig config = config_of();
    const DecoderWeights weights = weights_of(config, tied);
    const std::vector<int64_t> tokens = random_tokens(config, 90);
    const at::Tensor expected = reference(config, weights, tokens);
    Sequence sequence(compiled(config, weights));
    for (size_t i = 0; i < tokens.size(); ++i)
      expect_near(sequence.feed({&tokens[i], 1}), expected[static_cast<int64_t>(i)],
                  "token " + std::to_string(i));
  }
}

TEST(Decoder, PromptsInPiecesOfAnyLength) {
  const DecoderConfig config = config_of();
  const DecoderWeights weights = weights_of(config, true);
  const CompiledDecoder decoder = compiled(config, weights);
  const std::vector<int64_t> tokens = random_tokens(config, 390);
  const at::Tensor expected = reference(config, weights, tokens);
  // Across the borders of chunks (256) and of the places that a call looks at (64, 128, 256, 400).
  const std::vector<std::vector<int64_t>> pieces = {
      {390}, {63, 1, 1, 325}, {127, 2, 261}, {255, 3, 132}, {1, 389}};
  for (const std::vector<int64_t>& lengths : pieces) {
    Sequence sequence(decoder);
    int64_t at = 0;
    for (const int64_t length : lengths) {
      const at::Tensor logits =
          sequence.feed(std::span(tokens).subspan(static_cast<size_t>(at), static_cast<size_t>(length)));
      at += length;
      expect_near(logits, expected[at - 1], "after " + std::to_string(at));
    }
    EXPECT_EQ(sequence.size(), 390);
    EXPECT_EQ(sequence.room(), 10);
  }
}

TEST(Decoder, WindowsAcrossChunks) {
  for (const int64_t window : {1, 70}) {
    DecoderConfig config = config_of();
    config.window = window;
    config.kinds = {{.windowed = true}, {}, {.windowed = true}};
    const DecoderWeights weights = weights_of(config, true);
    const std::vector<int64_t> tokens = random_tokens(config, 390);
    const at::Tensor expected = reference(config, weights, tokens);
    Sequence sequence(compiled(config, weights, /*threads=*/1));
    int64_t at = 0;
    for (const int64_t length : {100, 1, 280, 1, 8}) {
      const at::Tensor logits =
          sequence.feed(std::span(tokens).subspan(static_cast<size_t>(at), static_cast<size_t>(length)));
      at += length;
      expect_near(logits, expected[at - 1], std::to_string(at) + " tokens, window " + std::to_string(window));
    }
  }
}

/// What the architectures of config.cpp differ in, each alone and some together.
std::map<std::string, DecoderConfig> variants() {
  std::map<std::string, DecoderConfig> variants;
  const auto variant = [&](const std::string& name) -> DecoderConfig& {
    return variants[name] = config_of(2);
  };
  variant("llama");
  variant("qwen2").qkv_bias = true;
  variant("qwen3").head_norm = HeadNorm::kHead;
  DecoderConfig& olmo2 = variant("olmo2");
  olmo2.head_norm = HeadNorm::kAllHeads;
  olmo2.norms_before = false;
  olmo2.norms_after = true;
  DecoderConfig& gemma3 = variant("gemma3");
  gemma3.head_norm = HeadNorm::kHead;
  gemma3.norms_after = true;
  gemma3.activation = DecoderActivation::kGeluTanh;
  gemma3.window = 5;
  gemma3.kinds = {{.windowed = true, .rotary = 1}, {}};
  gemma3.rotaries.push_back({700, {}});
  DecoderConfig& mistral = variant("mistral");
  mistral.window = 5;
  mistral.kinds = {{.windowed = true}, {.windowed = true}};
  variant("smollm3").kinds = {{}, {.rotary = -1}};
  DecoderConfig& gpt2 = variant("gpt2");
  gpt2.layer_norms = gpt2.learned_positions = true;
  gpt2.gated = false;
  gpt2.activation = DecoderActivation::kGeluTanh;
  gpt2.kinds = {{.rotary = -1}, {.rotary = -1}};
  gpt2.rotaries.clear();
  DecoderConfig& neox = variant("neox");
  neox.layer_norms = neox.parallel = true;
  neox.gated = false;
  neox.activation = DecoderActivation::kGelu;
  neox.rotary_width = 4;
  DecoderConfig& biased = variant("biases everywhere");
  biased.qkv_bias = biased.output_bias = biased.forward_bias = true;
  return variants;
}

TEST(Decoder, ACutSequenceIsAsOneThatNeverWasLonger) {
  const DecoderConfig config = config_of();
  const DecoderWeights weights = weights_of(config, true);
  const CompiledDecoder decoder = compiled(config, weights);
  const std::vector<int64_t> tokens = random_tokens(config, 150), others = random_tokens(config, 200);
  const at::Tensor expected = reference(config, weights, tokens);
  for (const size_t kept : {0, 1, 63, 64, 149}) {
    Sequence sequence(decoder);
    sequence.feed(std::span(tokens).first(150));
    sequence.truncate(static_cast<int64_t>(kept));
    sequence.feed(others);  // writes the places behind the cut, and more
    sequence.truncate(static_cast<int64_t>(kept));
    EXPECT_EQ(sequence.tokens(),
              std::vector<int64_t>(tokens.begin(), tokens.begin() + static_cast<int64_t>(kept)));
    const at::Tensor logits = sequence.feed(std::span(tokens).subspan(kept));
    EXPECT_EQ(sequence.tokens(), tokens);
    expect_near(logits, expected[149], "cut to " + std::to_string(kept));
  }
}

TEST(Decoder, EveryStepIsNativeAndTheCacheIsWrittenInPlace) {
  for (const auto& [name, config] : variants()) {
    CompiledDecoder decoder{capture_decoder(config, weights_of(config, true), kContext), nullptr, kContext,
                            config.window};
    for (const int64_t tokens : {1, 7}) {
      const auto report = compile(decoder.module, {.threads = 1})
                              ->report(decoder.inputs(at::zeros({1, tokens}, at::kLong), 30, 64));
      EXPECT_EQ(report.interpreted, "") << name;
      EXPECT_THAT(report.left_to_aten, testing::IsEmpty()) << name;
      int64_t in_place = 0;
      for (const StepReport& step : report.steps) in_place += step.kernel == "index_copy_in_place" ? 1 : 0;
      EXPECT_EQ(in_place, 2 * config.layers) << name;
    }
  }
}

TEST(Decoder, QuantizedStaysClose) {
  const DecoderConfig config = config_of();
  const DecoderWeights weights = weights_of(config, true);
  const std::vector<int64_t> tokens = random_tokens(config, 40);
  const at::Tensor expected = reference(config, weights, tokens)[39];
  const std::pair<const char*, double> schemes[] = {
      {"int8wo", 0.999}, {"int8dq", 0.998}, {"int4wo", 0.97}, {"bf16wo", 0.9999}};
  for (const auto& [scheme, cosine] : schemes) {
    const auto module = capture_decoder(config, weights, kContext);
    const QuantizeReport report = DecoderScheme(scheme).apply(*module).value();
    EXPECT_EQ(report.count(LayerReport::Outcome::kQuantized), static_cast<size_t>(7 * config.layers + 2))
        << scheme;
    Sequence sequence({module, compile(module), kContext, 0});
    const at::Tensor logits = sequence.feed(tokens).flatten();
    EXPECT_GT(at::cosine_similarity(logits, expected, 0).item<double>(), cosine) << scheme;
  }
}

TEST(Decoder, SequencesAreIndependent) {
  const DecoderConfig config = config_of();
  const CompiledDecoder decoder = compiled(config, weights_of(config, true));
  std::vector<std::vector<int64_t>> tokens;
  std::vector<at::Tensor> alone(8), together(8);
  for (size_t i = 0; i < 8; ++i) {
    tokens.push_back(random_tokens(config, 30 + 7 * static_cast<int64_t>(i)));
    Sequence sequence(decoder);
    for (const int64_t& token : tokens[i]) alone[i] = sequence.feed({&token, 1});
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      Sequence sequence(decoder);
      for (const int64_t& token : tokens[i]) together[i] = sequence.feed({&token, 1});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 8; ++i) EXPECT_TRUE(at::equal(together[i], alone[i])) << "sequence " << i;
}

TEST(Decoder, SameBytesOnAnyNumberOfThreads) {
  const DecoderConfig config = config_of();
  const DecoderWeights weights = weights_of(config, true);
  const std::vector<int64_t> tokens = random_tokens(config, 50);
  at::Tensor first;
  for (const int threads : {1, 2, 4}) {
    Sequence sequence(compiled(config, weights, threads));
    const at::Tensor logits = sequence.feed(tokens);
    if (!first.defined()) first = logits;
    EXPECT_TRUE(at::equal(logits, first)) << threads << " threads";
  }
}

TEST(Decoder, RefusesWhatDoesNotFit) {
  const DecoderConfig config = config_of(1);
  Sequence sequence(compiled(config, weights_of(config, true)));
  expect_error(ErrorCode::kInvalidArgument, {"no tokens"}, [&] { sequence.feed({}); });
  const std::vector<int64_t> many(kContext + 1, 1);
  expect_error(ErrorCode::kInvalidArgument, {"401 tokens", "room for 400"}, [&] { sequence.feed(many); });
  const std::vector<int64_t> unknown = {config.vocabulary};
  expect_error(ErrorCode::kInvalidArgument, {"101", "out of range"}, [&] { sequence.feed(unknown); });
  sequence.feed(std::span(many).first(kContext));
  expect_error(ErrorCode::kInvalidArgument, {"room for 0"}, [&] { sequence.feed(std::span(many).first(1)); });
  expect_error(ErrorCode::kInvalidArgument, {"400 tokens", "cut to 401"},
               [&] { sequence.truncate(kContext + 1); });
  expect_error(ErrorCode::kInvalidArgument, {"cut to -1"}, [&] { sequence.truncate(-1); });
}

}  // namespace
}  // namespace halftone
