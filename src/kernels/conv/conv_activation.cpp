#include "kernels/conv/conv_activation.h"

#include <cmath>

#include "kernels/common/epilogue.h"

namespace halftone::kernels {
namespace {

// Written so that NaN falls through.
float conv_clamp(float x, float lo, float hi) {
  const float raised = x < lo ? lo : x;
  return raised > hi ? hi : raised;
}

}  // namespace

float conv_activate(float x, const ConvActivate& activate) {
  switch (activate.kind) {
    case ConvActivation::kNone:
      return x;
    case ConvActivation::kRelu:
      return kernels::activate(x, Activation::kRelu);
    case ConvActivation::kClamp:
      return conv_clamp(x, activate.lo, activate.hi);
    case ConvActivation::kSilu:
      return kernels::activate(x, Activation::kSilu);
    case ConvActivation::kGeluErf:
      return kernels::activate(x, Activation::kGeluErf);
    case ConvActivation::kGeluTanh:
      return kernels::activate(x, Activation::kGeluTanh);
    case ConvActivation::kSigmoid:
      return 1.0f / (1.0f + std::exp(-x));
    case ConvActivation::kHardSigmoid:
      return conv_clamp(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f);
    case ConvActivation::kHardSwish:
      return x * (conv_clamp(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f));
  }
  return x;
}

}  // namespace halftone::kernels
