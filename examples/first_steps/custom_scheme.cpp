// custom_scheme: a weight format of your own: the sign of each weight, and one scale for the layer.
#include <halftone/halftone.h>
#include <torch/nn/modules/linear.h>

using Weight = halftone::QuantizedWeight;

struct SignFormat : halftone::WeightFormat {
  halftone::Parts quantize(const at::Tensor& w) const override {
    return {{"weight", w.sign().to(at::kChar)}, {"scale", w.abs().mean().reshape({1})}};
  }
  at::Tensor dequantize(const Weight& w) const override { return w.part("weight") * w.part("scale"); }
  at::Tensor linear(const at::Tensor& x, const Weight& w,
                    const std::optional<at::Tensor>& bias) const override {
    return at::linear(x, dequantize(w), bias);
  }
};

int main() {
  const auto make = [](const halftone::QuantConfig&) { return std::make_shared<const SignFormat>(); };
  halftone::register_config_type({.type = "SignConfig", .make_format = make});
  torch::nn::Linear layer(64, 8);
  const at::Tensor x = at::randn({3, 64}), w = layer->weight.sign() * layer->weight.abs().mean();
  halftone::quantize_(*layer, halftone::QuantConfig::of_type("SignConfig"));
  return at::allclose(layer->forward(x), at::linear(x, w, layer->bias), 1e-4, 1e-5) ? 0 : 1;
}
