// Graphs in training: what they compute, that they learn, and that convert and lower give what was trained.
#include "halftone/ptq/qat_graph.h"

#include "halftone/ptq/lower.h"
#include "quant/ptq/test_models.h"

namespace halftone {
namespace {

QatGraph prepared(const GraphModule& model, StaticInt8Bits bits = {}) {
  return prepare_qat(model, static_int8_mapping(bits), {residual_input(1)}, builtin_backend_config("x86"));
}

at::Tensor answer(QatGraph& graph, const at::Tensor& x) {
  return graph.forward({x}).at(0).toTensor();
}

/// Something to learn: another network's answers.
double train(QatGraph& graph, int first, int last, double rate = 0.02) {
  const auto teacher = fuse(*residual_model(), builtin_backend_config("x86"));
  double loss = 0;
  for (int step = first; step < last; ++step) {
    const at::Tensor x = residual_input(10 + static_cast<uint64_t>(step));
    const at::Tensor wanted = first_output(teacher, x) * 0.5 + 0.1;
    const at::Tensor error = (answer(graph, x) - wanted).pow(2).mean();
    error.backward();
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : graph.parameters()) {
      parameter.sub_(parameter.grad(), rate);
      parameter.mutable_grad().reset();
    }
    loss = error.item<double>();
  }
  return loss;
}

TEST(QatGraph, ComputesWhatConvertWouldGive) {
  const auto model = residual_model();
  for (const int bits : {7, 8}) {
    QatGraph graph = prepared(*model, {.activation = bits, .weight = bits});
    EXPECT_EQ(count_nodes(graph.module(), "halftone::observe_and_fake_quantize"), 3u);
    EXPECT_EQ(count_nodes(graph.module(), "halftone::fake_quantize_stored"), 2u);
    train(graph, 0, 10);
    graph.train(false);
    const at::Tensor x = residual_input(5);
    const at::Tensor faked = answer(graph, x).detach();
    const ConvertResult result = graph.convert();
    const at::Tensor converted = first_output(result.module, x);
    // A tie may round the other way (FakeQuantize.AgreesWithStaticInt8); nothing else may differ.
    const double step = converted.max().item<double>() / (bits == 7 ? 127 : 255);
    EXPECT_LT((faked - converted).abs().max().item<double>(), 1.01 * step);
    EXPECT_LT(faked.ne(converted).to(at::kFloat).mean().item<double>(), 0.02);
    const at::Tensor lowered = first_output(lower(*result.module).module, x);
    EXPECT_LT((lowered - converted).abs().max().item<double>(), 1.01 * step);
  }
}

TEST(QatGraph, Learns) {
  const auto model = residual_model();
  const at::Tensor before = model->tensor("conv1.weight").clone();
  QatGraph graph = prepared(*model);
  const double start = train(graph, 0, 1);
  const double end = train(graph, 1, 60);
  EXPECT_LT(end, start / 2);
  EXPECT_TRUE(model->tensor("conv1.weight").equal(before)) << "the model that was given has changed";
  for (const auto& [name, parameter] : graph.named_parameters()) EXPECT_TRUE(parameter.is_leaf()) << name;
}

TEST(QatGraph, GradientsReachInputsAndParameters) {
  QatGraph graph = prepared(*residual_model());
  const at::Tensor x = residual_input(3).requires_grad_(true);
  answer(graph, x).sum().backward();
  EXPECT_GT(x.grad().abs().sum().item<float>(), 0);
  for (const auto& [name, parameter] : graph.named_parameters())
    EXPECT_GT(parameter.grad().abs().sum().item<float>(), 0) << name;
}

TEST(QatGraph, ObserversAreTorchAosMovingAverages) {
  QatGraph graph = prepared(*residual_model());
  const at::Tensor first = residual_input(3), second = residual_input(4) * 2;
  answer(graph, first);
  answer(graph, second);
  bool found = false;
  const float min = first.min().item<float>(), wanted = min + (second.min().item<float>() - min) * 0.01f;
  for (const auto& [name, tensor] : graph.state())
    found = found || (name.starts_with("observer:") && tensor[0].item<float>() == wanted);
  EXPECT_TRUE(found) << "no observer has the input's range";
  const TensorMap before = graph.state();
  std::map<std::string, at::Tensor> copies;
  for (const auto& [name, tensor] : before)
    copies[name] = tensor.narrow(0, 0, std::min<int64_t>(3, tensor.size(0))).clone();
  graph.train(false);
  answer(graph, second);
  graph.train();
  graph.freeze_observers();
  answer(graph, second);
  for (const auto& [name, tensor] : graph.state())
    EXPECT_TRUE(tensor.narrow(0, 0, std::min<int64_t>(3, tensor.size(0))).equal(copies[name])) << name;
}

TEST(QatGraph, ResumedTrainingIsUninterruptedTraining) {
  const auto model = residual_model();
  QatGraph straight = prepared(*model), resumed = prepared(*model);
  train(straight, 0, 5);
  TensorMap saved;
  for (const auto& [name, tensor] : straight.state()) saved.emplace(name, tensor.detach().clone());
  train(straight, 5, 10);
  resumed.load_state(saved);
  train(resumed, 5, 10);
  const TensorMap expected = straight.state();
  for (const auto& [name, tensor] : resumed.state()) EXPECT_TRUE(tensor.equal(expected.at(name))) << name;
  saved.erase("conv1.weight");
  saved["other"] = at::zeros({1});
  const std::string message = message_of(ErrorCode::kInvalidArgument, [&] { resumed.load_state(saved); });
  EXPECT_NE(message.find("conv1.weight"), std::string::npos) << message;
  EXPECT_NE(message.find("other"), std::string::npos) << message;
}

TEST(QatGraph, SaysWhatItCannotTrain) {
  const auto model = residual_model();
  QatGraph graph = prepared(*model);
  graph.train(false);
  expect_error(ErrorCode::kState, {"forward() in training"}, [&] { answer(graph, residual_input(1)); });
  expect_error(ErrorCode::kState, {"never observed"}, [&] { graph.convert(); });
  graph.train();
  expect_error(ErrorCode::kInvalidArgument, {"NaN"}, [&] { answer(graph, at::full({2, 4, 6, 6}, NAN)); });
  QConfigMapping dynamic;
  dynamic.set_global(qconfig_by_name("default_dynamic"));
  expect_error(ErrorCode::kUnsupported, {"run time"}, [&] {
    prepare_qat(*linear_model(), dynamic, {at::ones({1, 3})}, builtin_backend_config("x86"));
  });
}

}  // namespace
}  // namespace halftone
