// A convolution in double precision, and the kernels that can be tested here.
#pragma once

#include <cmath>
#include <string>

#include "kernels/common/packed_block.h"
#include "kernels/common/test_support.h"
#include "kernels/fp32_conv/drivers.h"
#include "kernels/fp32_conv/pack.h"

namespace halftone::kernels::testing {

inline std::vector<Fp32ConvKernel> conv_test_kernels() {
  std::vector<Fp32ConvKernel> kernels = runnable(fp32_conv_kernels());
#if defined(HALFTONE_EMULATED_KERNELS)
  if (machine_isa() >= Isa::kAvx2) {
    for (Fp32ConvKernel kernel : fp32_conv_kernels()) {
      if (kernel.functions != &kFp32ConvAvx512) continue;
      kernel.isa = Isa::kAvx2;
      kernel.functions = &kFp32ConvAvx512Emulated;
      kernels.push_back(kernel);
    }
  }
#endif
  return kernels;
}

/// conv_test_kernels() that can compute the shape, fast or not.
inline std::vector<Fp32ConvKernel> conv_test_kernels(const ConvShape& shape, bool strided_channels = false) {
  std::vector<Fp32ConvKernel> kernels = conv_test_kernels();
  std::erase_if(kernels, [&](const Fp32ConvKernel& kernel) {
    return fp32_conv_cannot(kernel.algorithm, {shape, true, strided_channels}) != nullptr;
  });
  return kernels;
}

/// A 2d shape with square everything; sets `out`.
inline ConvShape conv_shape_2d(int64_t in_channels, int64_t out_channels, int64_t size, int64_t kernel,
                               int64_t stride = 1, int64_t pad = 0, int64_t dilation = 1,
                               int64_t groups = 1) {
  ConvShape s;
  s.in_channels = in_channels;
  s.out_channels = out_channels;
  s.groups = groups;
  s.in = {1, size, size};
  s.kernel = {1, kernel, kernel};
  s.stride = {1, stride, stride};
  s.pad = {0, pad, pad};
  s.dilation = {1, dilation, dilation};
  s.out = conv_output(s);
  return s;
}

/// Input, weights, bias and residual of one convolution, in buffers that end at an unreadable page.
struct ConvLayer {
  ConvShape s;
  Guarded<float> x, w, bias, residual;

  explicit ConvLayer(const ConvShape& shape, uint32_t seed = 1)
      : s(shape),
        x(s.batch * s.in_pixels() * s.in_channels),
        w(s.taps() * s.out_channels * s.group_in_channels()),
        bias(s.out_channels),
        residual(s.batch * s.out_pixels() * s.out_channels) {
    Random random(seed);
    random.fill_normal(x);
    random.fill_normal(w);
    random.fill_normal(bias);
    random.fill_normal(residual);
  }

  Fp32ConvArgs args() const {
    Fp32ConvArgs a;
    a.x = x.data();
    a.x_strides = channels_last_strides(s, s.in_channels);
    a.out_stride = s.out_channels;
    return a;
  }

  void run(const Fp32ConvKernel& kernel, Fp32ConvArgs a, ParallelFor& parallel_for) const {
    Aligned packed(fp32_conv_packed_bytes(kernel, s));
    pack_fp32_conv(kernel, s, w.data(), packed.data());
    a.weights = packed.data();
    a.workspace_bytes = fp32_conv_workspace_bytes(kernel, s, parallel_for.threads());
    Guarded<unsigned char> workspace(static_cast<int64_t>(a.workspace_bytes), 0xff);  // NaN until written
    a.workspace = workspace.data();
    fp32_conv(kernel, s, a, parallel_for);
  }

  std::vector<float> floats(const Fp32ConvKernel& kernel, Fp32ConvArgs a, ParallelFor& parallel_for) const {
    Guarded<float> out(s.batch * s.out_pixels() * s.out_channels, -7.0f);
    a.out = out.data();
    run(kernel, a, parallel_for);
    return out.copy();
  }
  std::vector<float> floats(const Fp32ConvKernel& kernel) const {
    SerialFor serial;
    return floats(kernel, args(), serial);
  }
};

/// One output and Σ|x·w|, straight from the definition: for a transposed convolution by asking every input
/// where it adds to.
struct ConvExact {
  double sum = 0, magnitude = 0;

  ConvExact(const ConvLayer& layer, int64_t image, const ConvExtent& o, int64_t channel) {
    const ConvShape& s = layer.s;
    ConvExtent t{};
    for (t[0] = 0; t[0] < s.kernel[0]; ++t[0])
      for (t[1] = 0; t[1] < s.kernel[1]; ++t[1])
        for (t[2] = 0; t[2] < s.kernel[2]; ++t[2]) add_tap(layer, image, o, channel, t);
  }

 private:
  void add_tap(const ConvLayer& layer, int64_t image, const ConvExtent& o, int64_t channel,
               const ConvExtent& t) {
    const ConvShape& s = layer.s;
    int64_t pixel = image, tap = 0;
    for (int d = 0; d < kConvDims; ++d) {
      int64_t at = 0;
      if (s.transposed) {
        while (at < s.in[d] && at * s.stride[d] - s.pad[d] + t[d] * s.dilation[d] != o[d]) ++at;
      } else {
        at = o[d] * s.stride[d] - s.pad[d] + t[d] * s.dilation[d];
      }
      if (at < 0 || at >= s.in[d]) return;
      pixel = pixel * s.in[d] + at;
      tap = tap * s.kernel[d] + t[d];
    }
    const int64_t ic = s.group_in_channels(), oc = s.group_out_channels(), group = channel / oc;
    for (int64_t c = 0; c < ic; ++c) {
      const int64_t pair = s.transposed ? (group * ic + c) * oc + channel % oc : channel * ic + c;
      const double product =
          double{layer.x[pixel * s.in_channels + group * ic + c]} * layer.w[pair * s.taps() + tap];
      sum += product;
      magnitude += std::abs(product);
    }
  }
};

/// Σ_c max|x_c| · max|w_c| over the patch of the Winograd tile that holds an output.
inline double winograd_magnitude(const ConvLayer& layer, int m, int64_t image, const ConvExtent& o,
                                 int64_t channel) {
  const ConvShape& s = layer.s;
  const int64_t top = o[1] / m * m - s.pad[1], left = o[2] / m * m - s.pad[2];
  double total = 0;
  for (int64_t c = 0; c < s.in_channels; ++c) {
    float largest_x = 0, largest_w = 0;
    for (int64_t y = std::max<int64_t>(0, top); y < std::min(s.in[1], top + m + 2); ++y)
      for (int64_t x = std::max<int64_t>(0, left); x < std::min(s.in[2], left + m + 2); ++x)
        largest_x =
            std::max(largest_x, std::abs(layer.x[((image * s.in[1] + y) * s.in[2] + x) * s.in_channels + c]));
    for (int64_t t = 0; t < 9; ++t)
      largest_w = std::max(largest_w, std::abs(layer.w[(channel * s.in_channels + c) * 9 + t]));
    total += double{largest_x} * largest_w;
  }
  return total;
}

inline double conv_bound(const ConvLayer& layer, const Fp32ConvKernel& kernel, double magnitude,
                         int64_t image, const ConvExtent& o, int64_t channel) {
  const int m = winograd_outputs(kernel.algorithm);
  if (m == 0) return (layer.s.group_in_channels() * layer.s.taps() + 4) * 5.97e-8 * magnitude;
  return (m == 4 ? kWinograd4Error : kWinograd2Error) * 5.97e-8 *
         winograd_magnitude(layer, m, image, o, channel);
}

/// Every kernel that can compute the layer is within the contract's bound.
inline void expect_conv_within_bound(const ConvLayer& layer) {
  const ConvShape& s = layer.s;
  for (const Fp32ConvKernel& kernel : conv_test_kernels(s)) {
    const std::vector<float> y = layer.floats(kernel);
    size_t at = 0;
    ConvExtent o{};
    for (int64_t image = 0; image < s.batch; ++image)
      for (o[0] = 0; o[0] < s.out[0]; ++o[0])
        for (o[1] = 0; o[1] < s.out[1]; ++o[1])
          for (o[2] = 0; o[2] < s.out[2]; ++o[2])
            for (int64_t channel = 0; channel < s.out_channels; ++channel, ++at) {
              const ConvExact want(layer, image, o, channel);
              const double bound = conv_bound(layer, kernel, want.magnitude, image, o, channel);
              ASSERT_LE(std::abs(y[at] - want.sum), bound)
                  << kernel.name << " (" << s.in_channels << "->" << s.out_channels << " groups " << s.groups
                  << ") at " << image << "," << o[0] << "," << o[1] << "," << o[2] << "," << channel;
            }
  }
}

}  // namespace halftone::kernels::testing
