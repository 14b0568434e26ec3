#include "kernels/fp32_conv/pack.h"

#include <cmath>

#include "base/errors.h"
#include "kernels/conv/conv_phases.h"
#include "kernels/fp32_conv/drivers.h"

namespace halftone::kernels {
namespace {

constexpr PackedKind kConvKind{"fp32_conv", "htfp32c", kFp32ConvPackVersion};

// The order of the taps in a block depends on these only.
uint32_t tap_order_hash(const ConvShape& s) {
  uint32_t hash = 2166136261u;
  const auto mix = [&](int64_t v) { hash = (hash ^ static_cast<uint32_t>(v)) * 16777619u; };
  for (int d = 0; d < kConvDims; ++d) {
    mix(s.kernel[d]);
    if (!s.transposed) continue;
    mix(s.stride[d]);
    mix(s.dilation[d]);
    mix(s.pad[d] % s.stride[d]);
  }
  mix(s.transposed);
  return hash;
}

int64_t conv_panels(const Fp32ConvKernel& kernel, const ConvShape& s) {
  return packed_panel_count(s.group_out_channels(), kernel.tile_n);
}

PackedHeader conv_header(const Fp32ConvKernel& kernel, const ConvShape& s) {
  PackedHeader header{};
  header.tile_n = static_cast<uint32_t>(kernel.tile_n);
  header.group = static_cast<uint32_t>(s.groups);
  header.n = s.out_channels;
  header.k = s.group_in_channels() * s.taps();
  header.format = static_cast<uint32_t>(kernel.algorithm);
  header.tile_k = tap_order_hash(s);
  return header;
}

// Where torch has w[o][c][tap]; o counts in its group.
int64_t plain_at(const ConvShape& s, int64_t group, int64_t o, int64_t c, int64_t tap) {
  const int64_t ic = s.group_in_channels(), oc = s.group_out_channels();
  return s.transposed ? ((group * ic + c) * oc + o) * s.taps() + tap
                      : ((group * oc + o) * ic + c) * s.taps() + tap;
}

// Calls f(index in the block, index in the kernel) for every tap.
template <typename F>
void for_each_tap(const ConvShape& s, F f) {
  for (int64_t p = 0; p < conv_phase_count(s); ++p) {
    const ConvPhase phase = conv_phase(s, p);
    int64_t at = phase.tap_offset;
    for (int64_t d = 0; d < phase.taps[0]; ++d) {
      for (int64_t h = 0; h < phase.taps[1]; ++h) {
        for (int64_t w = 0; w < phase.taps[2]; ++w, ++at) {
          const int64_t depth = phase.tap_first[0] + d * phase.tap_step[0];
          const int64_t height = phase.tap_first[1] + h * phase.tap_step[1];
          const int64_t width = phase.tap_first[2] + w * phase.tap_step[2];
          f(at, (depth * s.kernel[1] + height) * s.kernel[2] + width);
        }
      }
    }
  }
}

void pack_gemm(const ConvShape& s, int64_t tile_n, const float* w, float* out) {
  const int64_t ic = s.group_in_channels(), oc = s.group_out_channels(), k = ic * s.taps();
  const int64_t panels = packed_panel_count(oc, static_cast<int>(tile_n));
  for_each_tap(s, [&](int64_t at, int64_t tap) {
    for (int64_t g = 0; g < s.groups; ++g) {
      for (int64_t o = 0; o < oc; ++o) {
        float* column = out + ((g * panels + o / tile_n) * k + at * ic) * tile_n + o % tile_n;
        for (int64_t c = 0; c < ic; ++c) column[c * tile_n] = w[plain_at(s, g, o, c, tap)];
      }
    }
  });
}

void pack_depthwise(const ConvShape& s, int64_t tile_n, const float* w, float* out) {
  const int64_t width = s.group_in_channels();
  const int64_t stride = packed_panel_count(s.out_channels, static_cast<int>(tile_n)) * tile_n;
  for_each_tap(s, [&](int64_t at, int64_t tap) {
    for (int64_t channel = 0; channel < s.out_channels; ++channel)
      for (int64_t c = 0; c < width; ++c)
        out[(at * width + c) * stride + channel] = w[plain_at(s, channel / width, channel % width, c, tap)];
  });
}

void pack_winograd(const ConvShape& s, int m, int64_t tile_n, const float* w, float* out) {
  const int n = m + 2;
  const int64_t ic = s.in_channels, panels = packed_panel_count(s.out_channels, static_cast<int>(tile_n));
  for (int64_t o = 0; o < s.out_channels; ++o) {
    for (int64_t c = 0; c < ic; ++c) {
      const float* g = w + plain_at(s, 0, o, c, 0);
      double rows[3][6], u[6];
      for (int i = 0; i < 3; ++i) {
        const double row[3] = {g[i * 3], g[i * 3 + 1], g[i * 3 + 2]};
        winograd_weights(m, row, rows[i]);
      }
      float* at = out + (o / tile_n * ic + c) * tile_n + o % tile_n;
      for (int x = 0; x < n; ++x) {
        const double column[3] = {rows[0][x], rows[1][x], rows[2][x]};
        winograd_weights(m, column, u);
        for (int y = 0; y < n; ++y) at[(y * n + x) * panels * ic * tile_n] = static_cast<float>(u[y]);
      }
    }
  }
}

}  // namespace

void winograd_weights(int m, const double g[3], double* u) {
  if (m == 2) {
    u[0] = g[0];
    u[1] = (g[0] + g[1] + g[2]) / 2;
    u[2] = (g[0] - g[1] + g[2]) / 2;
    u[3] = g[2];
    return;
  }
  // Points 0, ±a, ±b and infinity with a² = 1/2 and b² = 2: (1, p, p²) over the product of p's distances to
  // the other finite points, which is 1, -3/2 and 6.
  const double a = std::sqrt(0.5), b = std::sqrt(2.0);
  const double near = g[0] + g[2] / 2, wide = g[0] + g[2] * 2;
  u[0] = g[0];
  u[1] = (near + a * g[1]) / -1.5;
  u[2] = (near - a * g[1]) / -1.5;
  u[3] = (wide + b * g[1]) / 6;
  u[4] = (wide - b * g[1]) / 6;
  u[5] = g[2];
}

size_t fp32_conv_packed_bytes(const Fp32ConvKernel& kernel, const ConvShape& s) {
  check_conv_shape("fp32_conv", s);
  check_fp32_conv_fits(kernel, s, false);
  const int m = winograd_outputs(kernel.algorithm);
  const int64_t taps = m > 0 ? int64_t{m + 2} * (m + 2) : s.taps();
  const int64_t panels = kernel.algorithm == ConvAlgorithm::kDepthwise
                             ? packed_panel_count(s.out_channels, kernel.tile_n)
                             : s.groups * conv_panels(kernel, s);
  const int64_t weights =
      packed_weight_count(kConvKind, panels * kernel.tile_n, taps * s.group_in_channels(), kernel.tile_n);
  return sizeof(PackedHeader) + static_cast<size_t>(weights) * sizeof(float);
}

void pack_fp32_conv(const Fp32ConvKernel& kernel, const ConvShape& s, const float* w, void* out) {
  const size_t bytes = fp32_conv_packed_bytes(kernel, s);
  if (w == nullptr) fail(ErrorCode::kInvalidArgument, "fp32_conv: no weights to pack");
  begin_packed(kConvKind, conv_header(kernel, s), out, bytes);
  auto* weights = reinterpret_cast<float*>(static_cast<PackedHeader*>(out) + 1);
  if (kernel.algorithm == ConvAlgorithm::kGemm) return pack_gemm(s, kernel.tile_n, w, weights);
  if (kernel.algorithm == ConvAlgorithm::kDepthwise) return pack_depthwise(s, kernel.tile_n, w, weights);
  pack_winograd(s, winograd_outputs(kernel.algorithm), kernel.tile_n, w, weights);
}

const float* open_fp32_conv_packed(const Fp32ConvKernel& kernel, const ConvShape& s, const void* block) {
  const PackedHeader& header = open_packed(kConvKind, block, kernel.tile_n);
  const PackedHeader want = conv_header(kernel, s);
  if (header.format != want.format)
    fail(ErrorCode::kInvalidArgument, "fp32_conv: the weights are packed for another algorithm than {}'s",
         kernel.name);
  if (header.n != want.n || header.k != want.k || header.group != want.group || header.tile_k != want.tile_k)
    fail(ErrorCode::kInvalidArgument,
         "fp32_conv: the weights are packed for another convolution: {} channels of {} weights in {} groups",
         header.n, header.k, header.group);
  return reinterpret_cast<const float*>(&header + 1);
}

}  // namespace halftone::kernels
