// For the oracle test: qat_graph_tool MODEL.pt2 DATA.safetensors STEPS RATE. Prepares the model for static
// int8 and trains it on x and labels with plain gradient descent; prints the loss of each step, then the mean
// of the converted model's first results.
#include <ATen/ops/cross_entropy_loss.h>
#include <fmt/format.h>
#include <torch/optim/sgd.h>

#include <cstdlib>

#include "halftone/capture/capture.h"
#include "halftone/graph/tensor_file.h"
#include "halftone/ptq/qat_graph.h"

namespace {

using namespace halftone;

/// Moving averages of activations, and weights with the range that they have in each call.
QConfigMapping mapping() {
  ObserverConfig weight(ObserverKind::kPerChannelMinMax);
  weight.dtype = ConfigDType::kQInt8;
  weight.qscheme = QScheme::kPerChannelSymmetric;
  return QConfigMapping().set_global(QConfig{ObserverKind::kMovingAverageMinMax, weight});
}

void run(char** argv) {
  const auto module = load_pt2(argv[1]);
  const TensorMap data = load_tensors(argv[2]).tensors;
  const at::Tensor x = data.at("x"), labels = data.at("labels");
  const int64_t steps = std::atoll(argv[3]), batch = x.size(0) / steps;
  QatGraph graph = prepare_qat(*module, mapping(), {x.narrow(0, 0, batch)}, builtin_backend_config("x86"));
  torch::optim::SGD optimizer(graph.parameters(), std::atof(argv[4]));
  for (int64_t step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const at::Tensor logits = graph.forward({x.narrow(0, step * batch, batch)}).at(0).toTensor();
    const at::Tensor loss = at::cross_entropy_loss(logits, labels.narrow(0, step * batch, batch));
    loss.backward();
    optimizer.step();
    fmt::print("{:.9g}\n", loss.item<double>());
  }
  Session session(graph.convert().module);
  const at::Tensor first = session.run({x.narrow(0, 0, batch)}).at(0).toTensor();
  fmt::print("{:.9g}\n", at::cross_entropy_loss(first, labels.narrow(0, 0, batch)).item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  run(argv);  // the test shows what an error prints at the end of the program
  return 0;
}
