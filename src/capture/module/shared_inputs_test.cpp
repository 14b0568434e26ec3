// Examples that share memory or content: the graph must not confuse what the next call gives apart.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/transformer.h>

#include "capture/module/test_support.h"

namespace halftone {
namespace {

struct Difference : torch::nn::Module {
  torch::nn::Linear fc{register_module("fc", torch::nn::Linear(4, 4))};
  at::Tensor forward(const at::Tensor& a, const at::Tensor& b) { return fc(a) - b * 2; }
};

CaptureOptions unchecked() {
  CaptureOptions options;
  options.check = false;
  return options;
}

TEST(CaptureSharedInputs, OneTensorTwiceIsTwoInputs) {
  torch::manual_seed(1);
  Difference model;
  const at::NoGradGuard no_grad;
  const at::Tensor x = seeded({3, 4}), a = seeded({3, 4}, 2), b = seeded({3, 4}, 3);
  for (const CaptureOptions& options : {CaptureOptions(), unchecked()}) {
    Session session(capture(model, std::tuple(x, x), options));
    expect_same(session({a, b}), model.forward(a, b), 0, "two tensors");
    expect_same(session({x, x}), model.forward(x, x), 0, "one tensor");
  }
}

TEST(CaptureSharedInputs, InListsTuplesAndDicts) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = seeded({3, 4}), a = seeded({3, 4}, 2), b = seeded({3, 4}, 3);
  const ForwardFunction in_list = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    const auto items = args[1].toTensorVector();
    return args[0].toTensor() - items[0] * 2 + items[1].exp();
  };
  const auto list = [](const at::Tensor& first, const at::Tensor& second) {
    return std::vector<c10::IValue>{first, std::vector<at::Tensor>{first, second}};
  };
  const ForwardFunction in_dict = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    const auto items = args[0].toGenericDict();
    return items.at("a").toTensor() - items.at("b").toTensor() * 2;
  };
  const auto dict = [](const at::Tensor& first, const at::Tensor& second) {
    return std::vector<c10::IValue>{
        capture_detail::to_ivalue(std::map<std::string, at::Tensor>{{"a", first}, {"b", second}})};
  };
  const ForwardFunction in_tuple = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    const auto& items = args[0].toTupleRef().elements();
    return items[0].toTensor() - items[1].toTensor() * 2;
  };
  const auto tuple = [](const at::Tensor& first, const at::Tensor& second) {
    return std::vector<c10::IValue>{std::tuple(first, second)};
  };
  for (const CaptureOptions& options : {CaptureOptions(), unchecked()}) {
    expect_same(Session(capture(in_list, list(x, x), options))(list(a, b)), in_list(list(a, b)), 0, "list");
    expect_same(Session(capture(in_dict, dict(x, x), options))(dict(a, b)), in_dict(dict(a, b)), 0, "dict");
    expect_same(Session(capture(in_tuple, tuple(x, x), options))(tuple(a, b)), in_tuple(tuple(a, b)), 0,
                "tuple");
  }
}

TEST(CaptureSharedInputs, ViewsOfOneMemoryAreInputsOfTheirOwn) {
  const at::NoGradGuard no_grad;
  // detach() copies a handle: by storage and geometry alone the two inputs are one.
  const ForwardFunction function = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    return args[0].toTensor().detach() - args[1].toTensor().detach() * 2;
  };
  const at::Tensor whole = seeded({4, 8}), a = seeded({4, 4}, 2), b = seeded({4, 4}, 3);
  const at::Tensor left = whole.slice(1, 0, 4);
  for (const auto& other : {left.detach(), whole.slice(1, 2, 6), whole.slice(1, 4, 8), left.t()}) {
    const auto graph = capture(function, {left, other}, unchecked());
    expect_same(Session(graph)({a, b}), function({a, b}), 0);
    EXPECT_EQ(graph->graph().inputs()[1].value->meta()->strides[0].constant(), other.stride(0));
  }
}

TEST(CaptureSharedInputs, WhatIsWrittenMustNotBeShared) {
  const ForwardFunction writes = [](const std::vector<c10::IValue>& args) -> c10::IValue {
    at::Tensor x = args[0].toTensor();
    x.add_(1);
    return x * args[1].toTensor();
  };
  const at::Tensor x = seeded({4, 4});
  expect_error(ErrorCode::kUnsupported, {"input0", "input1", "shares its memory"}, [&] {
    capture(writes, {x, x});
  });
  EXPECT_TRUE(at::equal(x, seeded({4, 4})));
  Session session(capture(writes, {seeded({4, 4}), seeded({4, 4}, 2)}));
  expect_error(ErrorCode::kGuard, {"input0", "shares memory"}, [&] { session({x, x.t()}); });
  EXPECT_TRUE(at::equal(x, seeded({4, 4}))) << "nothing is written";
  const at::Tensor eight = seeded({8, 4}), upper = eight.slice(0, 0, 4), lower = eight.slice(0, 4, 8);
  const at::Tensor expected = (upper + 1) * lower;
  EXPECT_TRUE(at::equal(session({upper, lower}).toTensor(), expected));
}

at::Tensor first_of(const c10::IValue& result) {
  return result.isTensor() ? result.toTensor() : result.toTupleRef().elements().at(0).toTensor();
}

/// Captured with the examples, right for self- and cross-attention.
template <typename Model, typename Examples>
void check_attention(Model& model, const Examples& examples) {
  const at::NoGradGuard no_grad;
  const at::Tensor q = seeded({4, 2, 8}, 5), k = seeded({4, 2, 8}, 6), v = seeded({4, 2, 8}, 7);
  for (const CaptureOptions& options : {CaptureOptions(), unchecked()}) {
    Session session(capture(model, examples, options));
    EXPECT_TRUE(at::allclose(first_of(session({q, q, q})), std::get<0>(model.forward(q, q, q)), 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(first_of(session({q, k, k})), std::get<0>(model.forward(q, k, k)), 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(first_of(session({q, k, v})), std::get<0>(model.forward(q, k, v)), 1e-5, 1e-6));
  }
}

TEST(CaptureSharedInputs, AttentionOfEqualExamples) {
  torch::manual_seed(6);
  torch::nn::MultiheadAttention model(torch::nn::MultiheadAttentionOptions(8, 2));
  model->eval();
  const at::Tensor q = seeded({4, 2, 8}), ones = at::ones({4, 2, 8});
  check_attention(*model, std::tuple(q, q, q));
  check_attention(*model, std::tuple(q, q.clone(), q.clone()));
  check_attention(*model, std::tuple(at::ones({4, 2, 8}), ones, ones));
}

TEST(CaptureSharedInputs, SelfAttentionInsideAModelStaysOneProduct) {
  torch::manual_seed(6);
  torch::nn::TransformerEncoderLayer model(torch::nn::TransformerEncoderLayerOptions(8, 2));
  model->eval();
  const auto graph = capture(*model, std::tuple(seeded({4, 2, 8})));
  for (const GraphInput& input : graph->graph().inputs()) {
    if (input.target == "self_attn.in_proj_weight") {
      EXPECT_EQ(input.value->users().size(), 1U);
      return;
    }
  }
  ADD_FAILURE() << "the weight of the projections is no input";
}

TEST(CaptureSharedInputs, TransformerWithOneTensorForBothSides) {
  torch::manual_seed(7);
  torch::nn::Transformer model(torch::nn::TransformerOptions(8, 2, 1, 1).dim_feedforward(16));
  model->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor q = seeded({4, 2, 8}), a = seeded({4, 2, 8}, 2), b = seeded({4, 2, 8}, 3);
  Session session(capture(*model, std::tuple(q, q)));
  EXPECT_TRUE(at::allclose(session({a, b}).toTensor(), model->forward(a, b), 1e-5, 1e-6));
}

}  // namespace
}  // namespace halftone
