// quantized_ops on images: layout, pooling, interpolation, against loops that follow the contract.
#include "kernels/quantized_ops/quantized_images.h"

#include <gtest/gtest.h>

#include "halftone/base/error.h"
#include "kernels/quantized_ops/test_formulas.h"

namespace halftone::kernels {
namespace {

using testing::dequantized;
using testing::Guarded;
using testing::Random;
using testing::rounded_byte;

// Input and output of one operation; pixels of both stand in wider ones.
struct ImageCase {
  QuantizedImages m;
  Guarded<uint8_t> x, y;

  ImageCase(int64_t batch, int64_t channels, ConvExtent in, ConvExtent out, uint32_t seed)
      : x(batch * in[0] * in[1] * in[2] * (channels + 3) - 3),
        y(batch * out[0] * out[1] * out[2] * (channels + 5) - 5) {
    m.batch = batch;
    m.channels = channels;
    m.in = in;
    m.out = out;
    m.x_stride = channels + 3;
    m.y_stride = channels + 5;
    m.from = m.to.params = {0.04f, 17};
    m.x = x.data();
    m.y = y.data();
    Random random(seed);
    testing::fill_bytes(x, random);
  }

  uint8_t at(int64_t n, int64_t d, int64_t h, int64_t w, int64_t c) const {
    return x[(((n * m.in[0] + d) * m.in[1] + h) * m.in[2] + w) * m.x_stride + c];
  }

  // Runs on every kernel and compares with want(n, {d, h, w}, channel); bytes between pixels stay.
  template <typename Run, typename Want>
  void expect(Run run, Want want) {
    SerialFor serial;
    for (const QuantizedOpsKernel& kernel : testing::runnable(quantized_ops_kernels())) {
      for (int64_t i = 0; i < y.size(); ++i) y[i] = 0xee;
      run(kernel, serial);
      for (int64_t i = 0; i < y.size(); ++i) {
        const int64_t c = i % m.y_stride, w = i / m.y_stride % m.out[2],
                      h = i / m.y_stride / m.out[2] % m.out[1];
        const int64_t d = i / m.y_stride / m.out[2] / m.out[1] % m.out[0],
                      n = i / m.y_stride / m.out[2] / m.out[1] / m.out[0];
        const uint8_t expected = c < m.channels ? want(n, ConvExtent{d, h, w}, c) : uint8_t{0xee};
        ASSERT_EQ(y[i], expected) << kernel.name << " image " << n << " pixel " << d << " " << h << " " << w
                                  << " channel " << c;
      }
    }
  }

  // Calls each(byte) for the window's pixels that lie inside.
  template <typename Each>
  void for_window(int64_t n, const ConvExtent& o, int64_t c, const PoolWindow& win, Each each) const {
    for (int64_t a = 0; a < win.kernel[0]; ++a)
      for (int64_t b = 0; b < win.kernel[1]; ++b)
        for (int64_t e = 0; e < win.kernel[2]; ++e) {
          const int64_t d = o[0] * win.stride[0] - win.pad[0] + a * win.dilation[0],
                        h = o[1] * win.stride[1] - win.pad[1] + b * win.dilation[1],
                        w = o[2] * win.stride[2] - win.pad[2] + e * win.dilation[2];
          if (d >= 0 && d < m.in[0] && h >= 0 && h < m.in[1] && w >= 0 && w < m.in[2])
            each(at(n, d, h, w, c));
        }
  }
};

ConvExtent pooled(const ConvExtent& in, const PoolWindow& w, bool ceil_mode = false) {
  ConvExtent out;
  for (int d = 0; d < kConvDims; ++d)
    out[d] = pool_output(in[d], w.kernel[d], w.stride[d], w.pad[d], w.dilation[d], ceil_mode);
  return out;
}

constexpr int64_t kChannelCounts[] = {1, 3, 31, 32, 33, 70};

const std::vector<PoolWindow>& windows() {
  static const std::vector<PoolWindow> all = {{{1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}},
                                              {{1, 2, 2}, {1, 2, 2}, {0, 0, 0}, {1, 1, 1}},
                                              {{1, 3, 2}, {1, 1, 3}, {0, 1, 1}, {1, 2, 1}},
                                              {{2, 3, 3}, {2, 2, 1}, {1, 0, 1}, {1, 1, 2}},
                                              {{1, 1, 5}, {1, 1, 2}, {0, 0, 2}, {1, 1, 1}}};
  return all;
}

TEST(QuantizedImages, MaxPool) {
  for (const PoolWindow& w : windows()) {
    for (int64_t channels : kChannelCounts) {
      for (const bool ceil_mode : {false, true}) {
        const ConvExtent in{3, 7, 8};
        ImageCase c(2, channels, in, pooled(in, w, ceil_mode), 1);
        c.m.to.lo = 20;
        c.m.to.hi = 240;
        c.expect([&](const QuantizedOpsKernel& k, ParallelFor& s) { quantized_max_pool(k, c.m, w, s); },
                 [&](int64_t n, const ConvExtent& o, int64_t channel) {
                   int most = 0;
                   c.for_window(n, o, channel, w, [&](uint8_t q) { most = std::max<int>(most, q); });
                   return static_cast<uint8_t>(std::clamp(most, 20, 240));
                 });
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(QuantizedImages, AveragePoolDividesAsTorchDoes) {
  for (PoolWindow w : windows()) {
    w.dilation = {1, 1, 1};
    for (const AverageDivisor& divisor : {AverageDivisor{true, 0}, {false, 0}, {true, 5}}) {
      const ConvExtent in{3, 7, 8};
      ImageCase c(2, 37, in, pooled(in, w, true), 2);
      c.m.to.params = {0.03f, 90};
      c.expect(
          [&](const QuantizedOpsKernel& k, ParallelFor& s) { quantized_average_pool(k, c.m, w, divisor, s); },
          [&](int64_t n, const ConvExtent& o, int64_t channel) {
            int sum = 0, pixels = 0;
            c.for_window(n, o, channel, w, [&](uint8_t q) { sum += q - 17, ++pixels; });
            int64_t by = divisor.override_with;
            if (by == 0) by = pixels;
            if (divisor.override_with == 0 && divisor.count_include_pad) {
              by = 1;
              for (int d = 0; d < 3; ++d) {
                const int64_t start = o[d] * w.stride[d] - w.pad[d];
                by *= std::min(start + w.kernel[d], in[d] + w.pad[d]) - start;
              }
            }
            return rounded_byte(static_cast<float>(sum) *
                                    static_cast<float>(double{0.04f} / (static_cast<double>(by) * 0.03f)),
                                c.m.to);
          });
      if (HasFatalFailure()) return;
    }
  }
}

TEST(QuantizedImages, AdaptiveAndGlobalAverage) {
  for (const ConvExtent& out : {ConvExtent{1, 1, 1}, {1, 3, 5}, {2, 7, 18}, {3, 20, 2}}) {
    for (int64_t channels : {5, 32, 65}) {
      ImageCase c(2, channels, {3, 17, 18}, out, 3);
      c.expect(
          [&](const QuantizedOpsKernel& k, ParallelFor& s) { quantized_adaptive_average_pool(k, c.m, s); },
          [&](int64_t n, const ConvExtent& o, int64_t channel) {
            int64_t first[3], last[3], sum = 0, pixels = 0;
            for (int d = 0; d < 3; ++d) {
              first[d] = static_cast<int64_t>(std::floor(double(o[d] * c.m.in[d]) / double(out[d])));
              last[d] = static_cast<int64_t>(std::ceil(double((o[d] + 1) * c.m.in[d]) / double(out[d])));
            }
            for (int64_t d = first[0]; d < last[0]; ++d)
              for (int64_t h = first[1]; h < last[1]; ++h)
                for (int64_t w = first[2]; w < last[2]; ++w, ++pixels) sum += c.at(n, d, h, w, channel) - 17;
            return rounded_byte(static_cast<float>(sum) * static_cast<float>(1.0 / double(pixels)), c.m.to);
          });
      if (HasFatalFailure()) return;
    }
  }
}

TEST(QuantizedImages, AverageOfMoreThanSixteenBitsHold) {
  ImageCase c(1, 33, {1, 40, 40}, {1, 1, 1}, 4);
  for (int64_t i = 0; i < c.x.size(); ++i) c.x[i] = 255;
  c.expect([&](const QuantizedOpsKernel& k, ParallelFor& s) { quantized_adaptive_average_pool(k, c.m, s); },
           [&](int64_t, const ConvExtent&, int64_t) { return uint8_t{255}; });
}

TEST(QuantizedImages, Nearest) {
  for (const bool exact : {false, true}) {
    for (const QuantParams& params : {QuantParams{0.04f, 17}, {0.1f, 3}}) {
      for (const ConvExtent& out : {ConvExtent{2, 10, 14}, {1, 5, 7}, {3, 13, 4}}) {
        ImageCase c(2, 35, {1, 5, 7}, out, 5);
        c.m.to.params = params;
        c.expect(
            [&](const QuantizedOpsKernel& k, ParallelFor& s) {
              quantized_interpolate(k, c.m, exact ? Interpolation::kNearestExact : Interpolation::kNearest,
                                    {0, 0, 0}, s);
            },
            [&](int64_t n, const ConvExtent& o, int64_t channel) {
              int64_t i[3];
              for (int d = 0; d < 3; ++d)
                i[d] = static_cast<int64_t>(
                    (double(o[d]) + (exact ? 0.5 : 0.0)) * double(c.m.in[d]) / double(out[d]) + 1e-7);
              const uint8_t q = c.at(n, i[0], i[1], i[2], channel);
              return params == c.m.from ? q : testing::quantized(dequantized(q, c.m.from), c.m.to);
            });
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_EQ(source_nearest(5, 3, 6, 1.9, false), 2) << "twice the size is a shift, whatever the factor says";
  EXPECT_EQ(source_nearest(9, 4, 10, 1e-30, false), 3) << "never outside";
}

TEST(QuantizedImages, Bilinear) {
  for (const bool aligned : {false, true}) {
    for (const ConvExtent& out : {ConvExtent{1, 10, 14}, {1, 5, 9}, {1, 3, 2}, {1, 1, 7}}) {
      ImageCase c(2, 35, {1, 5, 7}, out, 6);
      c.m.to.params = {0.05f, 11};
      const auto source = [&](int d, int64_t o) {
        const auto in = static_cast<float>(c.m.in[d]), size = static_cast<float>(out[d]);
        if (c.m.in[d] == out[d]) return static_cast<float>(o);
        if (aligned) return (size > 1 ? (in - 1) / (size - 1) : 0.0f) * static_cast<float>(o);
        return std::max(0.0f, in / size * (static_cast<float>(o) + 0.5f) - 0.5f);
      };
      c.expect(
          [&](const QuantizedOpsKernel& k, ParallelFor& s) {
            quantized_interpolate(k, c.m,
                                  aligned ? Interpolation::kBilinearAlignedCorners : Interpolation::kBilinear,
                                  {0, 0, 0}, s);
          },
          [&](int64_t n, const ConvExtent& o, int64_t channel) {
            const float y = source(1, o[1]), x = source(2, o[2]);
            const int64_t top = std::min<int64_t>(int64_t(y), 4), left = std::min<int64_t>(int64_t(x), 6);
            const int64_t bottom = std::min<int64_t>(top + 1, 4), right = std::min<int64_t>(left + 1, 6);
            const float h = y - static_cast<float>(top), w = x - static_cast<float>(left);
            const auto q = [&](int64_t r, int64_t s) {
              return static_cast<float>(c.at(n, 0, r, s, channel) - 17);
            };
            const float above = std::fma(w, q(top, right), (1.0f - w) * q(top, left));
            const float below = std::fma(w, q(bottom, right), (1.0f - w) * q(bottom, left));
            return rounded_byte(std::fma(h, below, (1.0f - h) * above) * (0.04f / 0.05f), c.m.to);
          });
      if (HasFatalFailure()) return;
    }
  }
}

TEST(QuantizedImages, QuantizeToChannelsLast) {
  Random random(7);
  SerialFor serial;
  for (const QuantizedOpsKernel& kernel : testing::runnable(quantized_ops_kernels())) {
    for (int64_t channels : {1, 3, 20}) {
      for (int64_t pixels : {1, 63, 64, 65, 3000}) {
        Guarded<float> x(2 * channels * pixels);
        Guarded<uint8_t> y(2 * pixels * (channels + 1) - 1, 5);
        random.fill_normal(x, 3.0f);
        const QuantTarget to{{0.03f, 114}, 0, 127};
        quantize_to_channels_last(kernel, {x.data(), y.data(), channels + 1, 2, channels, pixels}, to,
                                  serial);
        for (int64_t i = 0; i < y.size(); ++i) {
          const int64_t c = i % (channels + 1), p = i / (channels + 1) % pixels,
                        n = i / (channels + 1) / pixels;
          ASSERT_EQ(y[i], c == channels ? 5 : testing::quantized(x[(n * channels + c) * pixels + p], to))
              << kernel.name;
        }
      }
    }
  }
}

TEST(QuantizedImages, PoolOutputSizes) {
  EXPECT_EQ(pool_output(112, 3, 2, 1, 1, false), 56);
  EXPECT_EQ(pool_output(7, 2, 2, 0, 1, false), 3);
  EXPECT_EQ(pool_output(7, 2, 2, 0, 1, true), 4);
  EXPECT_EQ(pool_output(6, 2, 2, 1, 1, true), 4);
  EXPECT_EQ(pool_output(3, 1, 3, 1, 1, true), 2) << "a window that began behind the image is dropped";
  EXPECT_THROW(pool_output(2, 4, 1, 0, 1, false), Error);
}

TEST(QuantizedImages, BadArgumentsAreRefused) {
  SerialFor serial;
  const QuantizedOpsKernel& kernel = choose_quantized_ops();
  ImageCase c(1, 4, {1, 4, 4}, {1, 4, 4}, 8);
  const auto refused = [&](auto change) {
    QuantizedImages m = c.m;
    PoolWindow w;
    change(m, w);
    EXPECT_THROW(quantized_max_pool(kernel, m, w, serial), Error);
  };
  EXPECT_NO_THROW(quantized_max_pool(kernel, c.m, {}, serial));
  refused([](QuantizedImages& m, PoolWindow&) { m.x_stride = 3; });
  refused([](QuantizedImages& m, PoolWindow&) { m.to.params.scale = 1.0f; });
  refused([](QuantizedImages& m, PoolWindow&) { m.out[1] = 0; });
  refused([](QuantizedImages& m, PoolWindow&) { m.to.is_signed = true; });
  refused([](QuantizedImages&, PoolWindow& w) { w.stride[2] = 0; });
  refused([](QuantizedImages&, PoolWindow& w) { w.pad[2] = -1; });
  EXPECT_THROW(quantized_average_pool(kernel, c.m, {}, {true, -1}, serial), Error);
  EXPECT_THROW(quantized_interpolate(kernel, c.m, Interpolation::kNearest, {0, -1, 0}, serial), Error);
  c.m.in[0] = c.m.out[0] = 2;
  EXPECT_THROW(quantized_interpolate(kernel, c.m, Interpolation::kBilinear, {0, 0, 0}, serial), Error);
  EXPECT_THROW(quantize_to_channels_last(kernel, {nullptr, nullptr, 2, 1, 3, 4}, {}, serial), Error);
}

}  // namespace
}  // namespace halftone::kernels
