#include "bench/suite/weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include <cmath>
#include <string_view>

namespace halftone {
namespace {

/// One step of SplitMix64: every counter gives 64 bits of its own.
uint64_t mixed_bits(uint64_t counter) {
  uint64_t z = counter * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

uint64_t hashed_name(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  return hash;
}

/// Integers until the last step: no rounding differs between machines, as it does in logarithms and cosines.
float bell_number(uint64_t bits) {
  const int64_t sum =
      static_cast<int64_t>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
  constexpr double kMiddle = 2 * 65535.0, kDeviation = 37837.2273;  // √(4 (65536² - 1) / 12)
  return static_cast<float>((static_cast<double>(sum) - kMiddle) / kDeviation);
}

void fill_bell(const at::Tensor& tensor, double mean, double deviation, uint64_t seed) {
  float* out = tensor.mutable_data_ptr<float>();
  const uint64_t start = mixed_bits(seed + 1);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const float drawn = bell_number(mixed_bits(start + static_cast<uint64_t>(i)));
    out[i] = static_cast<float>(mean) + static_cast<float>(deviation) * drawn;
  }
}

void set_parameter(const std::string& name, const at::Tensor& tensor, uint64_t seed) {
  if (tensor.dim() >= 2) {
    const double inputs = static_cast<double>(tensor.numel()) / static_cast<double>(tensor.size(0));
    fill_bell(tensor, 0, std::sqrt((tensor.dim() >= 4 ? 2.0 : 1.0) / inputs), seed);
  } else if (name.ends_with("weight")) {
    const double mean = name.find("residual_norm") != std::string::npos ? 0.3 : 1;
    fill_bell(tensor, mean, 0.1 * mean, seed);
  } else {
    fill_bell(tensor, 0, 0.02, seed);
  }
}

}  // namespace

at::Tensor drawn_floats(at::IntArrayRef sizes, uint64_t seed) {
  const at::Tensor tensor = at::empty(sizes, at::kFloat);
  fill_bell(tensor, 0, 1, seed);
  return tensor;
}

at::Tensor drawn_ids(at::IntArrayRef sizes, int64_t limit, uint64_t seed) {
  const at::Tensor tensor = at::empty(sizes, at::kLong);
  int64_t* out = tensor.mutable_data_ptr<int64_t>();
  const uint64_t start = mixed_bits(seed + 1);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    out[i] =
        static_cast<int64_t>(mixed_bits(start + static_cast<uint64_t>(i)) % static_cast<uint64_t>(limit));
  return tensor;
}

void set_weights(torch::nn::Module& module, uint64_t seed) {
  const at::NoGradGuard no_grad;
  // By name, so that a layer's weights do not depend on the layers before it.
  for (const auto& item : module.named_parameters())
    set_parameter(item.key(), item.value().detach(), hashed_name(item.key()) + seed);
  for (const auto& item : module.named_buffers()) {
    const std::string& name = item.key();
    if (name.ends_with("running_mean")) fill_bell(item.value(), 0, 0.05, hashed_name(name) + seed);
    if (name.ends_with("running_var")) fill_bell(item.value(), 1, 0.1, hashed_name(name) + seed);
  }
}

}  // namespace halftone
