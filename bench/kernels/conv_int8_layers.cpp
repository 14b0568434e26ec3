#include "conv_int8_layers.h"

#include <algorithm>
#include <cmath>

#include "halftone/base/error.h"

namespace halftone::bench {

using kernels::ConvShape;
using kernels::Int8ConvLayout;
namespace {

ConvInt8Spec conv(std::string name, int64_t ic, int64_t oc, int64_t size, int64_t kernel, int64_t stride,
                  int times, bool residual = false) {
  ConvInt8Spec spec{std::move(name), {}, residual, times};
  ConvShape& s = spec.shape;
  s.in_channels = ic;
  s.out_channels = oc;
  s.in = {1, size, size};
  s.kernel = {1, kernel, kernel};
  s.stride = {1, stride, stride};
  s.pad = {0, kernel / 2, kernel / 2};
  s.out = kernels::conv_output(s);
  return spec;
}

// One stage: `blocks` bottlenecks of width w on images of `size`, the first of which has the stride.
void add_stage(std::vector<ConvInt8Spec>& all, const std::string& name, int64_t in, int64_t w, int64_t size,
               int64_t stride, int blocks) {
  const int64_t out = size / stride;
  all.push_back(conv(name + ".0 in", in, w, size, 1, 1, 1));
  if (stride == 1) {
    all.push_back(conv(name + " 3x3", w, w, out, 3, 1, blocks));
  } else {
    all.push_back(conv(name + ".0 3x3", w, w, size, 3, stride, 1));
    all.push_back(conv(name + " 3x3", w, w, out, 3, 1, blocks - 1));
  }
  all.push_back(conv(name + ".0 skip", in, 4 * w, size, 1, stride, 1));
  all.push_back(conv(name + " out", w, 4 * w, out, 1, 1, blocks, true));
  all.push_back(conv(name + " in", 4 * w, w, out, 1, 1, blocks - 1));
}

// Roughly normal weights, each channel scaled to its largest, as per-channel quantization leaves them.
std::vector<int8_t> channel_weights(int64_t channels, int64_t k, int most) {
  std::vector<int8_t> w(static_cast<size_t>(channels * k));
  const std::vector<float> f = random_floats(channels * k, 5);
  for (int64_t c = 0; c < channels; ++c) {
    const float* from = f.data() + c * k;
    float largest = 0;
    for (int64_t i = 0; i < k; ++i) largest = std::max(largest, std::abs(from[i]));
    for (int64_t i = 0; i < k; ++i)
      w[static_cast<size_t>(c * k + i)] =
          static_cast<int8_t>(std::lround(from[i] / largest * static_cast<float>(most)));
  }
  return w;
}

std::vector<uint8_t> random_activations(int64_t count, int most, uint32_t seed) {
  const std::vector<int8_t> bytes = random_bytes(count, most == 255 ? -128 : 0, 127, seed);
  std::vector<uint8_t> x(bytes.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(bytes[i] + (most == 255 ? 128 : 0));
  return x;
}

}  // namespace

const std::vector<ConvInt8Spec>& resnet50_convolutions() {
  static const std::vector<ConvInt8Spec> all = [] {
    std::vector<ConvInt8Spec> made;
    made.push_back(conv("stem", 3, 64, 224, 7, 2, 1));
    add_stage(made, "layer1", 64, 64, 56, 1, 3);
    add_stage(made, "layer2", 256, 128, 56, 2, 4);
    add_stage(made, "layer3", 512, 256, 28, 2, 6);
    add_stage(made, "layer4", 1024, 512, 14, 2, 3);
    return made;
  }();
  return all;
}

ConvInt8Layer::ConvInt8Layer(const ConvInt8Spec& spec, int64_t batch, const ConvInt8Bits& bits, int threads)
    : spec_(spec),
      problem_{spec.shape, bits.weight_bits, bits.activation_bits},
      kernel_((problem_.shape.batch = batch, kernels::choose_int8_conv(problem_))),
      packed_(nullptr, std::free),
      workspace_(nullptr, std::free) {
  const ConvShape& s = problem_.shape;
  const int64_t k = s.taps() * s.group_in_channels();
  const int x_most = bits.activation_bits == 7 ? 127 : 255;
  x_ = random_activations(batch * s.in_pixels() * s.in_channels, x_most, 1);
  residual_ = random_activations(batch * s.out_pixels() * s.out_channels, x_most, 2);
  y_.resize(residual_.size());
  w_ = channel_weights(s.out_channels, k, bits.weight_bits == 7 ? 64 : 127);
  multiplier_.assign(static_cast<size_t>(s.out_channels),
                     static_cast<float>(1.0 / (std::sqrt(static_cast<double>(k)) * 12.0)));
  offset_.assign(multiplier_.size(), 0.25f);
  packed_ = allocate(kernels::int8_conv_packed_bytes(problem_, kernel_.tile));
  kernels::pack_int8_conv(problem_, w_.data(), kernel_.tile, packed_.get());
  args_.workspace_bytes = kernels::int8_conv_workspace_bytes(kernel_, problem_, threads);
  workspace_ = allocate(args_.workspace_bytes);
  args_.workspace = workspace_.get();
  args_.x = x_.data();
  args_.x_stride = s.in_channels;
  args_.x_zero_point = 60;
  args_.weights = packed_.get();
  args_.multiplier = multiplier_.data();
  args_.offset = offset_.data();
  if (spec.residual) args_.residual = residual_.data();
  args_.residual_stride = args_.out_stride = s.out_channels;
  args_.residual_zero_point = 50;
  args_.residual_multiplier = 0.6f;
  args_.out = y_.data();
  args_.out_zero_point = args_.lo = 40;
  args_.hi = x_most;
}

void ConvInt8Layer::run(ParallelFor& parallel_for) {
  kernels::int8_conv(kernel_, problem_, args_, parallel_for);
}

double ConvInt8Layer::operations() const {
  const ConvShape& s = problem_.shape;
  return 2.0 *
         static_cast<double>(s.batch * s.out_pixels() * s.out_channels * s.taps() * s.group_in_channels());
}

std::vector<int> ConvInt8Layer::depths() const {
  const auto packed = kernels::open_int8_conv_packed(problem_, packed_.get(), kernel_.tile);
  std::vector<int> counts(5);
  for (int64_t i = 0; i < packed.groups * packed.group_panels; ++i)
    ++counts[static_cast<size_t>(packed.depth[i] == 0 ? 0 : 1 + std::lround(std::log2(packed.depth[i])))];
  return counts;
}

int64_t ConvInt8Layer::sum_at(int64_t pixel, int64_t channel) const {
  const ConvShape& s = problem_.shape;
  const int64_t w = pixel % s.out[2], h = pixel / s.out[2] % s.out[1], image = pixel / s.out[2] / s.out[1];
  int64_t sum = 0;
  for (int64_t i = 0; i < s.kernel[1]; ++i) {
    for (int64_t j = 0; j < s.kernel[2]; ++j) {
      const int64_t y = h * s.stride[1] - s.pad[1] + i, x = w * s.stride[2] - s.pad[2] + j;
      if (y < 0 || y >= s.in[1] || x < 0 || x >= s.in[2]) continue;
      const uint8_t* from = x_.data() + ((image * s.in[1] + y) * s.in[2] + x) * s.in_channels;
      const int8_t* weights = w_.data() + channel * s.in_channels * s.taps() + i * s.kernel[2] + j;
      for (int64_t c = 0; c < s.in_channels; ++c)
        sum += int64_t{from[c] - args_.x_zero_point} * weights[c * s.taps()];
    }
  }
  return sum;
}

void ConvInt8Layer::check() const {
  const int64_t count = static_cast<int64_t>(y_.size()), channels = problem_.shape.out_channels;
  for (int64_t i = 0; i < 300; ++i) {
    const int64_t at = i < 2 ? i * (count - 1) : i * 7919 * 131 % count;
    float f = std::fma(static_cast<float>(sum_at(at / channels, at % channels)), multiplier_[0], offset_[0]);
    if (spec_.residual)
      f = std::fma(static_cast<float>(residual_[static_cast<size_t>(at)] - args_.residual_zero_point),
                   args_.residual_multiplier, f);
    const float want = std::clamp(std::nearbyint(f) + static_cast<float>(args_.out_zero_point),
                                  static_cast<float>(args_.lo), static_cast<float>(args_.hi));
    if (static_cast<float>(y_[static_cast<size_t>(at)]) != want)
      throw Error(ErrorCode::kInternal, spec_.name + " is wrong at " + std::to_string(at));
  }
}

}  // namespace halftone::bench
