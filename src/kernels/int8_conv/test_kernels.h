// Shared by the tests of int8_conv: the kernels that run here (the AVX-512 one through its emulation), and a
// convolution with an answer that follows the contract's formulas, in 64-bit sums.
#pragma once

#include <cmath>
#include <functional>

#include "kernels/common/test_support.h"
#include "kernels/int8_conv/int8_conv.h"
#include "kernels/int8_conv/kernels.h"

namespace halftone::kernels::testing {

inline std::vector<Int8ConvKernel> int8_conv_test_kernels() {
  std::vector<Int8ConvKernel> kernels = runnable(int8_conv_kernels());
#if defined(HALFTONE_EMULATED_KERNELS)
  add_emulated(kernels, int8_conv_kernels(), &Int8ConvKernel::compute, int8_conv_avx512vnni,
               int8_conv_avx512vnni_emulated, "int8_conv_u8s8_8x32_avx512vnni_emulated");
#endif
  return kernels;
}

/// A problem with operands, all in memory that ends at an unreadable page.
struct ConvCase {
  Int8ConvProblem p;
  Guarded<uint8_t> x, residual;
  Guarded<int8_t> w;
  Guarded<float> multiplier, offset;
  Int8ConvArgs args;  ///< everything but weights, outputs and workspace

  using Draw = std::function<int()>;

  ConvCase(const Int8ConvProblem& problem, const Draw& draw_x, const Draw& draw_w)
      : p(problem),
        x(p.shape.batch * p.shape.in_pixels() * p.shape.in_channels),
        residual(p.shape.batch * p.shape.out_pixels() * p.shape.out_channels),
        w(p.shape.out_channels * p.shape.group_in_channels() * p.shape.taps()),
        multiplier(p.shape.out_channels),
        offset(p.shape.out_channels) {
    for (int64_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(draw_x());
    for (int64_t i = 0; i < w.size(); ++i) w[i] = static_cast<int8_t>(draw_w());
    for (int64_t i = 0; i < residual.size(); ++i) residual[i] = static_cast<uint8_t>(i * 37);
    const double spread = 60.0 * 40.0 * std::sqrt(double(p.shape.taps() * p.shape.group_in_channels()));
    for (int64_t i = 0; i < multiplier.size(); ++i) {
      multiplier[i] = static_cast<float>((40 + i % 7) / spread);
      offset[i] = static_cast<float>(i % 11) - 5.25f;
    }
    args.x = x.data();
    args.x_stride = p.shape.in_channels;
    args.x_zero_point = 99;
    args.multiplier = multiplier.data();
    args.offset = offset.data();
    args.out_stride = p.shape.out_channels;
    args.out_zero_point = 120;
    args.lo = 3;
    args.hi = 250;
  }

  void use_residual() {
    args.residual = residual.data();
    args.residual_stride = p.shape.out_channels;
    args.residual_zero_point = 131;
    args.residual_multiplier = 0.37f;
  }

  /// Exact sums, [batch][out][oc]. Scatters each input to where the header's formula says it goes.
  std::vector<int64_t> sums() const {
    const ConvShape& s = p.shape;
    std::vector<int64_t> all(static_cast<size_t>(s.batch * s.out_pixels() * s.out_channels));
    const ConvExtent& out = s.out;
    for_each_place(s.in, [&](int64_t id, int64_t ih, int64_t iw, int64_t in_pixel) {
      for_each_place(s.kernel, [&](int64_t td, int64_t th, int64_t tw, int64_t tap) {
        const int64_t i[3] = {id, ih, iw}, t[3] = {td, th, tw};
        int64_t o[3];
        for (int d = 0; d < 3; ++d) {
          if (s.transposed) {
            o[d] = i[d] * s.stride[d] - s.pad[d] + t[d] * s.dilation[d];
          } else {
            const int64_t from = i[d] + s.pad[d] - t[d] * s.dilation[d];
            o[d] = from >= 0 && from % s.stride[d] == 0 ? from / s.stride[d] : -1;
          }
          if (o[d] < 0 || o[d] >= out[d]) return;
        }
        add_products(in_pixel, (o[0] * out[1] + o[1]) * out[2] + o[2], tap, all);
      });
    });
    return all;
  }

  float value(int64_t sum, int64_t index) const {
    const auto channel = index % p.shape.out_channels;
    float f = std::fma(static_cast<float>(sum), multiplier[channel], offset[channel]);
    if (args.residual != nullptr)
      f = std::fma(static_cast<float>(residual[index] - args.residual_zero_point), args.residual_multiplier,
                   f);
    return f;
  }

  std::vector<uint8_t> expected_bytes() const {
    std::vector<uint8_t> y;
    for (const int64_t sum : sums()) {
      const double rounded = std::nearbyint(double{value(sum, static_cast<int64_t>(y.size()))});
      y.push_back(static_cast<uint8_t>(std::clamp<double>(rounded + args.out_zero_point, args.lo, args.hi)));
    }
    return y;
  }

  std::vector<float> expected_floats() const {
    std::vector<float> y;
    for (const int64_t sum : sums())
      y.push_back(std::clamp(value(sum, static_cast<int64_t>(y.size())), args.lo_f32, args.hi_f32));
    return y;
  }

  /// Packs for one kernel and runs it with a workspace of exactly the size that was asked for.
  void run(const Int8ConvKernel& kernel, Int8ConvArgs with, ParallelFor& parallel_for) const {
    Aligned packed(int8_conv_packed_bytes(p, kernel.tile));
    pack_int8_conv(p, w.data(), kernel.tile, packed.data());
    const size_t bytes = int8_conv_workspace_bytes(kernel, p, parallel_for.threads());
    Guarded<unsigned char> workspace(static_cast<int64_t>(bytes), 0xa5);
    with.weights = packed.data();
    with.workspace = workspace.data();
    with.workspace_bytes = bytes;
    int8_conv(kernel, p, with, parallel_for);
  }

  std::vector<uint8_t> bytes_of(const Int8ConvKernel& kernel, ParallelFor& parallel_for) const {
    Guarded<uint8_t> y(residual.size(), 77);
    Int8ConvArgs with = args;
    with.out = y.data();
    run(kernel, with, parallel_for);
    return y.copy();
  }

  std::vector<float> floats_of(const Int8ConvKernel& kernel, ParallelFor& parallel_for) const {
    Guarded<float> y(residual.size(), 77.0f);
    Int8ConvArgs with = args;
    with.out_f32 = y.data();
    run(kernel, with, parallel_for);
    return y.copy();
  }

 private:
  template <typename Each>
  static void for_each_place(const ConvExtent& e, Each each) {
    for (int64_t d = 0; d < e[0]; ++d)
      for (int64_t h = 0; h < e[1]; ++h)
        for (int64_t i = 0; i < e[2]; ++i) each(d, h, i, (d * e[1] + h) * e[2] + i);
  }

  void add_products(int64_t in_pixel, int64_t out_pixel, int64_t tap, std::vector<int64_t>& all) const {
    const ConvShape& s = p.shape;
    const int64_t icg = s.group_in_channels(), ocg = s.group_out_channels();
    for (int64_t n = 0; n < s.batch; ++n) {
      const uint8_t* from = x.data() + (n * s.in_pixels() + in_pixel) * s.in_channels;
      int64_t* to = all.data() + (n * s.out_pixels() + out_pixel) * s.out_channels;
      for (int64_t oc = 0; oc < s.out_channels; ++oc) {
        const int64_t g = oc / ocg;
        for (int64_t ic = 0; ic < icg; ++ic) {
          const int64_t at = s.transposed ? (g * icg + ic) * ocg + oc % ocg : oc * icg + ic;
          to[oc] += int64_t{from[g * icg + ic] - args.x_zero_point} * w[at * s.taps() + tap];
        }
      }
    }
  }
};

inline ConvCase::Draw uniform(Random& random, int lo, int hi) {
  return [&random, lo, hi] { return random.integer(lo, hi); };
}

inline ConvCase::Draw constant(int v) {
  return [v] { return v; };
}

inline ConvCase::Draw either(Random& random, int a, int b) {
  return [&random, a, b] { return random.integer(0, 1) == 0 ? a : b; };
}

/// Every kernel that takes the problem gives the expected bytes.
inline void expect_conv(const ConvCase& c) {
  SerialFor serial;
  const std::vector<uint8_t> want = c.expected_bytes();
  int taken = 0;
  for (const Int8ConvKernel& kernel : int8_conv_test_kernels()) {
    if (kernel.refuse(c.p) != nullptr) continue;
    ++taken;
    const ConvShape& s = c.p.shape;
    ASSERT_EQ(c.bytes_of(kernel, serial), want)
        << kernel.name << ": channels " << s.in_channels << " to " << s.out_channels << " in " << s.groups
        << " groups, image " << s.in[0] << "x" << s.in[1] << "x" << s.in[2] << ", kernel " << s.kernel[0]
        << "x" << s.kernel[1] << "x" << s.kernel[2] << ", stride " << s.stride[2] << ", pad " << s.pad[2]
        << ", dilation " << s.dilation[2] << (s.transposed ? ", transposed" : "") << ", bits "
        << c.p.weight_bits << " and " << c.p.activation_bits;
  }
  ASSERT_GE(taken, 1);
}

/// All three kinds of ranges; operands over the whole range.
inline void expect_conv_in_all_ranges(const ConvShape& shape, Random& random) {
  constexpr int kBits[][2] = {{8, 8}, {7, 8}, {8, 7}, {7, 7}};
  for (const auto& bits : kBits) {
    const int w = bits[0] == 8 ? 127 : 64, x = bits[1] == 8 ? 255 : 127;
    ConvCase c({shape, bits[0], bits[1]}, uniform(random, 0, x),
               uniform(random, bits[0] == 8 ? -128 : -64, w));
    if (shape.out_channels % 2 == 0) c.use_residual();
    expect_conv(c);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace halftone::kernels::testing
