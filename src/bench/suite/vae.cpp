// A variational autoencoder on 64 x 64 images. Its noise is an input: a call is a function of its arguments.
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/conv.h>

#include "bench/suite/builders.h"
#include "bench/suite/weights.h"

namespace halftone {
namespace {

constexpr int64_t kVaeLatent = 128, kVaeFlat = 128 * 8 * 8;

torch::nn::Conv2d vae_smaller(int64_t inputs, int64_t outputs) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(inputs, outputs, 4).stride(2).padding(1));
}

torch::nn::ConvTranspose2d vae_larger(int64_t inputs, int64_t outputs) {
  return torch::nn::ConvTranspose2d(
      torch::nn::ConvTranspose2dOptions(inputs, outputs, 4).stride(2).padding(1));
}

struct Vae : torch::nn::Module {
  Vae() {
    down1 = register_module("down1", vae_smaller(3, 32));
    down2 = register_module("down2", vae_smaller(32, 64));
    down3 = register_module("down3", vae_smaller(64, 128));
    mean = register_module("mean", torch::nn::Linear(kVaeFlat, kVaeLatent));
    spread = register_module("spread", torch::nn::Linear(kVaeFlat, kVaeLatent));
    start = register_module("start", torch::nn::Linear(kVaeLatent, kVaeFlat));
    up1 = register_module("up1", vae_larger(128, 64));
    up2 = register_module("up2", vae_larger(64, 32));
    up3 = register_module("up3", vae_larger(32, 3));
  }
  /// The image again, the latent means and the logarithms of the latent variances.
  std::tuple<at::Tensor, at::Tensor, at::Tensor> forward(const at::Tensor& pixels, const at::Tensor& noise) {
    const at::Tensor seen = at::relu(down3(at::relu(down2(at::relu(down1(pixels)))))).flatten(1);
    const at::Tensor mu = mean(seen), log_variance = spread(seen).tanh();
    const at::Tensor latent = mu + noise * (0.5 * log_variance).exp();
    const at::Tensor x = at::relu(start(latent)).view({-1, 128, 8, 8});
    return {up3(at::relu(up2(at::relu(up1(x))))), mu, log_variance};
  }
  torch::nn::Conv2d down1{nullptr}, down2{nullptr}, down3{nullptr};
  torch::nn::Linear mean{nullptr}, spread{nullptr}, start{nullptr};
  torch::nn::ConvTranspose2d up1{nullptr}, up2{nullptr}, up3{nullptr};
};

at::Tensor vae_loss(const c10::IValue& result, const std::vector<c10::IValue>& args) {
  const auto& parts = result.toTupleRef().elements();
  const at::Tensor mu = parts.at(1).toTensor(), log_variance = parts.at(2).toTensor();
  const at::Tensor divergence = -0.5 * (1 + log_variance - mu.pow(2) - log_variance.exp()).mean();
  return at::mse_loss(parts.at(0).toTensor(), args.at(0).toTensor()) + 0.1 * divergence;
}

}  // namespace

SuiteModel make_vae() {
  return two_tensor_model(
      std::make_shared<Vae>(), {"pixels", "noise"},
      [](int64_t batch, uint64_t seed) -> Sample {
        return {{drawn_floats({batch, 3, 64, 64}, seed), drawn_floats({batch, kVaeLatent}, seed + 500)}, {}};
      },
      vae_loss);
}

}  // namespace halftone
