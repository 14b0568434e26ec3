// quantize_memory [LAYERS WIDTH]: peak memory of quantize_ on a C++ module. It must stay below the fp32 model
// + the quantized weights + one layer (and what the allocator rounds up). Exit 1 if it does not.
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "halftone/quant/quantize.h"

namespace {

/// A line of /proc/self/status in MB: "VmRSS:" now, "VmHWM:" the most so far.
double status_mb(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field))
      return std::stod(line.substr(field.size())) * 1024 / 1e6;  // kB there are 1024 bytes
  }
  return 0;
}

/// Makes the peak start again at what is resident now.
void forget_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

constexpr double kSlackMb = 12;

}  // namespace

int main(int argc, char** argv) {
  const int layers = argc > 2 ? std::atoi(argv[1]) : 24;
  const int width = argc > 2 ? std::atoi(argv[2]) : 1024;
  torch::nn::Sequential model;
  for (int i = 0; i < layers; ++i) model->push_back(torch::nn::Linear(width, width));
  // The first call starts threads and loads code; that is not what is measured.
  torch::nn::Sequential small{torch::nn::Linear(64, 64)};
  halftone::quantize_(*small, "int8wo");

  const double layer_mb = 4.0 * width * width / 1e6;
  forget_peak();
  const double before = status_mb("VmRSS:");
  const halftone::QuantizeReport report = halftone::quantize_(*model, "int8wo");
  const double peak = status_mb("VmHWM:"), after = status_mb("VmRSS:");
  const double quantized = static_cast<double>(report.bytes_after) / 1e6;
  const double limit = before + quantized + layer_mb + kSlackMb;
  std::printf(
      "quantize_ of %d layers of %d x %d: %.1f MB before, peak %.1f (limit %.1f: + quantized %.1f + one "
      "layer %.1f + %g), "
      "%.1f MB after: %s\n",
      layers, width, width, before, peak, limit, quantized, layer_mb, kSlackMb, after,
      peak <= limit ? "ok" : "MISSED");
  return peak <= limit ? 0 : 1;
}
