#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformerlayer.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include "halftone/quant/quantize.h"
#include "quant/module/test_support.h"

namespace halftone {
namespace {

namespace nn = torch::nn;
using Outcome = LayerReport::Outcome;

/// A user's own module: a typed member, a raw parameter that it multiplies with itself, and a head tied to
/// nothing.
struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(8, 16));
    second = register_module("second", nn::Linear(nn::LinearOptions(16, 4).bias(false)));
    raw = register_parameter("raw", at::ones({4, 4}));
  }
  at::Tensor forward(const at::Tensor& x) { return at::matmul(second(at::relu(first(x))), raw); }
  nn::Linear first{nullptr}, second{nullptr};
  at::Tensor raw;
};
TORCH_MODULE(Net);

void fill(nn::Module& module, uint64_t seed = 1) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : module.parameters())
    parameter.copy_(seeded_randn(parameter.sizes(), seed++) * 0.3);
}

/// Every quantized weight back to plain numbers, so that the same forward code gives what is to be expected.
void dequantize_all(nn::Module& module) {
  for (at::Tensor& parameter : module.parameters()) {
    if (is_quantized_tensor(parameter)) parameter.set_data(parameter.dequantize());
  }
}

const LayerReport& layer(const QuantizeReport& report, const std::string& name) {
  for (const LayerReport& entry : report.layers) {
    if (entry.layer.name == name) return entry;
  }
  throw std::runtime_error("no layer " + name);
}

template <typename Forward>
void expect_as_dequantized(nn::Module& module, Forward forward) {
  const at::Tensor plain = forward();
  at::Tensor without_gradients, inference;
  {
    const at::NoGradGuard no_grad;
    without_gradients = forward();
  }
  {
    const c10::InferenceMode mode;
    inference = forward() + 0;
  }
  dequantize_all(module);
  const at::Tensor expected = forward();
  EXPECT_TRUE(at::allclose(plain, expected, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(without_gradients, expected, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(inference, expected, 1e-4, 1e-5));
}

TEST(QuantizeModule, UsersOwnModule) {
  Net net;
  fill(*net);
  const QuantizeReport report = quantize_(*net, toy_config());
  EXPECT_EQ(report.count(Outcome::kQuantized), 2u);
  EXPECT_EQ(layer(report, "first").layer.n, 16);
  EXPECT_EQ(layer(report, "first").bytes_before, 16 * 8 * 4);
  EXPECT_EQ(layer(report, "first").bytes_after, 16 * 8 + 16 * 4);
  EXPECT_EQ(layer(report, "raw").outcome, Outcome::kKept);
  EXPECT_NE(layer(report, "raw").reason.find("its own way"), std::string::npos);
  EXPECT_EQ(report.bytes_before, 4 * (16 * 8 + 16 + 4 * 16 + 16));
  EXPECT_EQ(report.bytes_after, 16 * 8 + 16 * 4 + 4 * 16 + 4 * 4 + 4 * (16 + 16));
  EXPECT_TRUE(is_quantized_tensor(net->first->weight));
  EXPECT_TRUE(is_quantized_tensor(net->named_parameters()["second.weight"]));
  EXPECT_EQ(layer_of(net->second->weight), "second");
  const at::Tensor x = seeded_randn({3, 8}, 9);
  expect_as_dequantized(*net, [&] { return net(x); });
}

struct ConvNetImpl : nn::Module {
  nn::Conv2d conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(3, 64, 3)));
  nn::LSTM lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(16, 8)));
  nn::Linear fc = register_module("fc", nn::Linear(8, 4));
};
TORCH_MODULE(ConvNet);

TEST(QuantizeModule, SaysWhatItLeftAlone) {
  ConvNet net;
  const QuantizeReport report = quantize_(*net, toy_config());
  ASSERT_EQ(report.left_alone.size(), 2U);
  EXPECT_EQ(report.left_alone[0].kind, "convolution");
  EXPECT_EQ(report.left_alone[0].count, 1U);
  EXPECT_EQ(report.left_alone[0].bytes, 64 * 3 * 9 * 4);
  EXPECT_EQ(report.left_alone[1].kind, "LSTM");
  EXPECT_EQ(report.left_alone[1].count, 1U);
  EXPECT_EQ(report.left_alone[1].bytes, (32 * 16 + 32 * 8) * 4);
  ASSERT_EQ(report.warnings().size(), 1U);
  EXPECT_NE(report.warnings()[0].find("most of the model"), std::string::npos);
}

TEST(QuantizeModule, FreesTheOldWeights) {
  Net net;
  const c10::weak_intrusive_ptr<c10::StorageImpl> storage(net->first->weight.storage().getWeakStorageImpl());
  net(at::ones({1, 8})).sum().backward();
  const c10::weak_intrusive_ptr<c10::StorageImpl> gradient(
      net->first->weight.grad().storage().getWeakStorageImpl());
  EXPECT_FALSE(storage.expired());
  quantize_(*net, toy_config());
  EXPECT_TRUE(storage.expired());
  EXPECT_TRUE(gradient.expired());
  EXPECT_FALSE(net->first->weight.requires_grad());
  EXPECT_TRUE(net->first->bias.requires_grad());
}

TEST(QuantizeModule, AlsoWhereTheMemberIsAnotherTensorThanTheEntry) {
  nn::Linear linear(8, 4);
  const c10::weak_intrusive_ptr<c10::StorageImpl> entry(linear->weight.storage().getWeakStorageImpl());
  linear->weight = seeded_randn({4, 8}, 3);
  const c10::weak_intrusive_ptr<c10::StorageImpl> member(linear->weight.storage().getWeakStorageImpl());
  const QuantizeReport report = quantize_(*linear, toy_config());
  EXPECT_TRUE(entry.expired());
  EXPECT_TRUE(member.expired());
  EXPECT_EQ(linear->named_parameters()["weight"].unsafeGetTensorImpl(), linear->weight.unsafeGetTensorImpl());
  EXPECT_EQ(report.bytes_after, 4 * 8 + 4 * 4 + 4 * 4);
}

TEST(QuantizeModule, Containers) {
  nn::Sequential sequential(nn::Linear(6, 6), nn::ReLU(), nn::Linear(6, 6));
  fill(*sequential);
  EXPECT_EQ(quantize_(*sequential, toy_config()).count(Outcome::kQuantized), 2u);
  const at::Tensor x = seeded_randn({2, 3, 6}, 4);
  expect_as_dequantized(*sequential, [&] { return sequential->forward(x); });

  nn::ModuleDict dict;
  dict->update({{"inner", nn::Linear(6, 3).ptr()}});
  nn::ModuleList list(nn::Linear(6, 2), dict);
  const QuantizeReport report = quantize_(*list, toy_config());
  EXPECT_EQ(layer(report, "1.inner").outcome, Outcome::kQuantized);
  EXPECT_EQ(report.count(Outcome::kQuantized), 2u);
}

TEST(QuantizeModule, MultiheadAttention) {
  const at::Tensor q = seeded_randn({5, 2, 8}, 1);
  const at::Tensor k = seeded_randn({7, 2, 8}, 2);
  const at::Tensor v = seeded_randn({7, 2, 8}, 3);
  nn::MultiheadAttention attention(8, 2);
  fill(*attention);
  const QuantizeReport report = quantize_(*attention, toy_config());
  EXPECT_EQ(layer(report, "in_proj_weight").outcome, Outcome::kQuantized);
  EXPECT_EQ(layer(report, "out_proj").outcome, Outcome::kQuantized);
  expect_as_dequantized(*attention, [&] {
    return at::cat(
        {std::get<0>(attention(q, q, q)), std::get<0>(attention(q, k, k)), std::get<0>(attention(q, k, v))});
  });

  // torch 2.13 asks for keys and values of one width.
  nn::MultiheadAttention wide(nn::MultiheadAttentionOptions(8, 2).kdim(6).vdim(6));
  fill(*wide);
  EXPECT_EQ(quantize_(*wide, toy_config()).count(Outcome::kQuantized), 4u);
  expect_as_dequantized(*wide, [&] { return std::get<0>(wide(q, k.narrow(2, 0, 6), v.narrow(2, 0, 6))); });
}

TEST(QuantizeModule, Transformer) {
  nn::TransformerEncoderLayer encoder(nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16));
  nn::TransformerDecoderLayer decoder(nn::TransformerDecoderLayerOptions(8, 2).dim_feedforward(16));
  encoder->eval();
  decoder->eval();
  fill(*encoder, 1);
  fill(*decoder, 100);
  EXPECT_EQ(quantize_(*encoder, toy_config()).count(Outcome::kQuantized), 4u);
  EXPECT_EQ(quantize_(*decoder, toy_config()).count(Outcome::kQuantized), 6u);
  const at::Tensor x = seeded_randn({5, 2, 8}, 1);
  const at::Tensor memory = encoder(x).detach();
  expect_as_dequantized(*encoder, [&] { return encoder(x); });
  expect_as_dequantized(*decoder, [&] { return decoder(x, memory); });
}

TEST(QuantizeModule, GradientsOfInputsAndOtherParameters) {
  Net net;
  fill(*net);
  quantize_(*net, toy_config());
  const auto gradients = [&] {
    net->zero_grad();
    at::Tensor x = seeded_randn({3, 8}, 9).requires_grad_();
    net(x).square().sum().backward();
    return std::vector<at::Tensor>{x.grad(), net->first->bias.grad().clone(), net->raw.grad().clone()};
  };
  const auto got = gradients();
  EXPECT_FALSE(net->first->weight.grad().defined());
  dequantize_all(*net);
  const auto expected = gradients();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::allclose(got[i], expected[i], 1e-4, 1e-4));
}

TEST(QuantizeModule, APendingBackwardPassFailsInsteadOfUsingOtherNumbers) {
  Net net;
  const at::Tensor y = net(seeded_randn({3, 8}, 9).requires_grad_());
  quantize_(*net, toy_config());
  EXPECT_ANY_THROW(y.sum().backward());
}

TEST(QuantizeModule, OptimizersTrainTheRest) {
  Net net;
  fill(*net);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  quantize_(*net, toy_config());
  const at::Tensor before = net->first->weight.dequantize();
  const at::Tensor bias = net->first->bias.detach().clone();
  net(seeded_randn({3, 8}, 9)).sum().backward();
  optimizer.step();
  EXPECT_TRUE(same(net->first->weight.dequantize(), before));
  EXPECT_FALSE(same(net->first->bias.detach(), bias));
}

TEST(QuantizeModule, TiedWeightsStayTied) {
  nn::Sequential model(nn::Linear(6, 6), nn::Linear(6, 6));
  auto first = model[0]->as<nn::Linear>();
  auto second = model[1]->as<nn::Linear>();
  second->weight = first->weight;
  const QuantizeReport report = quantize_(*model, toy_config());
  EXPECT_EQ(report.count(Outcome::kQuantized), 2u);
  EXPECT_EQ(first->weight.unsafeGetTensorImpl(), second->weight.unsafeGetTensorImpl());
  EXPECT_EQ(report.bytes_after, 6 * 6 + 6 * 4 + 2 * 6 * 4);
}

TEST(QuantizeModule, TiedToSomethingThatIsKept) {
  nn::Sequential model(nn::Linear(6, 6), nn::Linear(6, 6), nn::Linear(6, 6));
  model[1]->as<nn::Linear>()->weight = model[0]->as<nn::Linear>()->weight;
  QuantizeOptions options;
  options.exclude = "0";
  const QuantizeReport report = quantize_(*model, toy_config(), options);
  EXPECT_EQ(layer(report, "1").outcome, Outcome::kKept);
  EXPECT_NE(layer(report, "1").reason.find("shared (0)"), std::string::npos) << layer(report, "1").reason;
  EXPECT_EQ(layer(report, "2").outcome, Outcome::kQuantized);
  EXPECT_FALSE(is_quantized_tensor(model[0]->as<nn::Linear>()->weight));

  options.exclude = "2";
  options.overrides = {{"1", other_toy_config()}};
  expect_error(ErrorCode::kInvalidArgument, {"0 and 1 share one weight"},
               [&] { quantize_(*model, toy_config(), options); });
}

TEST(QuantizeModule, Embeddings) {
  nn::Sequential model(nn::Embedding(10, 6), nn::Linear(6, 10));
  fill(*model);
  model[1]->as<nn::Linear>()->weight = model[0]->as<nn::Embedding>()->weight;
  expect_error(ErrorCode::kInvalidArgument, {"nothing to quantize", "shared"},
               [&] { quantize_(*model, toy_config()); });
  QuantizeOptions options;
  options.embeddings = true;
  EXPECT_EQ(quantize_(*model, toy_config(), options).count(Outcome::kQuantized), 2u);
  EXPECT_TRUE(is_quantized_tensor(model[0]->as<nn::Embedding>()->weight));
  const at::Tensor indices = at::arange(10).view({2, 5});
  expect_as_dequantized(*model, [&] { return model->forward(indices); });

  nn::Embedding renormed(nn::EmbeddingOptions(10, 6).max_norm(1.0));
  expect_error(ErrorCode::kInvalidArgument, {"max_norm"},
               [&] { quantize_(*renormed, toy_config(), options); });
}

TEST(QuantizeModule, WhatItCannotQuantizeIsListed) {
  nn::Sequential model(nn::Linear(4, 4));
  model->register_module("lstm", nn::LSTM(4, 4));
  model->register_module("bilinear", nn::Bilinear(4, 4, 2));
  const QuantizeReport report = quantize_(*model, toy_config());
  EXPECT_EQ(report.count(Outcome::kQuantized), 1u);
  EXPECT_EQ(layer(report, "lstm.weight_ih_l0").outcome, Outcome::kKept);
  EXPECT_EQ(layer(report, "bilinear.weight").outcome, Outcome::kKept);
  EXPECT_EQ(report.layers.size(), 4u);
}

TEST(QuantizeModule, NothingChangesOnAnError) {
  Net net;
  fill(*net);
  {
    const at::NoGradGuard no_grad;
    net->second->weight[0][0] = NAN;
  }
  const at::Tensor before = net->first->weight.detach().clone();
  expect_error(ErrorCode::kInvalidArgument, {"second"}, [&] { quantize_(*net, toy_config()); });
  EXPECT_TRUE(same(net->first->weight.detach(), before));
  EXPECT_TRUE(net->first->weight.requires_grad());

  nn::Sequential unlucky(nn::Linear(4, 4), nn::Linear(13, 4));
  expect_error(ErrorCode::kInvalidArgument, {"1: thirteen"}, [&] { quantize_(*unlucky, toy_config()); });
  EXPECT_FALSE(is_quantized_tensor(unlucky[0]->as<nn::Linear>()->weight));

  QuantizeOptions options;
  options.progress = [](int64_t done, int64_t, std::string_view) {
    if (done == 2) throw std::runtime_error("enough");
  };
  nn::Sequential cancelled(nn::Linear(4, 4), nn::Linear(4, 4));
  EXPECT_THROW(quantize_(*cancelled, toy_config(), options), std::runtime_error);
  EXPECT_FALSE(is_quantized_tensor(cancelled[0]->as<nn::Linear>()->weight));
}

TEST(QuantizeModule, SeveralFilteredCalls) {
  nn::Sequential model(nn::Linear(4, 4), nn::Linear(4, 4), nn::Linear(4, 4));
  QuantizeOptions options;
  options.include = "0";
  quantize_(*model, other_toy_config(), options);
  options.include = "1|2";
  int asked = 0;
  options.filter = [&](const LayerInfo& info) { return ++asked, info.name != "2"; };
  const QuantizeReport report = quantize_(*model, toy_config(), options);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(layer(report, "0").outcome, Outcome::kAlready);
  EXPECT_EQ(*layer(report, "0").config, other_toy_config());
  EXPECT_EQ(layer(report, "1").outcome, Outcome::kQuantized);
  EXPECT_EQ(layer(report, "2").outcome, Outcome::kKept);
  expect_error(ErrorCode::kInvalidArgument, {"0", "already"}, [&] { quantize_(*model, toy_config()); });
  EXPECT_FALSE(is_quantized_tensor(model[2]->as<nn::Linear>()->weight));
}

TEST(QuantizeModule, DryRun) {
  Net net;
  QuantizeOptions options;
  options.dry_run = true;
  const QuantizeReport planned = quantize_(*net, toy_config(), options);
  EXPECT_FALSE(is_quantized_tensor(net->first->weight));
  EXPECT_EQ(planned.to_json(), quantize_(*net, toy_config()).to_json());
}

TEST(QuantizeModule, CloneIsDeepAndQuantized) {
  Net net;
  fill(*net);
  quantize_(*net, toy_config());
  const at::Tensor x = seeded_randn({3, 8}, 9);
  const auto copy = std::dynamic_pointer_cast<NetImpl>(net->clone());
  ASSERT_TRUE(is_quantized_tensor(copy->first->weight));
  EXPECT_FALSE(copy->first->weight.requires_grad());
  EXPECT_TRUE(same(copy->forward(x), net(x)));
  EXPECT_NE(copy->first->weight.unsafeGetTensorImpl(), net->first->weight.unsafeGetTensorImpl());
  dequantize_all(*copy);
  EXPECT_TRUE(is_quantized_tensor(net->first->weight));
}

TEST(QuantizeModule, ModuleToRefusesWhatWouldUndoIt) {
  Net net;
  quantize_(*net, toy_config());
  net->to(at::kFloat);
  net->to(at::kCPU);
  net->eval();
  net->zero_grad();
  EXPECT_TRUE(is_quantized_tensor(net->first->weight));
  expect_error(ErrorCode::kUnsupported, {"first", "ToyConfig", "Module::to()"},
               [&] { net->to(at::kDouble); });
  expect_error(ErrorCode::kUnsupported, {"first", "CPU"}, [&] { net->to(at::kMeta); });
}

TEST(QuantizeModule, TorchSaveIsRefusedWithAPointerToOurs) {
  Net net;
  std::ostringstream plain_file, quantized_file;
  torch::save(net, plain_file);
  quantize_(*net, toy_config());
  try {
    torch::save(net, quantized_file);
    ADD_FAILURE() << "torch::save wrote a quantized module";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("halftone::save_module"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("first is quantized"), std::string::npos) << error.what();
  }
  std::istringstream file(plain_file.str());
  expect_error(ErrorCode::kUnsupported, {"is quantized"}, [&] { torch::load(net, file); });
}

TEST(QuantizeModule, InsideInferenceMode) {
  const c10::InferenceMode mode;
  Net net;  // its parameters are inference tensors
  fill(*net);
  quantize_(*net, toy_config());
  const at::Tensor x = seeded_randn({3, 8}, 9);
  EXPECT_EQ(net(x).sizes(), at::IntArrayRef({3, 4}));
  EXPECT_FALSE(quantized_weight_of(net->first->weight).part("codes").is_inference());
}

TEST(QuantizeModule, ChangesNoProcessWideSetting) {
  Net net;
  const int threads = at::get_num_threads();
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const at::Tensor state = generator.get_state();
  quantize_(*net, QuantConfig("int8wo"));
  EXPECT_EQ(at::get_num_threads(), threads);
  EXPECT_TRUE(at::equal(generator.get_state(), state));
  EXPECT_TRUE(at::GradMode::is_enabled());
}

TEST(QuantizeModule, BuiltInSchemes) {
  for (const char* scheme : {"int8wo", "int8dq", "int4wo", "bf16wo"}) {
    SCOPED_TRACE(scheme);
    nn::Sequential model(nn::Linear(64, 48), nn::GELU(), nn::Linear(nn::LinearOptions(48, 32).bias(false)));
    model->push_back(nn::Linear(32, 8));
    fill(*model);
    QuantizeOptions options;
    options.exclude = "2";  // 48 inputs are not a multiple of int4wo's group
    quantize_(*model, QuantConfig(scheme), options);
    at::Tensor x = seeded_randn({5, 64}, 2).requires_grad_();
    const at::Tensor y = model->forward(x);
    y.sum().backward();
    const at::Tensor gradient = x.grad().clone();
    dequantize_all(*model);
    x.mutable_grad().reset();
    const at::Tensor expected = model->forward(x);
    expected.sum().backward();
    EXPECT_GT(at::cosine_similarity(y.flatten(), expected.flatten(), 0).item<double>(), 0.999);
    EXPECT_GT(at::cosine_similarity(gradient.flatten(), x.grad().flatten(), 0).item<double>(), 0.999);
  }
}

}  // namespace
}  // namespace halftone
