#include "training/models.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/functional/loss.h>
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
#include <torch/utils.h>

#include <stdexcept>

namespace halftone {
namespace {

using namespace torch::nn;  // NOLINT(google-build-using-namespace): models are made of nothing else
using Args = std::vector<c10::IValue>;

at::Tensor input(at::IntArrayRef sizes) {
  return at::randn(sizes).requires_grad_();
}

/// A model whose forward takes and gives one tensor.
template <typename Holder>
TrainingModel simple(std::string name, Holder model, at::Tensor example) {
  auto impl = model.ptr();
  return {std::move(name),
          impl,
          [impl](const Args& args) -> c10::IValue { return impl->forward(args.at(0).toTensor()); },
          {std::move(example)}};
}

/// The same for a Sequential, whose forward is a template.
TrainingModel chain(std::string name, Sequential model, at::Tensor example) {
  auto impl = model.ptr();
  return {std::move(name),
          impl,
          [impl](const Args& args) -> c10::IValue { return impl->forward(args.at(0).toTensor()); },
          {std::move(example)}};
}

/// A module that is a lambda over layers that were registered.
struct Composite : Module {
  using Forward = std::function<c10::IValue(const Args&)>;
  Forward run;
};

TrainingModel composite(std::string name, std::shared_ptr<Composite> model, Args examples) {
  return {std::move(name), model, [model](const Args& args) { return model->run(args); },
          std::move(examples)};
}

/// Registers a layer and gives its holder, which can be called.
template <typename Holder>
Holder add(Module& module, const std::string& name, Holder layer) {
  module.register_module(name, layer);
  return layer;
}

Functional activation(at::Tensor (*function)(const at::Tensor&)) {
  return Functional(function);
}

at::Tensor gelu_erf(const at::Tensor& x) {
  return at::gelu(x);
}
at::Tensor gelu_tanh(const at::Tensor& x) {
  return at::gelu(x, "tanh");
}
at::Tensor leaky(const at::Tensor& x) {
  return at::leaky_relu(x, 0.1);
}
at::Tensor elu(const at::Tensor& x) {
  return at::elu(x);
}
at::Tensor hardtanh(const at::Tensor& x) {
  return at::hardtanh(x);
}

struct Cube : torch::autograd::Function<Cube> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x * x * x;
  }
  /// Not the derivative: so it shows whether this formula was used.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {2 * context->get_saved_variables()[0] * gradients[0]};
  }
};

TrainingModel custom_function() {
  auto model = std::make_shared<Composite>();
  auto fc = add(*model, "fc", Linear(4, 4));
  model->run = [fc](const Args& args) mutable -> c10::IValue {
    return Cube::apply(fc(args[0].toTensor())) + 1;
  };
  TrainingModel result = composite("custom_function", model, {input({3, 4})});
  result.capturable = false;
  return result;
}

TrainingModel without_gradients_inside() {
  auto model = std::make_shared<Composite>();
  auto a = add(*model, "a", Linear(4, 4));
  auto b = add(*model, "b", Linear(4, 4));
  model->run = [a, b](const Args& args) mutable -> c10::IValue {
    const at::Tensor x = args[0].toTensor();
    at::Tensor target;
    {
      const at::NoGradGuard no_grad;
      target = a(x).sigmoid();
    }
    return at::mse_loss(b(a(x)), target) + b(x.detach()).mean();
  };
  TrainingModel result = composite("no_grad_inside", model, {input({5, 4})});
  result.capturable = false;
  return result;
}

TrainingModel residual_convolutions() {
  auto model = std::make_shared<Composite>();
  auto first = add(*model, "first", Conv2d(Conv2dOptions(3, 8, 3).padding(1)));
  auto norm = add(*model, "norm", BatchNorm2d(8));
  auto second = add(*model, "second", Conv2d(Conv2dOptions(8, 8, 3).padding(1).groups(2)));
  auto head = add(*model, "head", Linear(8, 5));
  model->run = [=](const Args& args) mutable -> c10::IValue {
    at::Tensor x = norm(first(args[0].toTensor())).relu_();
    x = at::max_pool2d(x + second(x), 2);
    return head(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  };
  return composite("residual_convolutions", model, {input({4, 3, 8, 8})});
}

TrainingModel embedding_classifier() {
  auto model = std::make_shared<Composite>();
  auto words = add(*model, "words", Embedding(EmbeddingOptions(11, 6).padding_idx(0)));
  auto head = add(*model, "head", Linear(6, 3));
  model->run = [=](const Args& args) mutable -> c10::IValue {
    return head(words(args[0].toTensor()).mean(1));
  };
  const at::Tensor ids = at::tensor({1, 2, 2, 2, 7, 0, 7, 1, 10, 0}, at::kLong).view({2, 5});
  return composite("embedding", model, {ids});
}

TrainingModel tied_language_model() {
  auto model = std::make_shared<Composite>();
  auto words = add(*model, "words", Embedding(7, 4));
  auto head = add(*model, "head", Linear(LinearOptions(4, 7).bias(false)));
  head->weight = words->weight;
  model->run = [=](const Args& args) mutable -> c10::IValue {
    const at::Tensor logits = head(words(args[0].toTensor()));
    return at::cross_entropy_loss(logits.view({-1, 7}), args[1].toTensor().view({-1}));
  };
  return composite("tied_weights", model,
                   {at::randint(7, {2, 3}, at::kLong), at::randint(7, {2, 3}, at::kLong)});
}

TrainingModel long_short_term_memory() {
  auto model = std::make_shared<Composite>();
  auto lstm = add(*model, "lstm", LSTM(LSTMOptions(4, 6).num_layers(2).batch_first(true)));
  model->run = [=](const Args& args) mutable -> c10::IValue {
    auto [output, state] = lstm->forward(args[0].toTensor());
    return std::tuple(output, std::get<0>(state), std::get<1>(state));
  };
  return composite("lstm", model, {input({3, 5, 4})});
}

TrainingModel gated_recurrent_unit() {
  auto model = std::make_shared<Composite>();
  auto gru = add(*model, "gru", GRU(GRUOptions(4, 6)));
  model->run = [=](const Args& args) mutable -> c10::IValue {
    return std::get<0>(gru->forward(args[0].toTensor()));
  };
  return composite("gru", model, {input({5, 3, 4})});
}

TrainingModel attention() {
  auto model = std::make_shared<Composite>();
  auto heads = add(*model, "heads", MultiheadAttention(MultiheadAttentionOptions(8, 2)));
  model->run = [=](const Args& args) mutable -> c10::IValue {
    return std::get<0>(heads->forward(args[0].toTensor(), args[1].toTensor(), args[1].toTensor()));
  };
  return composite("multihead_attention", model, {input({4, 2, 8}), input({5, 2, 8})});
}

TrainingModel fused_attention() {
  auto model = std::make_shared<Composite>();
  auto qkv = add(*model, "qkv", Linear(8, 24));
  model->run = [=](const Args& args) mutable -> c10::IValue {
    const auto parts = qkv(args[0].toTensor()).view({2, 6, 3, 2, 4}).permute({2, 0, 3, 1, 4}).unbind(0);
    const at::Tensor mixed =
        at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, /*is_causal=*/true);
    return mixed.transpose(1, 2).reshape({2, 6, 8});
  };
  return composite("scaled_dot_product_attention", model, {input({2, 6, 8})});
}

TrainingModel encoder_layer() {
  TransformerEncoderLayer layer(TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).dropout(0));
  return simple("transformer_encoder_layer", layer, input({5, 3, 8}));
}

TrainingModel decoder_layer() {
  TransformerDecoderLayer layer(TransformerDecoderLayerOptions(8, 2).dim_feedforward(16).dropout(0));
  auto impl = layer.ptr();
  return {"transformer_decoder_layer",
          impl,
          [impl](const Args& args) -> c10::IValue {
            return impl->forward(args[0].toTensor(), args[1].toTensor());
          },
          {input({4, 3, 8}), input({6, 3, 8})}};
}

TrainingModel dropout_chain() {
  return chain(
      "dropout",
      Sequential(Linear(6, 8), activation(at::relu), Dropout(0.4), Linear(8, 8), Dropout(0.2), Linear(8, 2)),
      input({5, 6}));
}

/// Results that are inputs, views of inputs, views of each other, numbers, and one that needs no gradient.
TrainingModel many_results() {
  auto model = std::make_shared<Composite>();
  auto fc = add(*model, "fc", Linear(4, 4));
  model->run = [=](const Args& args) mutable -> c10::IValue {
    const at::Tensor x = args[0].toTensor(), y = fc(x).tanh();
    return std::tuple(y, x, x.view({2, 6}).t(), y.argmax(1), x.detach(), y.sum(), fc->weight);
  };
  return composite("many_results", model, {input({3, 4})});
}

/// In-place writes to temporaries through views, indexing, a counter and a running mean.
TrainingModel writes() {
  auto model = std::make_shared<Composite>();
  auto fc = add(*model, "fc", Linear(4, 4));
  auto mean = model->register_buffer("mean", at::zeros({4}));
  auto count = model->register_buffer("count", at::zeros({1}, at::kLong));
  model->run = [=](const Args& args) mutable -> c10::IValue {
    at::Tensor y = fc(args[0].toTensor()).clone();
    y.select(1, 0).mul_(2);
    y.index_put_({at::tensor({0, 2}, at::kLong)}, y.select(0, 1).unsqueeze(0) * 3);
    {
      const at::NoGradGuard no_grad;
      mean.mul_(0.9).add_(y.mean(0), 0.1);
      count += 1;
    }
    return (y - mean).softmax(1);
  };
  TrainingModel result = composite("writes", model, {input({3, 4})});
  result.capturable = false;  // the part without gradients
  return result;
}

TrainingModel nested_arguments() {
  auto model = std::make_shared<Composite>();
  auto fc = add(*model, "fc", Linear(3, 2));
  model->run = [=](const Args& args) mutable -> c10::IValue {
    const auto batch = args[0].toGenericDict();
    const at::Tensor y = fc(batch.at("x").toTensor()) * args[1].toDouble();
    c10::impl::GenericDict result(c10::StringType::get(), c10::AnyType::get());
    result.insert("logits", y + args[2].toTuple()->elements()[0].toTensor());
    result.insert("extra", std::tuple(y.exp(), int64_t{3}));
    return result;
  };
  c10::impl::GenericDict batch(c10::StringType::get(), c10::AnyType::get());
  batch.insert("x", input({2, 3}));
  return composite("nested_arguments", model,
                   {batch, 0.5, c10::ivalue::Tuple::create({input({2}), c10::IValue()})});
}

std::vector<std::function<TrainingModel()>> makers() {
  return {
      [] {
        return chain("mlp", Sequential(Linear(6, 16), activation(at::relu), Linear(16, 3)), input({4, 6}));
      },
      [] {
        return chain("mlp_gelu",
                     Sequential(Linear(6, 16), activation(gelu_erf), Linear(16, 16), activation(gelu_tanh),
                                Linear(16, 3)),
                     input({4, 6}));
      },
      [] {
        return chain("mlp_silu_mish",
                     Sequential(Linear(6, 8), activation(at::silu), Linear(8, 8), activation(at::mish)),
                     input({4, 6}));
      },
      [] {
        return chain("mlp_bounded",
                     Sequential(Linear(6, 8), activation(at::sigmoid), Linear(8, 8), activation(at::tanh),
                                Linear(8, 8), activation(hardtanh)),
                     input({4, 6}));
      },
      [] {
        return chain(
            "mlp_hard",
            Sequential(Linear(6, 8), activation(at::hardswish), Linear(8, 8), activation(at::hardsigmoid),
                       Linear(8, 8), activation(leaky), Linear(8, 4), activation(elu)),
            input({4, 6}));
      },
      [] {
        return chain(
            "layer_norm",
            Sequential(Linear(6, 8), LayerNorm(LayerNormOptions({8})), activation(at::relu), Linear(8, 2)),
            input({5, 6}));
      },
      [] {
        return chain("group_norm", Sequential(Conv2d(4, 8, 3), GroupNorm(2, 8), activation(at::silu)),
                     input({2, 4, 6, 6}));
      },
      [] {
        return chain("batch_norm_1d",
                     Sequential(Linear(5, 4), BatchNorm1d(4), activation(at::relu), Linear(4, 2)),
                     input({7, 5}));
      },
      [] {
        return chain("batch_norm_2d",
                     Sequential(Conv2d(3, 4, 3), BatchNorm2d(4), activation(at::relu), MaxPool2d(2)),
                     input({2, 3, 8, 8}));
      },
      [] {
        return chain("instance_norm",
                     Sequential(Conv1d(2, 4, 3), InstanceNorm1d(InstanceNorm1dOptions(4).affine(true))),
                     input({2, 2, 12}));
      },
      [] {
        return chain(
            "transposed_convolution",
            Sequential(ConvTranspose2d(ConvTranspose2dOptions(3, 4, 3).stride(2)), activation(at::relu)),
            input({2, 3, 5, 5}));
      },
      residual_convolutions,
      embedding_classifier,
      tied_language_model,
      long_short_term_memory,
      gated_recurrent_unit,
      attention,
      fused_attention,
      encoder_layer,
      decoder_layer,
      dropout_chain,
      custom_function,
      without_gradients_inside,
      many_results,
      writes,
      nested_arguments,
      [] { return character_transformer(13, 8, 2, 2, 6); },
  };
}

struct CausalBlock : Module {
  LayerNorm first_norm{nullptr}, second_norm{nullptr};
  Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
  int64_t heads;
  CausalBlock(int64_t width, int64_t heads) : heads(heads) {
    first_norm = register_module("first_norm", LayerNorm(LayerNormOptions({width})));
    second_norm = register_module("second_norm", LayerNorm(LayerNormOptions({width})));
    qkv = register_module("qkv", Linear(width, 3 * width));
    out = register_module("out", Linear(width, width));
    up = register_module("up", Linear(width, 4 * width));
    down = register_module("down", Linear(4 * width, width));
  }
  at::Tensor forward(const at::Tensor& x) {
    const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
    const auto parts =
        qkv(first_norm(x)).view({batch, length, 3, heads, width / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
    const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    const at::Tensor y = x + out(mixed.transpose(1, 2).reshape({batch, length, width}));
    return y + down(at::gelu(up(second_norm(y))));
  }
};

}  // namespace

TrainingModel character_transformer(int64_t vocabulary, int64_t width, int64_t layers, int64_t batch,
                                    int64_t length) {
  auto model = std::make_shared<Composite>();
  auto words = add(*model, "words", Embedding(vocabulary, width));
  auto positions = model->register_parameter("positions", at::randn({length, width}) * 0.02);
  std::vector<std::shared_ptr<CausalBlock>> blocks;
  for (int64_t i = 0; i < layers; ++i)
    blocks.push_back(
        model->register_module("block" + std::to_string(i), std::make_shared<CausalBlock>(width, 2)));
  auto norm = add(*model, "norm", LayerNorm(LayerNormOptions({width})));
  auto head = add(*model, "head", Linear(width, vocabulary));
  model->run = [=](const Args& args) mutable -> c10::IValue {
    at::Tensor x = words(args[0].toTensor()) + positions;
    for (const auto& block : blocks) x = block->forward(x);
    return head(norm(x));
  };
  return composite("character_transformer", model, {at::randint(vocabulary, {batch, length}, at::kLong)});
}

std::vector<TrainingModel> training_models() {
  std::vector<TrainingModel> models;
  for (const auto& make : makers()) {
    torch::manual_seed(17);
    models.push_back(make());
  }
  return models;
}

TrainingModel training_model(const std::string& name) {
  for (TrainingModel& model : training_models())
    if (model.name == name) return std::move(model);
  throw std::out_of_range("no training model is called " + name);
}

}  // namespace halftone
