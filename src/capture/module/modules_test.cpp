// C++ modules of every kind: the graph gives what the module gives, and the capture leaves no trace in the
// module.
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/modules/transformerlayer.h>

#include <filesystem>

#include "capture/module/test_support.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/compile/compile.h"

namespace halftone {
namespace {

using torch::indexing::Slice;

template <typename Model, typename... Inputs>
c10::IValue run_eager(Model& model, const std::tuple<Inputs...>& inputs) {
  const at::NoGradGuard no_grad;
  return std::apply([&](const auto&... input) { return capture_detail::to_ivalue(model.forward(input...)); },
                    inputs);
}

template <typename... Inputs>
std::vector<c10::IValue> arguments_of(const std::tuple<Inputs...>& inputs) {
  return std::apply([](const auto&... input) { return std::vector{capture_detail::to_ivalue(input)...}; },
                    inputs);
}

std::shared_ptr<GraphModule> save_and_load(const GraphModule& module) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("halftone_capture_{}.ht", getpid());
  save_checkpoint(module, path.string());
  auto loaded = load_checkpoint(path.string());
  std::filesystem::remove(path);
  return loaded;
}

/// Captures with `examples`, runs with `others`, once as it is and once from a file.
template <typename Model, typename... Inputs>
std::shared_ptr<GraphModule> check(Model& model, const std::tuple<Inputs...>& examples,
                                   const std::tuple<Inputs...>& others, const CaptureOptions& options = {},
                                   double tolerance = 0) {
  const ModuleBytes before = ModuleBytes::of(model);
  const auto captured = capture(model, examples, options);
  EXPECT_TRUE(ModuleBytes::of(model) == before) << "the capture changed the module";
  EXPECT_TRUE(nothing_is_registered());
  EXPECT_THAT(lint(captured->graph()), ::testing::IsEmpty());
  EXPECT_EQ(captured->notes.size(), 0U);
  const c10::IValue expected = run_eager(model, others);
  expect_same(Session(captured)(arguments_of(others)), expected, tolerance, "interpreter");
  expect_same(Session(captured, compile(captured))(arguments_of(others)), expected, 1e-5, "compiled");
  expect_same(Session(save_and_load(*captured))(arguments_of(others)), expected, tolerance, "from a file");
  return captured;
}

size_t count(const GraphModule& module, std::string_view target) {
  size_t found = 0;
  for (const auto& node : module.graph().nodes()) found += node->is(target) ? 1 : 0;
  return found;
}

const Node* first(const GraphModule& module, std::string_view target) {
  for (const auto& node : module.graph().nodes()) {
    if (node->is(target)) return node.get();
  }
  return nullptr;
}

TEST(CaptureModules, Sequential) {
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(6, 8), torch::nn::Functional(at::gelu, "none"),
                              torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})), torch::nn::Dropout(0.5),
                              torch::nn::Linear(8, 3));
  model->eval();
  const auto graph = check(*model, std::tuple(seeded({4, 6})), std::tuple(seeded({4, 6}, 2)));
  EXPECT_EQ(graph->tensor("0.weight").unsafeGetTensorImpl(), model->parameters()[0].unsafeGetTensorImpl());
  const Node* norm = first(*graph, "aten::layer_norm");
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->source(), (Source{"2", "torch::nn::LayerNormImpl"}));
  EXPECT_EQ(first(*graph, "aten::gelu")->source().layer, "");  // between "0" and "2": the model itself
  EXPECT_TRUE(first(*graph, "aten::layer_norm")->output()->meta().has_value());
}

TEST(CaptureModules, Convolutions) {
  torch::manual_seed(2);
  using namespace torch::nn;
  torch::nn::Sequential image(Conv2d(Conv2dOptions(3, 6, 3).stride(2).padding(1)), BatchNorm2d(6),
                              MaxPool2d(2), ConvTranspose2d(ConvTranspose2dOptions(6, 2, 2).stride(2)));
  image->eval();
  check(*image, std::tuple(seeded({2, 3, 12, 12})), std::tuple(seeded({2, 3, 12, 12}, 5)));
  torch::nn::Sequential sound(Conv1d(Conv1dOptions(2, 4, 3).dilation(2)), InstanceNorm1d(4));
  sound->eval();
  check(*sound, std::tuple(seeded({2, 2, 16})), std::tuple(seeded({2, 2, 16}, 5)));
}

TEST(CaptureModules, BatchNormInTraining) {
  torch::manual_seed(3);
  torch::nn::Sequential model(torch::nn::Linear(5, 4), torch::nn::BatchNorm1d(4));
  const auto graph = capture(*model, std::tuple(seeded({7, 5})));
  Session session(graph);
  EXPECT_THAT(session.state_names(),
              ::testing::ElementsAre("1.num_batches_tracked", "1.running_mean", "1.running_var"));
  for (uint64_t step = 0; step < 3; ++step) {
    const at::Tensor x = seeded({7, 5}, step);
    const c10::IValue found = session({x});
    expect_same(found, run_eager(*model, std::tuple(x)), 0);
    for (const std::string& name : session.state_names())
      EXPECT_TRUE(at::equal(session.state(name), model->named_buffers()[name])) << name;
  }
}

TEST(CaptureModules, BatchNormInTrainingIsLeftAsItWas) {
  torch::nn::Sequential model(torch::nn::Conv2d(3, 4, 3), torch::nn::BatchNorm2d(4));
  const ModuleBytes before = ModuleBytes::of(*model);
  const auto graph = capture(*model, std::tuple(seeded({2, 3, 6, 6})));
  EXPECT_TRUE(ModuleBytes::of(*model) == before);
  EXPECT_EQ(count(*graph, "aten::_native_batch_norm_legit_functional"), 1U);
}

TEST(CaptureModules, InstanceNormWithRunningStatistics) {
  torch::nn::InstanceNorm2d model(torch::nn::InstanceNorm2dOptions(3).track_running_stats(true).affine(true));
  const auto graph = capture(*model, std::tuple(seeded({2, 3, 4, 4})));
  Session session(graph);
  for (uint64_t step = 0; step < 2; ++step) {
    const at::Tensor x = seeded({2, 3, 4, 4}, step);
    const c10::IValue found = session({x});
    expect_same(found, run_eager(*model, std::tuple(x)), 1e-6);
    EXPECT_TRUE(at::allclose(session.state("running_mean"), model->running_mean, 1e-6, 1e-6));
  }
}

TEST(CaptureModules, TransformerEncoder) {
  torch::manual_seed(4);
  torch::nn::TransformerEncoderLayer layer(
      torch::nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16));
  torch::nn::TransformerEncoder model(torch::nn::TransformerEncoderOptions(layer, 2));
  model->eval();
  check(*model, std::tuple(seeded({5, 3, 8})), std::tuple(seeded({5, 3, 8}, 6)));
}

TEST(CaptureModules, TransformerDecoder) {
  torch::manual_seed(5);
  torch::nn::TransformerDecoderLayer layer(
      torch::nn::TransformerDecoderLayerOptions(8, 2).dim_feedforward(16));
  torch::nn::TransformerDecoder model(torch::nn::TransformerDecoderOptions(layer, 2));
  model->eval();
  check(*model, std::tuple(seeded({4, 3, 8}), seeded({6, 3, 8})),
        std::tuple(seeded({4, 3, 8}, 6), seeded({6, 3, 8}, 7)));
}

TEST(CaptureModules, MultiheadAttention) {
  torch::manual_seed(6);
  torch::nn::MultiheadAttention model(torch::nn::MultiheadAttentionOptions(8, 2));
  model->eval();
  const auto inputs = [](uint64_t seed) {
    return std::tuple(seeded({4, 2, 8}, seed), seeded({5, 2, 8}, seed + 1), seeded({5, 2, 8}, seed + 2));
  };
  const auto graph = check(*model, inputs(1), inputs(9));
  EXPECT_TRUE(graph->tensors()->contains("in_proj_weight"));
}

TEST(CaptureModules, LongShortTermMemory) {
  torch::manual_seed(7);
  torch::nn::LSTM model(torch::nn::LSTMOptions(4, 6).num_layers(2).bidirectional(true).batch_first(true));
  check(*model, std::tuple(seeded({3, 5, 4})), std::tuple(seeded({3, 5, 4}, 8)));
  using State = std::optional<std::tuple<at::Tensor, at::Tensor>>;
  const auto with_state = [](uint64_t seed) {
    return std::tuple(seeded({3, 5, 4}, seed),
                      State(std::tuple(seeded({4, 3, 6}, seed), seeded({4, 3, 6}, seed + 1))));
  };
  check(*model, with_state(1), with_state(5));
}

TEST(CaptureModules, GatedRecurrentUnit) {
  torch::manual_seed(8);
  torch::nn::GRU model(torch::nn::GRUOptions(4, 6));
  check(*model, std::tuple(seeded({5, 3, 4})), std::tuple(seeded({5, 3, 4}, 8)));
}

TEST(CaptureModules, Embeddings) {
  torch::manual_seed(9);
  torch::nn::Embedding words(torch::nn::EmbeddingOptions(11, 4).padding_idx(0));
  check(*words, std::tuple(seeded_ids({2, 5}, 11)), std::tuple(seeded_ids({2, 5}, 11, 7)));
  torch::nn::EmbeddingBag bags(torch::nn::EmbeddingBagOptions(11, 4).mode(torch::kMean));
  check(*bags, std::tuple(seeded_ids({3, 5}, 11)), std::tuple(seeded_ids({3, 5}, 11, 7)));
}

TEST(CaptureModules, EmbeddingThatRenormalizesItsRows) {
  torch::manual_seed(10);
  torch::nn::Embedding model(torch::nn::EmbeddingOptions(11, 4).max_norm(0.5));
  const ModuleBytes before = ModuleBytes::of(*model);
  const at::Tensor ids = seeded_ids({2, 3}, 11);
  const auto graph = capture(*model, std::tuple(ids));
  EXPECT_TRUE(ModuleBytes::of(*model) == before);
  Session session(graph);
  const c10::IValue found = session({ids});
  expect_same(found, run_eager(*model, std::tuple(ids)), 1e-6);
  EXPECT_TRUE(at::allclose(session.state("weight"), model->weight, 1e-6, 1e-6));
}

struct Cube : torch::autograd::Function<Cube> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x * x * x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    return {3 * x * x * gradients[0]};
  }
};

struct CustomFunctionModel : torch::nn::Module {
  torch::nn::Linear fc{register_module("fc", torch::nn::Linear(4, 4))};
  at::Tensor forward(const at::Tensor& x) { return Cube::apply(fc(x)) + 1; }
};

TEST(CaptureModules, CustomAutogradFunction) {
  CustomFunctionModel model;
  check(model, std::tuple(seeded({3, 4})), std::tuple(seeded({3, 4}, 2)));
}

/// Views, writes through views, masks, index_put_, chained views of one base.
struct IndexingModel : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x, const at::Tensor& ids) {
    at::Tensor y = x.clone();
    const at::Tensor column = y.index({Slice(), 1});  // a view that sees the writes below
    y.index_put_({0}, 5.0);
    y.index({Slice(1, 3), Slice(0, 2)}) *= 2;
    y.t()[2].add_(1);
    y.index_put_({ids, 0}, at::ones({ids.size(0)}));
    y.view({-1}).slice(0, 2, 5).fill_(-1);
    y.diagonal().zero_();
    const auto parts = y.chunk(2, 1);
    parts[1].sub_(column.unsqueeze(1));
    y.transpose(0, 1).select(0, 3).copy_(x.select(1, 0));
    y.masked_fill_(x > 1.5, 9);
    return y + column.sum();
  }
};

TEST(CaptureModules, TensorIndexingAndWritesThroughViews) {
  IndexingModel model;
  const auto ids = [](std::vector<int64_t> list) { return at::tensor(list, at::kLong); };
  const auto graph =
      check(model, std::tuple(seeded({4, 4}), ids({0, 2})), std::tuple(seeded({4, 4}, 3), ids({3, 1})));
  for (const auto& node : graph->graph().nodes())
    EXPECT_FALSE(node->op() && node->op()->schema().is_mutable()) << node->target();
}

/// A KV cache with a counter, both written in place.
struct CacheModel : torch::nn::Module {
  at::Tensor cache{register_buffer("cache", at::zeros({2, 8, 3}))};
  at::Tensor count{register_buffer("count", at::zeros({1}, at::kLong))};
  torch::nn::Linear key{register_module("key", torch::nn::Linear(3, 3))};
  at::Tensor forward(const at::Tensor& x) {
    cache.index_copy_(1, count, key(x).unsqueeze(1));
    count += 1;
    const at::Tensor seen = at::arange(8).lt(count).to(at::kFloat);
    return (cache * seen.view({1, 8, 1})).sum(1);
  }
};

TEST(CaptureModules, CacheAndCounterAreStateOfTheSession) {
  torch::manual_seed(11);
  CacheModel model;
  const ModuleBytes before = ModuleBytes::of(model);
  const auto graph = capture(model, std::tuple(seeded({2, 3})));
  EXPECT_TRUE(ModuleBytes::of(model) == before);
  Session session(graph), other(save_and_load(*graph)), compiled(graph, compile(graph));
  EXPECT_THAT(session.state_names(), ::testing::ElementsAre("cache", "count"));
  for (uint64_t step = 0; step < 4; ++step) {
    const at::Tensor x = seeded({2, 3}, step);
    const c10::IValue expected = run_eager(model, std::tuple(x));
    expect_same(session({x}), expected, 0);
    expect_same(other({x}), expected, 0);
    expect_same(compiled({x}), expected, 1e-5);
    EXPECT_TRUE(at::equal(session.state("cache"), model.cache));
    EXPECT_TRUE(at::equal(session.state("count"), model.count));
  }
  EXPECT_TRUE(at::equal(graph->tensor("count"), model.count));  // shared with the module, not with sessions
}

/// Dict in, dict out, with a list, a number and None on the way.
struct DictModel : torch::nn::Module {
  using Batch = std::map<std::string, at::Tensor>;
  torch::nn::Linear fc{register_module("fc", torch::nn::Linear(3, 2))};
  Batch forward(const Batch& batch, const std::vector<at::Tensor>& more, double scale,
                const std::optional<at::Tensor>& bias) {
    const at::Tensor y = fc(batch.at("x")) * scale + more.at(1);
    return {{"logits", bias ? y + *bias : y}, {"mask", batch.at("mask").logical_not()}};
  }
};

TEST(CaptureModules, NestedArgumentsAndResults) {
  DictModel model;
  const auto inputs = [](uint64_t seed, bool bias) {
    return std::tuple(DictModel::Batch{{"x", seeded({2, 3}, seed)}, {"mask", seeded({2}, seed) > 0}},
                      std::vector{seeded({2, 2}, seed + 1), seeded({2, 2}, seed + 2)}, 0.5,
                      bias ? std::optional(seeded({2}, seed)) : std::nullopt);
  };
  check(model, inputs(1, false), inputs(5, false));
  const auto graph = check(model, inputs(1, true), inputs(5, true));
  const c10::IValue result = Session(graph)(arguments_of(inputs(2, true)));
  EXPECT_TRUE(result.toGenericDict().contains("logits"));
  auto wrong = arguments_of(inputs(1, true));
  wrong[2] = 0.25;
  expect_error(ErrorCode::kGuard, {"fixed0"}, [&] { (Session(graph))(wrong); });
}

struct TiedModel : torch::nn::Module {
  torch::nn::Embedding words{register_module("words", torch::nn::Embedding(7, 4))};
  torch::nn::Linear head{
      register_module("head", torch::nn::Linear(torch::nn::LinearOptions(4, 7).bias(false)))};
  TiedModel() { head->weight = words->weight; }
  at::Tensor forward(const at::Tensor& ids) { return head(words(ids)); }
};

TEST(CaptureModules, TiedWeightsStayTied) {
  TiedModel model;
  const auto graph = check(model, std::tuple(seeded_ids({2, 3}, 7)), std::tuple(seeded_ids({2, 3}, 7, 4)));
  EXPECT_EQ(graph->tensors()->size(), 1U);
  EXPECT_EQ(graph->tensor("words.weight").data_ptr(), model.words->weight.data_ptr());
}

/// Writes to its input, to memory that plain code fills, and to a tensor that is not registered.
struct WritingModel : torch::nn::Module {
  at::Tensor hidden_count = at::zeros({1});
  at::Tensor forward(at::Tensor x) {
    x.mul_(2);
    hidden_count.add_(1);
    const at::Tensor table = at::tensor(std::vector<float>{1, 2, 3});
    return x + table + hidden_count;
  }
};

TEST(CaptureModules, WritesToInputsAndUnregisteredTensors) {
  WritingModel model;
  at::Tensor x = seeded({2, 3});
  const at::Tensor before = x.clone();
  const auto graph = capture(model, std::tuple(x));
  EXPECT_TRUE(at::equal(x, before));
  EXPECT_EQ(model.hidden_count.item<float>(), 0);
  ASSERT_EQ(graph->notes.size(), 1U);
  EXPECT_THAT(graph->notes[0], ::testing::HasSubstr("did not register"));
  EXPECT_THAT(graph->mutated_input_names(), ::testing::ElementsAre("input0"));
  Session session(graph);
  at::Tensor mine = before.clone(), eager = before.clone();
  for (int step = 0; step < 2; ++step) {
    const c10::IValue found = session({mine});
    expect_same(found, model.forward(eager), 0);
    EXPECT_TRUE(at::equal(mine, eager));
  }
}

struct ScopedModel : torch::nn::Module {
  struct Activation : torch::nn::Module {
    at::Tensor forward(const at::Tensor& x) {
      const CaptureScope scope(*this);
      return at::relu(x);
    }
  };
  torch::nn::Linear fc{register_module("fc", torch::nn::Linear(3, 3))};
  std::shared_ptr<Activation> act = register_module("act", std::make_shared<Activation>());
  at::Tensor forward(const at::Tensor& x) { return act->forward(fc(x)); }
};

TEST(CaptureModules, ScopesNameLayersWithoutParameters) {
  ScopedModel model;
  const auto graph = capture(model, std::tuple(seeded({2, 3})));
  EXPECT_EQ(first(*graph, "aten::relu")->source().layer, "act");
  EXPECT_THAT(first(*graph, "aten::relu")->source().module_type, ::testing::HasSubstr("Activation"));
}

TEST(CaptureModules, PlainFunctions) {
  const at::Tensor weight = seeded({3, 3});
  const auto graph = capture(
      [&](const std::vector<c10::IValue>& args) -> c10::IValue {
        at::Tensor y = at::empty({2, 3});
        at::add_out(y, args[0].toTensor().mm(weight), args[0].toTensor());
        y.unsqueeze_(0);
        return std::tuple(y, int64_t{7}, at::Tensor());
      },
      {seeded({2, 3})});
  const at::Tensor x = seeded({2, 3}, 4);
  const c10::IValue result = Session(graph)({x});
  const auto& items = result.toTupleRef().elements();
  EXPECT_TRUE(at::equal(items[0].toTensor(), (x.mm(weight) + x).unsqueeze(0)));
  EXPECT_EQ(items[1].toInt(), 7);
  EXPECT_TRUE(items[2].isNone());
}

}  // namespace
}  // namespace halftone
