// conv_resnet50: every convolution of ResNet-50 (224 x 224) in the order of the network, with its epilogue:
// time, share of the machine's peak, and the sum.
//
//   conv_resnet50 [batch …] [part of a kernel's name]
//
// Batches 1 and 8 if none is given. A name forces the kernels that have it in theirs wherever they can
// compute the layer, as another choice would.
//
// Each layer has weights of its own, as in the network, so that they come from where the network's would
// (100 MB do not stay in a cache). Before anything is timed, each layer's answer is checked in double at some
// pixels. conv_resnet50_peers times at::conv2d beside each layer.
// The table shows medians over runs of the whole list, and the best; HALFTONE_ISA caps the kernels.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "conv_peer.h"
#include "halftone/base/error.h"
#include "kernels/fp32_conv/fp32_conv.h"
#include "kernels/peaks/peaks.h"

namespace halftone::bench {
namespace {

using kernels::ConvShape;

struct FreeAligned {
  void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<char, FreeAligned>;

Memory aligned_memory(size_t bytes) {
  return Memory(static_cast<char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
}

struct ConvLayerBench {
  ConvShape shape;
  bool relu, residual;
  const kernels::Fp32ConvKernel* kernel = nullptr;
  Memory weights;
  std::vector<float> bias;
  std::vector<double> seconds;
  std::function<void()> peer;
  std::vector<double> peer_seconds;

  double macs() const {
    return double(shape.batch * shape.out_pixels()) * double(shape.out_channels * shape.taps()) *
           double(shape.group_in_channels());
  }
};

ConvShape square(int64_t batch, int64_t ic, int64_t oc, int64_t size, int64_t kernel, int64_t stride) {
  ConvShape s;
  s.batch = batch;
  s.in_channels = ic;
  s.out_channels = oc;
  s.in = {1, size, size};
  s.kernel = {1, kernel, kernel};
  s.stride = {1, stride, stride};
  s.pad = {0, kernel / 2, kernel / 2};
  s.out = kernels::conv_output(s);
  return s;
}

std::vector<ConvLayerBench> resnet50(int64_t batch) {
  std::vector<ConvLayerBench> layers;
  const auto add = [&](const ConvShape& shape, bool relu, bool residual) {
    layers.push_back({shape, relu, residual, nullptr, nullptr, {}, {}, conv_peer(shape, relu, residual), {}});
  };
  add(square(batch, 3, 64, 224, 7, 2), true, false);
  int64_t in = 64, size = 56;
  const int64_t widths[] = {64, 128, 256, 512}, blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t width = widths[stage], out = 4 * width;
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      add(square(batch, in, width, size, 1, 1), true, false);
      add(square(batch, width, width, size, 3, stride), true, false);
      if (block == 0) add(square(batch, in, out, size, 1, stride), false, false);
      size /= stride;
      add(square(batch, width, out, size, 1, 1), true, true);
      in = out;
    }
  }
  return layers;
}

// Activations: three buffers in turn, as a memory plan would have them.
struct Buffers {
  std::vector<float> slots[3];
  Memory workspace;
  size_t workspace_bytes = 0;
};

const kernels::Fp32ConvKernel* choose(const ConvShape& shape, const std::string& forced) {
  for (const kernels::Fp32ConvKernel& kernel : kernels::fp32_conv_kernels()) {
    if (forced.empty() || kernel.isa > active_isa()) continue;
    if (std::string(kernel.name).find(forced) == std::string::npos) continue;
    try {
      fp32_conv_packed_bytes(kernel, shape);
      return &kernel;
    } catch (const Error&) {
      continue;
    }
  }
  return &kernels::choose_fp32_conv({shape});
}

kernels::Fp32ConvArgs arguments(const ConvLayerBench& layer, Buffers& buffers, size_t turn) {
  const ConvShape& s = layer.shape;
  kernels::Fp32ConvArgs args;
  args.x = buffers.slots[turn % 3].data();
  args.x_strides = channels_last_strides(s, s.in_channels);
  args.out = buffers.slots[(turn + 1) % 3].data();
  args.out_stride = s.out_channels;
  args.weights = layer.weights.get();
  args.bias = layer.bias.data();
  if (layer.residual) {
    args.residual = buffers.slots[(turn + 2) % 3].data();
    args.residual_stride = s.out_channels;
  }
  if (layer.relu) args.activate.kind = kernels::ConvActivation::kRelu;
  args.workspace = buffers.workspace.get();
  args.workspace_bytes = buffers.workspace_bytes;
  return args;
}

// One output, in double.
double exact(const ConvLayerBench& layer, const float* x, const std::vector<float>& w, int64_t pixel,
             int64_t channel) {
  const ConvShape& s = layer.shape;
  const int64_t column = pixel % s.out[2], row = pixel / s.out[2] % s.out[1], image = pixel / s.out_pixels();
  double sum = layer.bias[static_cast<size_t>(channel)];
  for (int64_t t = 0; t < s.taps(); ++t) {
    const int64_t y = row * s.stride[1] - s.pad[1] + t / s.kernel[2];
    const int64_t at = column * s.stride[2] - s.pad[2] + t % s.kernel[2];
    if (y < 0 || y >= s.in[1] || at < 0 || at >= s.in[2]) continue;
    const float* from = x + ((image * s.in[1] + y) * s.in[2] + at) * s.in_channels;
    for (int64_t c = 0; c < s.in_channels; ++c)
      sum += double{from[c]} * w[static_cast<size_t>((channel * s.in_channels + c) * s.taps() + t)];
  }
  return sum;
}

void check_answer(const ConvLayerBench& layer, const std::vector<float>& w, Buffers& buffers,
                  ParallelFor& parallel_for) {
  const ConvShape& s = layer.shape;
  const kernels::Fp32ConvArgs args = arguments(layer, buffers, 0);
  fp32_conv(*layer.kernel, s, args, parallel_for);
  const int64_t pixels = s.batch * s.out_pixels();
  for (int64_t pixel : {int64_t{0}, pixels / 3, pixels - 1}) {
    for (int64_t channel = 0; channel < s.out_channels; channel += 7) {
      double want = exact(layer, args.x, w, pixel, channel);
      if (layer.residual) want += args.residual[pixel * s.out_channels + channel];
      if (layer.relu) want = std::max(want, 0.0);
      if (!(std::abs(args.out[pixel * s.out_channels + channel] - want) <= 1e-4 * (1 + std::abs(want))))
        throw Error(ErrorCode::kInternal, std::string(layer.kernel->name) + " is wrong");
    }
  }
}

void prepare(std::vector<ConvLayerBench>& layers, const std::string& forced, Buffers& buffers,
             ParallelFor& parallel_for) {
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  size_t floats = 0;
  for (ConvLayerBench& layer : layers) {
    const ConvShape& s = layer.shape;
    layer.kernel = choose(s, forced);
    buffers.workspace_bytes = std::max(buffers.workspace_bytes,
                                       fp32_conv_workspace_bytes(*layer.kernel, s, parallel_for.threads()));
    floats = std::max({floats, static_cast<size_t>(s.batch * s.in_pixels() * s.in_channels),
                       static_cast<size_t>(s.batch * s.out_pixels() * s.out_channels)});
  }
  buffers.workspace = aligned_memory(buffers.workspace_bytes);
  for (auto& slot : buffers.slots) {
    slot.resize(floats);
    for (float& v : slot) v = normal(engine);
  }
  for (ConvLayerBench& layer : layers) {
    const ConvShape& s = layer.shape;
    std::vector<float> w(static_cast<size_t>(s.taps() * s.in_channels * s.out_channels));
    const float scale = 1.0f / std::sqrt(static_cast<float>(s.taps() * s.in_channels));
    for (float& v : w) v = scale * normal(engine);
    layer.weights = aligned_memory(fp32_conv_packed_bytes(*layer.kernel, s));
    pack_fp32_conv(*layer.kernel, s, w.data(), layer.weights.get());
    layer.bias.assign(static_cast<size_t>(s.out_channels), 0.01f);
    check_answer(layer, w, buffers, parallel_for);
  }
}

template <typename Call>
double timed(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void run_once(std::vector<ConvLayerBench>& layers, Buffers& buffers, ParallelFor& parallel_for) {
  size_t turn = 0;
  for (ConvLayerBench& layer : layers) {
    const kernels::Fp32ConvArgs args = arguments(layer, buffers, turn++);
    layer.seconds.push_back(timed([&] { fp32_conv(*layer.kernel, layer.shape, args, parallel_for); }));
  }
  for (ConvLayerBench& layer : layers)
    if (layer.peer) layer.peer_seconds.push_back(timed(layer.peer));
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Layers of the same shape and epilogue are one line.
void report(const std::vector<ConvLayerBench>& layers, double peak_gmac) {
  double total = 0, total_macs = 0, least = 0, peers = 0;
  std::vector<bool> shown(layers.size());
  std::printf("%5s %4s %18s %6s %9s %8s %8s %8s %6s  %s\n", "times", "conv", "channels", "size", "ms each",
              "best", "peer", "GFLOPS", "peak", "kernel");
  for (size_t i = 0; i < layers.size(); ++i) {
    if (shown[i]) continue;
    int count = 0;
    double ms = 0, best = 0, peer = 0;
    for (size_t j = i; j < layers.size(); ++j) {
      if (!(layers[j].shape == layers[i].shape) || layers[j].residual != layers[i].residual) continue;
      shown[j] = true;
      if (layers[j].peer) peer += median_of(layers[j].peer_seconds) * 1e3;
      ++count;
      ms += median_of(layers[j].seconds) * 1e3;
      best += *std::min_element(layers[j].seconds.begin(), layers[j].seconds.end()) * 1e3;
    }
    const ConvShape& s = layers[i].shape;
    const double gmac = layers[i].macs() * count / ms * 1e-6;
    std::printf("%5d %ldx%ld %8ld -> %6ld %6ld %9.3f %8.3f %8.3f %8.1f %5.0f%%  %s%s\n", count, s.kernel[1],
                s.kernel[2], s.in_channels, s.out_channels, s.in[1], ms / count, best / count, peer / count,
                2 * gmac, 100 * gmac / peak_gmac, layers[i].kernel->name,
                layers[i].residual ? " + residual" : "");
    total += ms;
    least += best;
    peers += peer;
    total_macs += layers[i].macs() * count;
  }
  std::printf("sum %.2f ms (best of each layer %.2f; peer %.2f), %.1f GFLOPS, %.0f%% of the peak\n\n", total,
              least, peers, 2e-6 * total_macs / total, 100e-6 * total_macs / total / peak_gmac);
}

void run_batch(int64_t batch, const std::string& forced, ParallelFor& parallel_for) {
  std::vector<ConvLayerBench> layers = resnet50(batch);
  Buffers buffers;
  prepare(layers, forced, buffers, parallel_for);
  for (int i = 0; i < (batch == 1 ? 60 : 12); ++i) run_once(layers, buffers, parallel_for);
  const kernels::Peaks peaks = kernels::measure_peaks(parallel_for, 10);
  std::printf("ResNet-50, batch %ld, %d threads, %s, peak %.1f GFLOPS\n", batch, parallel_for.threads(),
              std::string(to_string(active_isa())).c_str(), 2 * peaks.fma_gmac);
  report(layers, peaks.fma_gmac);
}

}  // namespace
}  // namespace halftone::bench

int main(int argc, char** argv) {
  try {
    const auto parallel_for = halftone::bench::conv_parallel_for(2);
    std::vector<long> batches;
    std::string forced;
    for (int i = 1; i < argc; ++i) {
      if (std::atol(argv[i]) > 0) {
        batches.push_back(std::atol(argv[i]));
      } else {
        forced = argv[i];
      }
    }
    if (batches.empty()) batches = {1, 8};
    for (long batch : batches) halftone::bench::run_batch(batch, forced, *parallel_for);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
