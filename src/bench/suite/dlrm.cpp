// A recommendation model as DLRM is one: embeddings of categories and a perceptron of numbers, their products
// pair by pair, and a perceptron on top.
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tril_indices.h>
#include <torch/nn/modules/embedding.h>

#include "bench/suite/builders.h"
#include "bench/suite/weights.h"

namespace halftone {
namespace {

constexpr int64_t kDlrmTables = 12, kDlrmRows = 20000, kDlrmWidth = 64, kDlrmNumbers = 13;
constexpr int64_t kDlrmPairs = (kDlrmTables + 1) * kDlrmTables / 2;

struct DlrmTower : torch::nn::Module {
  explicit DlrmTower(const std::vector<int64_t>& widths) {
    for (size_t i = 0; i + 1 < widths.size(); ++i)
      layers.push_back(
          register_module("fc" + std::to_string(i), torch::nn::Linear(widths[i], widths[i + 1])));
  }
  at::Tensor forward(at::Tensor x) {
    for (auto& layer : layers) x = at::relu(layer(x));
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};

struct Dlrm : torch::nn::Module {
  Dlrm() {
    for (int64_t i = 0; i < kDlrmTables; ++i)
      tables.push_back(
          register_module("table" + std::to_string(i), torch::nn::Embedding(kDlrmRows, kDlrmWidth)));
    bottom = register_module("bottom", std::make_shared<DlrmTower>(std::vector<int64_t>{13, 512, 256, 64}));
    top = register_module("top", std::make_shared<DlrmTower>(
                                     std::vector<int64_t>{kDlrmWidth + kDlrmPairs, 1024, 1024, 512, 256}));
    head = register_module("head", torch::nn::Linear(256, 1));
    const at::Tensor below = at::tril_indices(kDlrmTables + 1, kDlrmTables + 1, -1);
    pairs = register_buffer("pairs", below.select(0, 0) * (kDlrmTables + 1) + below.select(0, 1));
  }
  at::Tensor forward(const at::Tensor& numbers, const at::Tensor& categories) {
    const at::Tensor dense = bottom->forward(numbers);
    std::vector<at::Tensor> all = {dense};
    for (int64_t i = 0; i < kDlrmTables; ++i) all.push_back(tables[i](categories.select(1, i)));
    const at::Tensor together = at::stack(all, 1);
    const at::Tensor products = at::bmm(together, together.transpose(1, 2)).flatten(1).index_select(1, pairs);
    return head(top->forward(at::cat({dense, products}, 1))).squeeze(1);
  }
  std::vector<torch::nn::Embedding> tables;
  std::shared_ptr<DlrmTower> bottom, top;
  torch::nn::Linear head{nullptr};
  at::Tensor pairs;
};

}  // namespace

SuiteModel make_dlrm() {
  return two_tensor_model(
      std::make_shared<Dlrm>(), {"numbers", "categories"},
      [](int64_t batch, uint64_t seed) -> Sample {
        return {{drawn_floats({batch, kDlrmNumbers}, seed), drawn_ids({batch, kDlrmTables}, kDlrmRows, seed)},
                {}};
      },
      [](const c10::IValue& result, const std::vector<c10::IValue>&) {
        const at::Tensor clicks = result.toTensor();
        return at::binary_cross_entropy_with_logits(clicks, at::full_like(clicks, 0.25));
      });
}

}  // namespace halftone
