// prepare_qat and convert_qat on C++ modules: what the prepared module computes, what training changes, what
// convert gives, and that interrupted training goes on as if it had not been interrupted.
#include "halftone/quant/qat.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <sstream>

#include "graph/test_support.h"
#include "halftone/quant/quantized_tensor.h"

namespace halftone {
namespace {

namespace nn = torch::nn;

/// The models are small: threads would only wait for each other.
const bool one_thread = (at::set_num_threads(1), true);

at::Tensor noise(at::IntArrayRef sizes, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(sizes, generator, at::kFloat);
}

/// A linear, one that is written as addmm, and a head without bias.
struct Net : nn::Module {
  nn::Linear first{register_module("first", nn::Linear(64, 48))};
  nn::Linear second{register_module("second", nn::Linear(48, 32))};
  nn::Linear head{register_module("head", nn::Linear(nn::LinearOptions(32, 5).bias(false)))};
  explicit Net(uint64_t seed = 1) {
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : parameters()) parameter.copy_(noise(parameter.sizes(), seed++) * 0.2);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor hidden = at::relu(first(x));
    return head(at::relu(at::addmm(second->bias, hidden, second->weight.t())));
  }
};

at::Tensor loss_of(Net& net, uint64_t seed) {
  const at::Tensor x = noise({16, 64}, seed), labels = noise({16, 5}, seed + 1).argmax(1);
  return at::cross_entropy_loss(net.forward(x), labels);
}

void train(Net& net, torch::optim::Optimizer& optimizer, int first, int last) {
  for (int step = first; step < last; ++step) {
    optimizer.zero_grad();
    loss_of(net, 100 + static_cast<uint64_t>(step)).backward();
    optimizer.step();
  }
}

QatOptions with(QatScales scales) {
  QatOptions options;
  options.scales = scales;
  return options;
}

void expect_same_weights(nn::Linear& a, nn::Linear& b, bool same = true) {
  const auto& parts = quantized_weight_of(a->weight).parts;
  const auto& others = quantized_weight_of(b->weight).parts;
  ASSERT_EQ(parts.size(), others.size());
  bool equal = true;
  for (size_t i = 0; i < parts.size(); ++i)
    equal = equal && parts[i].second.view(at::kByte).equal(others[i].second.view(at::kByte));
  EXPECT_EQ(equal, same);
}

constexpr const char* kSchemes[] = {"int8wo", "int8dq", "int4wo", "int4wo-int8act"};

TEST(PrepareQat, TheForwardIsThatOfTheQuantizedModule) {
  const at::Tensor x = noise({7, 64}, 5);
  for (const char* scheme : kSchemes) {
    SCOPED_TRACE(scheme);
    Net plain, prepared, quantized;
    const at::Tensor before = plain.forward(x);
    prepare_qat(prepared, scheme);
    quantize_(quantized, scheme);
    const at::Tensor faked = prepared.forward(x), expected = quantized.forward(x);
    EXPECT_TRUE(at::allclose(faked, expected, 1e-4, 1e-4)) << (faked - expected).abs().max().item<float>();
    EXPECT_GT((faked - before).abs().max().item<float>(), 1e-3) << "nothing was rounded";
    EXPECT_TRUE(faked.requires_grad());
  }
}

TEST(PrepareQat, GradientsReachTheWeightsThemselves) {
  Net prepared, restored;
  prepare_qat(prepared, "int4wo");
  {
    Net quantized;
    quantize_(quantized, "int4wo");
    const at::NoGradGuard no_grad;
    restored.first->weight.copy_(quantized.first->weight.dequantize());
    restored.second->weight.copy_(quantized.second->weight.dequantize());
    restored.head->weight.copy_(quantized.head->weight.dequantize());
  }
  loss_of(prepared, 3).backward();
  loss_of(restored, 3).backward();
  const auto expected = restored.named_parameters();
  for (const auto& item : prepared.named_parameters()) {
    SCOPED_TRACE(item.key());
    const at::Tensor& gradient = item.value().grad();
    ASSERT_TRUE(gradient.defined());
    EXPECT_FALSE(is_fake_quantized(gradient));
    // Straight through, but for the few that are clamped.
    const at::Tensor differs = gradient.ne(expected[item.key()].grad());
    EXPECT_TRUE(gradient.masked_select(differs).eq(0).all().item<bool>());
    EXPECT_LT(differs.sum().item<int64_t>(), gradient.numel() / 20 + 1);
  }
}

TEST(PrepareQat, ParametersStayThoseThatAnOptimizerHolds) {
  Net net;
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(1e-2).weight_decay(1e-3));
  const at::Tensor handle = net.first->weight;
  const auto names = net.named_parameters().keys();
  const QuantizeReport report = prepare_qat(net, "int4wo");
  EXPECT_EQ(report.count(LayerReport::Outcome::kQuantized), 3u);
  EXPECT_EQ(net.named_parameters().keys(), names);
  EXPECT_TRUE(net.first->weight.is_same(handle));
  EXPECT_TRUE(is_fake_quantized(handle));
  const at::Tensor before = handle.detach().clone();
  EXPECT_FALSE(is_fake_quantized(before));
  const float first_loss = loss_of(net, 100).item<float>();
  for (int i = 0; i < 30; ++i) train(net, optimizer, 0, 1);
  EXPECT_LT(loss_of(net, 100).item<float>(), first_loss / 2);
  EXPECT_FALSE(handle.equal(before));
  EXPECT_TRUE(is_fake_quantized(handle));
}

TEST(PrepareQat, OtherOperatorsSeeTheWeightAsItIs) {
  Net plain, prepared;
  prepare_qat(prepared, "int4wo");
  const at::Tensor weight = prepared.first->weight, same = plain.first->weight;
  EXPECT_TRUE(weight.pow(2).sum().equal(same.pow(2).sum()));
  EXPECT_TRUE(weight.select(0, 3).equal(same.select(0, 3)));
  EXPECT_TRUE(weight.equal(same));
  {
    const at::NoGradGuard no_grad;
    weight.narrow(0, 0, 1).zero_();
    weight.t().narrow(1, 1, 1).fill_(2);
  }
  EXPECT_EQ(weight.select(0, 0).abs().sum().item<float>(), 0);
  EXPECT_EQ(weight.select(0, 1).mean().item<float>(), 2);
  expect_error(ErrorCode::kUnsupported, {"x · W"}, [&] { at::matmul(noise({3, 48}, 1), weight); });
  expect_error(ErrorCode::kUnsupported, {"first"}, [&] { prepared.to(at::kDouble); });
  EXPECT_TRUE(is_fake_quantized(prepared.first->weight));
}

TEST(PrepareQat, AttentionTakesItsProjectionsInParts) {
  const auto make = [] {
    nn::MultiheadAttention attention(nn::MultiheadAttentionOptions(32, 4));
    const at::NoGradGuard no_grad;
    uint64_t seed = 40;
    for (at::Tensor& parameter : attention->parameters())
      parameter.copy_(noise(parameter.sizes(), seed++) * 0.2);
    return attention;
  };
  const at::Tensor query = noise({6, 2, 32}, 8), memory = noise({5, 2, 32}, 9);
  auto prepared = make(), quantized = make();
  prepare_qat(*prepared, "int4wo");
  quantize_(*quantized, "int4wo");
  for (const auto& keys : {query, memory}) {
    const at::Tensor faked = std::get<0>(prepared->forward(query, keys, keys));
    const at::Tensor expected = std::get<0>(quantized->forward(query, keys, keys));
    EXPECT_TRUE(at::allclose(faked, expected, 1e-4, 1e-5)) << (faked - expected).abs().max().item<float>();
  }
  EXPECT_EQ(prepared->named_buffers()["in_proj_weight_fake_quant.steps"].item<int64_t>(), 2);
  std::get<0>(prepared->forward(query, memory, memory)).sum().backward();
  EXPECT_GT(prepared->in_proj_weight.grad().abs().min().item<float>(), -1);
  convert_qat(*prepared);
  EXPECT_TRUE(is_quantized_tensor(prepared->in_proj_weight));
}

TEST(PrepareQat, TiedWeightsStayTied) {
  nn::Embedding table(50, 32);
  nn::Linear head(nn::LinearOptions(32, 50).bias(false));
  head->weight = table->weight;
  struct Both : nn::Module {};
  Both both;
  both.register_module("table", table);
  both.register_module("head", head);
  QatOptions options;
  options.layers.embeddings = true;
  prepare_qat(both, "int4wo", options);
  EXPECT_TRUE(head->weight.is_same(table->weight));
  EXPECT_TRUE(both.named_parameters()["head.weight"].is_same(table->weight));
  const at::Tensor ids = at::tensor({3, 3, 7}), rows = table(ids);
  head(rows).sum().backward();
  EXPECT_GT(table->weight.grad().abs().sum().item<float>(), 0);
  EXPECT_TRUE(rows.select(0, 0).equal(rows.select(0, 1)));
  EXPECT_FALSE(rows.select(0, 0).equal(table->weight.select(0, 3)));
  convert_qat(both);
  EXPECT_TRUE(table(ids).equal(rows));
  EXPECT_TRUE(head->weight.is_same(table->weight));
}

TEST(ConvertQat, GivesWhatQuantizeWouldGive) {
  for (const char* scheme : kSchemes) {
    SCOPED_TRACE(scheme);
    Net net, same;
    prepare_qat(net, scheme);
    torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(1e-2));
    train(net, optimizer, 0, 5);
    {
      const at::NoGradGuard no_grad;
      const auto trained = net.named_parameters();
      for (auto& item : same.named_parameters()) item.value().copy_(trained[item.key()]);
    }
    net.eval();
    const at::Tensor x = noise({4, 64}, 6), faked = net.forward(x);
    const QuantizeReport report = convert_qat(net);
    const QuantizeReport expected = quantize_(same, scheme);
    EXPECT_EQ(report.to_json(), expected.to_json());
    expect_same_weights(net.first, same.first);
    expect_same_weights(net.second, same.second);
    expect_same_weights(net.head, same.head);
    EXPECT_TRUE(net.forward(x).equal(same.forward(x)));
    EXPECT_TRUE(at::allclose(net.forward(x), faked, 1e-4, 1e-4));
    EXPECT_TRUE(net.buffers().empty());
    EXPECT_EQ(net.first->children().size(), 0u);
  }
}

TEST(ConvertQat, TakesTheScalesOfTraining) {
  for (const QatScales scales : {QatScales::kMovingAverage, QatScales::kLearned}) {
    Net net, same;
    prepare_qat(net, "int4wo", with(scales));
    torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(1e-2));
    train(net, optimizer, 0, 20);
    {
      const at::NoGradGuard no_grad;
      for (auto& item : same.named_parameters()) item.value().copy_(net.named_parameters()[item.key()]);
    }
    net.eval();
    const at::Tensor x = noise({4, 64}, 6), faked = net.forward(x);
    convert_qat(net);
    quantize_(same, "int4wo");
    expect_same_weights(net.first, same.first, /*same=*/false);
    EXPECT_TRUE(at::allclose(net.forward(x), faked, 1e-4, 1e-4));
  }
}

TEST(ConvertQat, FrozenRangesStayThoseOfTheLastTrainingCall) {
  Net net;
  prepare_qat(net, "int4wo");
  train(net, *std::make_unique<torch::optim::SGD>(net.parameters(), 0.05), 0, 3);
  freeze_observers(net);
  const at::Tensor kept = net.named_buffers()["first.weight_fake_quant.max_val"].clone();
  train(net, *std::make_unique<torch::optim::SGD>(net.parameters(), 5.0), 3, 4);
  EXPECT_TRUE(net.named_buffers()["first.weight_fake_quant.max_val"].equal(kept));
  const at::Tensor x = noise({4, 64}, 6), faked = net.forward(x);
  convert_qat(net);
  EXPECT_TRUE(at::allclose(net.forward(x), faked, 1e-4, 1e-4));
}

TEST(ConvertQat, ChangesNothingWhereALayerCannotBeQuantized) {
  Net net;
  prepare_qat(net, "int4wo", with(QatScales::kLearned));
  {
    const at::NoGradGuard no_grad;
    net.head->weight[1][2] = NAN;
  }
  expect_error(ErrorCode::kInvalidArgument, {"head: weight[1][2] is nan"}, [&] { convert_qat(net); });
  EXPECT_TRUE(is_fake_quantized(net.first->weight));
  EXPECT_TRUE(is_fake_quantized(net.head->weight));
  {
    const at::NoGradGuard no_grad;
    net.head->weight[1][2] = 0;
  }
  convert_qat(net);
  EXPECT_TRUE(is_quantized_tensor(net.head->weight));
}

TEST(RemoveQat, KeepsTheFloatWeights) {
  Net net;
  prepare_qat(net, "int4wo");
  const at::Tensor weight = net.first->weight.clone();
  remove_qat(net);
  EXPECT_FALSE(is_fake_quantized(net.first->weight));
  EXPECT_TRUE(net.first->weight.equal(weight));
  EXPECT_TRUE(net.first->weight.requires_grad());
  EXPECT_TRUE(net.buffers().empty());
  prepare_qat(net, "int8wo");
  EXPECT_TRUE(is_fake_quantized(net.first->weight));
}

// Ten steps, a file, ten steps in a new module: bit for bit the twenty steps without the file.
TEST(QatState, ResumedTrainingIsUninterruptedTraining) {
  for (const QatScales scales : {QatScales::kRange, QatScales::kMovingAverage, QatScales::kLearned}) {
    QatOptions options = with(scales);
    if (scales != QatScales::kLearned) options.freeze_after = 15;
    const auto adam = [](Net& net) {
      return torch::optim::Adam(net.parameters(), torch::optim::AdamOptions(1e-2));
    };
    Net straight;
    prepare_qat(straight, "int4wo-int8act", options);
    torch::optim::Adam optimizer = adam(straight);
    std::stringstream module_file, optimizer_file;
    train(straight, optimizer, 0, 10);
    torch::serialize::OutputArchive archive, optimizer_archive;
    straight.save(archive);
    archive.save_to(module_file);
    optimizer.save(optimizer_archive);
    optimizer_archive.save_to(optimizer_file);
    train(straight, optimizer, 10, 20);

    Net resumed(77);
    prepare_qat(resumed, "int4wo-int8act", options);
    torch::optim::Adam second = adam(resumed);
    torch::serialize::InputArchive from, optimizer_from;
    from.load_from(module_file);
    resumed.load(from);
    optimizer_from.load_from(optimizer_file);
    second.load(optimizer_from);
    EXPECT_TRUE(is_fake_quantized(resumed.first->weight)) << "loading undid it";
    train(resumed, second, 10, 20);

    const auto expected = straight.named_parameters();
    for (const auto& item : resumed.named_parameters())
      EXPECT_TRUE(item.value().equal(expected[item.key()])) << item.key();
    const auto buffers = straight.named_buffers();
    EXPECT_EQ(buffers.size(), 12u);
    for (const auto& item : resumed.named_buffers())
      EXPECT_TRUE(item.value().equal(buffers[item.key()])) << item.key();
    convert_qat(straight);
    convert_qat(resumed);
    expect_same_weights(straight.first, resumed.first);
  }
}

TEST(PrepareQat, RefusesBeforeItChangesAnything) {
  Net net;
  expect_error(ErrorCode::kUnsupported, {"first: Float8"}, [&] { prepare_qat(net, "fp8wo"); });
  expect_error(ErrorCode::kUnsupported, {"Bf16"}, [&] { prepare_qat(net, "bf16wo"); });
  QatOptions options;
  options.layers.overrides = {{"head", Bf16WeightOnlyConfig{}}};
  expect_error(ErrorCode::kUnsupported, {"head"}, [&] { prepare_qat(net, "int4wo", options); });
  options = with(QatScales::kLearned);
  expect_error(ErrorCode::kInvalidArgument, {"symmetric"},
               [&] { prepare_qat(net, Int4WeightOnlyConfig{.symmetric = false}, options); });
  options.freeze_after = 3;
  expect_error(ErrorCode::kInvalidArgument, {"freeze_after"}, [&] { prepare_qat(net, "int4wo", options); });
  options = {};
  options.averaging_constant = 0;
  expect_error(ErrorCode::kInvalidArgument, {"averaging_constant"},
               [&] { prepare_qat(net, "int4wo", options); });
  expect_error(ErrorCode::kInvalidArgument, {"prepare_qat()"}, [&] { convert_qat(net); });
  expect_error(ErrorCode::kInvalidArgument, {"prepare_qat()"}, [&] { freeze_observers(net); });
  EXPECT_FALSE(is_fake_quantized(net.first->weight));
  EXPECT_TRUE(net.buffers().empty());
  prepare_qat(net, "int4wo");
  expect_error(ErrorCode::kInvalidArgument, {"convert_qat()"}, [&] { prepare_qat(net, "int4wo"); });
  expect_error(ErrorCode::kInvalidArgument, {"convert_qat()"}, [&] { quantize_(net, "int4wo"); });
}

}  // namespace
}  // namespace halftone
