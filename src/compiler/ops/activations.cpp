#include "compiler/ops/activations.h"

#include <ATen/ops/clamp.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>

#include <algorithm>
#include <iterator>

#include "base/errors.h"

namespace halftone::ops {
namespace {

using at::Tensor;
using kernels::Activation;
using kernels::ConvActivation;

const NamedActivation kActivations[] = {
    {"none", [](const Tensor& y, double, double) { return y; }, ConvActivation::kNone, Activation::kNone},
    {"relu", [](const Tensor& y, double, double) { return at::relu(y); }, ConvActivation::kRelu,
     Activation::kRelu},
    {"clamp", [](const Tensor& y, double lo, double hi) { return at::clamp(y, lo, hi); },
     ConvActivation::kClamp, std::nullopt},
    {"gelu", [](const Tensor& y, double, double) { return at::gelu(y); }, ConvActivation::kGeluErf,
     Activation::kGeluErf},
    {"gelu_tanh", [](const Tensor& y, double, double) { return at::gelu(y, "tanh"); },
     ConvActivation::kGeluTanh, Activation::kGeluTanh},
    {"silu", [](const Tensor& y, double, double) { return at::silu(y); }, ConvActivation::kSilu,
     Activation::kSilu},
    {"hardswish", [](const Tensor& y, double, double) { return at::hardswish(y); },
     ConvActivation::kHardSwish, std::nullopt},
    {"sigmoid", [](const Tensor& y, double, double) { return at::sigmoid(y); }, ConvActivation::kSigmoid,
     std::nullopt},
    {"hardsigmoid", [](const Tensor& y, double, double) { return at::hardsigmoid(y); },
     ConvActivation::kHardSigmoid, std::nullopt},
};

const NamedActivation* try_activation(std::string_view name) {
  const auto* found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                   [&](const NamedActivation& each) { return each.name == name; });
  return found != std::end(kActivations) ? found : nullptr;
}

}  // namespace

const NamedActivation& conv_activation(std::string_view name) {
  const NamedActivation* found = try_activation(name);
  if (found == nullptr) fail(ErrorCode::kInvalidArgument, "halftone::conv: unknown activation \"{}\"", name);
  return *found;
}

const NamedActivation& linear_activation(std::string_view name) {
  const NamedActivation* found = try_activation(name);
  if (found == nullptr || !found->linear)
    fail(ErrorCode::kInvalidArgument, "halftone::fused_linear: unknown activation \"{}\"", name);
  return *found;
}

}  // namespace halftone::ops
