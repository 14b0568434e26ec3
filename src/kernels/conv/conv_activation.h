// The activations that a convolution applies on the way to memory, in single precision.
#pragma once

#include <limits>

namespace halftone::kernels {

enum class ConvActivation : int {
  kNone,
  kRelu,         ///< max(x, 0)
  kClamp,        ///< min(max(x, lo), hi): relu6, hardtanh
  kSilu,         ///< x·σ(x)
  kGeluErf,      ///< x·Φ(x)
  kGeluTanh,     ///< x·σ(2·sqrt(2/π)·(x + 0.044715·x³))
  kSigmoid,      ///< σ(x)
  kHardSigmoid,  ///< min(max(x + 3, 0), 6) / 6
  kHardSwish,    ///< x·hardsigmoid(x)
};

inline constexpr ConvActivation kAllConvActivations[] = {
    ConvActivation::kNone,    ConvActivation::kRelu,        ConvActivation::kClamp,
    ConvActivation::kSilu,    ConvActivation::kGeluErf,     ConvActivation::kGeluTanh,
    ConvActivation::kSigmoid, ConvActivation::kHardSigmoid, ConvActivation::kHardSwish};

/// NaN gives NaN in all of them. `lo` and `hi` are read for kClamp only.
struct ConvActivate {
  ConvActivation kind = ConvActivation::kNone;
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
};

/// The scalar form, which is also the definition. Vectorised ones keep the bound of epilogue.h.
float conv_activate(float x, const ConvActivate& activate);

}  // namespace halftone::kernels
