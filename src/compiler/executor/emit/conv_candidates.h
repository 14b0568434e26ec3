// mkldnn's fused convolution, as libtorch registers it, beside our kernels: whether it can compute a problem,
// as a step, and which of the two is faster here.
#pragma once

#include <optional>
#include <string>

#include "compiler/executor/planner.h"
#include "kernels/fp32_conv/fp32_conv.h"

namespace halftone::compiler {

/// A convolution that both could compute.
struct ConvCandidate {
  kernels::ConvShape shape;
  size_t dims = 2;              ///< spatial ones
  bool uneven_padding = false;  ///< other in front than behind
  kernels::ConvActivate activate;
  at::Tensor weight, bias;  ///< bias may be undefined
  bool residual = false;
};

/// Why mkldnn cannot compute it; nullptr if it can.
const char* mkldnn_conv_refusal(const ConvCandidate& candidate);

/// A step of the dispatcher's for it; weights are brought into mkldnn's own layout once, here. `residual`:
/// where the candidate has one.
std::unique_ptr<Step> mkldnn_conv_step(const ConvCandidate& candidate, const Slot& x, const Slot* residual,
                                       const Slot& y);

/// Milliseconds of a call, the best of a few on data of zeros. One measurement a problem and number of
/// threads, kept for the process.
struct ConvTimes {
  double ours = 0, mkldnn = 0;
  /// A plan with steps of ATen's must run on ATen's threads, which costs every other step: mkldnn has to be
  /// clearly better.
  bool mkldnn_is_clearly_faster() const { return mkldnn < 0.9 * ours; }
};
ConvTimes time_conv(const ConvCandidate& candidate, const kernels::Fp32ConvKernel& kernel,
                    const at::Tensor& packed, int threads);

}  // namespace halftone::compiler
