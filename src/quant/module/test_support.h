// Shared by the tests of this folder: a user's own config with its format, made of plain operators, and data
// from a seed.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "graph/test_support.h"
#include "halftone/base/error.h"
#include "halftone/quant/quantized_tensor.h"
#include "halftone/quant/weight_format.h"

namespace halftone {

/// Codes in [-7, 7] and a step for each row; multiplied as a plain linear, so that products can be compared
/// exactly.
class ToyFormat final : public WeightFormat {
 public:
  std::string refuse(int64_t n, int64_t k) const override {
    return k == 13 ? "thirteen inputs bring bad luck" : "";
  }
  std::vector<std::pair<std::string, at::Tensor>> quantize(const at::Tensor& weight) const override {
    const at::Tensor step = weight.abs().amax(1).clamp_min(1e-6) / 7;
    return {{"codes", at::round(weight / step.unsqueeze(1)).to(at::kChar)}, {"step", step}};
  }
  at::Tensor dequantize(const QuantizedWeight& weight) const override {
    return weight.part("codes").to(at::kFloat) * weight.part("step").unsqueeze(1);
  }
  at::Tensor linear(const at::Tensor& x, const QuantizedWeight& weight,
                    const std::optional<at::Tensor>& bias) const override {
    return at::linear(x, dequantize(weight).to(x.scalar_type()), bias);
  }
  at::Tensor embedding(const at::Tensor& indices, const QuantizedWeight& weight) const override {
    return at::embedding(dequantize(weight).to(weight.dtype), indices);
  }
  bool has_embedding() const override { return true; }
};

inline QuantConfig toy_config() {
  static const bool registered = [] {
    register_config_type({.type = "ToyConfig",
                          .default_fields = R"({"flavour":0})",
                          .check = [](std::string_view) {},
                          .make_format = [](const QuantConfig&) { return std::make_shared<ToyFormat>(); }});
    return true;
  }();
  static_cast<void>(registered);
  return QuantConfig::of_type("ToyConfig");
}

inline QuantConfig other_toy_config() {
  toy_config();
  return QuantConfig::of_type("ToyConfig", R"({"flavour":1})");
}

inline at::Tensor seeded_randn(at::IntArrayRef sizes, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(sizes, generator, at::kFloat);
}

inline at::Tensor toy_tensor(int64_t n, int64_t k, uint64_t seed = 1) {
  return make_quantized_tensor(quantize_weight(seeded_randn({n, k}, seed), toy_config(), "toy.layer"),
                               "toy.layer");
}

inline bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && at::equal(a, b);
}

}  // namespace halftone
