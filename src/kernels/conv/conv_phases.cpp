#include "kernels/conv/conv_phases.h"

namespace halftone::kernels {
namespace {

// One dimension of a transposed convolution's phase: outputs first, first + stride, …
void transposed_dim(const ConvShape& s, int d, int64_t first, ConvPhase& phase) {
  const int64_t stride = s.stride[d], dilation = s.dilation[d];
  phase.first[d] = first;
  phase.step[d] = stride;
  phase.count[d] = first < s.out[d] ? (s.out[d] - first + stride - 1) / stride : 0;
  phase.in_step[d] = 1;
  // i = (o + pad - t · dilation) / stride must come out even.
  const auto hits = [&](int64_t t) { return (first + s.pad[d] - t * dilation) % stride == 0; };
  int64_t t = 0;
  while (t < s.kernel[d] && !hits(t)) ++t;
  phase.tap_first[d] = t;
  phase.tap_step[d] = 1;
  if (t == s.kernel[d]) return;
  phase.in_first[d] = (first + s.pad[d] - t * dilation) / stride;
  int64_t period = 1;
  while (period * dilation % stride != 0) ++period;
  phase.tap_step[d] = period;
  phase.taps[d] = (s.kernel[d] - t + period - 1) / period;
  phase.in_tap_step[d] = -(period * dilation / stride);
}

// Taps of dimension d whose phase comes before `remainder`.
int64_t taps_before(const ConvShape& s, int d, int64_t remainder) {
  int64_t count = 0;
  for (int64_t t = 0; t < s.kernel[d]; ++t) {
    const int64_t signed_rest = (t * s.dilation[d] - s.pad[d]) % s.stride[d];
    count += (signed_rest < 0 ? signed_rest + s.stride[d] : signed_rest) < remainder;
  }
  return count;
}

}  // namespace

int64_t conv_phase_count(const ConvShape& s) {
  return s.transposed ? s.stride[0] * s.stride[1] * s.stride[2] : 1;
}

ConvPhase conv_phase(const ConvShape& s, int64_t index) {
  ConvPhase phase;
  if (!s.transposed) {
    for (int d = 0; d < kConvDims; ++d) {
      phase.step[d] = phase.tap_step[d] = 1;
      phase.count[d] = s.out[d];
      phase.taps[d] = s.kernel[d];
      phase.in_first[d] = -s.pad[d];
      phase.in_step[d] = s.stride[d];
      phase.in_tap_step[d] = s.dilation[d];
    }
    return phase;
  }
  ConvExtent remainder{};
  for (int d = kConvDims - 1; d >= 0; --d) {
    remainder[d] = index % s.stride[d];
    index /= s.stride[d];
    transposed_dim(s, d, remainder[d], phase);
  }
  // Phases are counted width first, and those of one dimension share out its taps.
  int64_t outer = 1;
  for (int d = 0; d < kConvDims; ++d) {
    int64_t inner = 1;
    for (int e = d + 1; e < kConvDims; ++e) inner *= s.kernel[e];
    phase.tap_offset += outer * taps_before(s, d, remainder[d]) * inner;
    outer *= phase.taps[d];
  }
  return phase;
}

ConvPixelWalk::ConvPixelWalk(const ConvShape& shape, const ConvPhase& phase, int64_t pixel)
    : phase_(phase), out_(shape.out), image_(phase.pixels() == 0 ? 0 : pixel / phase.pixels()) {
  int64_t rest = phase.pixels() == 0 ? 0 : pixel % phase.pixels();
  for (int d = kConvDims - 1; d >= 0; --d) {
    if (phase.count[d] == 0) continue;
    at_[d] = rest % phase.count[d];
    rest /= phase.count[d];
  }
}

}  // namespace halftone::kernels
