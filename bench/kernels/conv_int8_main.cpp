// conv_int8_bench: all convolutions of ResNet-50 in static int8, beside the machine's limits.
//
//   conv_int8_bench [--threads=2] [--batch=1,8] [--bits=7x7,8x7,7x8,8x8] [--rounds=15] [--layer=NAME]
//
// Bits are those of activations and weights. Method: every layer's answer is checked first. A round runs all
// layers in the network's order, so weights come from where they would in the network; a layer's time is the
// median of the rounds, one call after the other where the network has it several times. Peaks are measured
// first.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

#include "conv_int8_layers.h"
#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "halftone/base/error.h"
#include "kernels/peaks/clock.h"
#include "kernels/peaks/peaks.h"

namespace halftone::bench {
namespace {

constexpr ConvInt8Bits kBits[] = {{"7x7", 7, 7}, {"8x7", 7, 8}, {"7x8", 8, 7}, {"8x8", 8, 8}};

struct ConvOptions {
  int threads = 2;
  std::vector<int> batches = {1, 8};
  std::vector<std::string> bits = {"7x7", "8x7", "8x8"};
  int rounds = 15;
  std::string layer;  // all if empty
};

std::vector<std::string> parts(const std::string& list) {
  std::vector<std::string> all;
  std::stringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) all.push_back(item);
  return all;
}

ConvOptions parse(int argc, char** argv) {
  ConvOptions o;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equal = argument.find('=');
    const std::string name = argument.substr(0, equal);
    const std::string value = equal == std::string::npos ? "" : argument.substr(equal + 1);
    const int number = std::atoi(value.c_str());
    if (name == "--threads" && number > 0) {
      o.threads = number;
    } else if (name == "--rounds" && number > 0) {
      o.rounds = number;
    } else if (name == "--batch" && number > 0) {
      o.batches.clear();
      for (const std::string& part : parts(value)) o.batches.push_back(std::max(1, std::atoi(part.c_str())));
    } else if (name == "--layer") {
      o.layer = value;
    } else if (name == "--bits") {
      o.bits = parts(value);
    } else {
      throw Error(ErrorCode::kInvalidArgument, "conv_int8_bench: bad argument " + argument);
    }
  }
  return o;
}

const ConvInt8Bits& bits_named(const std::string& name) {
  for (const ConvInt8Bits& bits : kBits)
    if (name == bits.name) return bits;
  throw Error(ErrorCode::kInvalidArgument, "conv_int8_bench: bits are 7x7, 8x7, 7x8 or 8x8, not " + name);
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<long>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

void run_network(const ConvOptions& o, int batch, const ConvInt8Bits& bits, ParallelFor& parallel_for,
                 const kernels::Peaks& peaks) {
  std::vector<std::unique_ptr<ConvInt8Layer>> layers;
  for (const ConvInt8Spec& spec : resnet50_convolutions()) {
    if (!o.layer.empty() && o.layer != spec.name) continue;
    layers.push_back(std::make_unique<ConvInt8Layer>(spec, batch, bits, o.threads));
    layers.back()->run(parallel_for);
    layers.back()->check();
  }
  if (layers.empty())
    throw Error(ErrorCode::kInvalidArgument, "conv_int8_bench: there is no layer " + o.layer);
  std::vector<std::vector<double>> seconds(layers.size());
  for (int round = 0; round < o.rounds; ++round) {
    for (size_t i = 0; i < layers.size(); ++i) {
      const int times = layers[i]->spec().times;
      const double start = kernels::seconds(o.threads);
      for (int t = 0; t < times; ++t) layers[i]->run(parallel_for);
      seconds[i].push_back((kernels::seconds(o.threads) - start) / times);
    }
  }
  std::printf("\nbatch %d, activations x weights %s bits, %s\n", batch, bits.name, layers.back()->kernel());
  std::printf("%-14s %5s %9s %9s %8s %8s %8s   panels of depth 0/1/2/4/8\n", "layer", "times", "ms", "least",
              "GOPS", "% chain", "% deep8");
  double total = 0, least = 0, operations = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const ConvInt8Layer& layer = *layers[i];
    const double one = median(seconds[i]), best = *std::min_element(seconds[i].begin(), seconds[i].end()),
                 gops = layer.operations() / one * 1e-9;
    const std::vector<int> depth = layer.depths();
    total += one * layer.spec().times;
    least += best * layer.spec().times;
    operations += layer.operations() * layer.spec().times;
    std::printf("%-14s %5d %9.3f %9.3f %8.1f %8.0f %8.0f   %d/%d/%d/%d/%d\n", layer.spec().name.c_str(),
                layer.spec().times, one * 1e3, best * 1e3, gops, gops / (2 * peaks.chain_gmac) * 100,
                gops / (2 * peaks.deep8_gmac) * 100, depth[0], depth[1], depth[2], depth[3], depth[4]);
  }
  const double gops = operations / total * 1e-9;
  std::printf("%-14s %5s %9.3f %9.3f %8.1f %8.0f %8.0f\n", "all", "", total * 1e3, least * 1e3, gops,
              gops / (2 * peaks.chain_gmac) * 100, gops / (2 * peaks.deep8_gmac) * 100);
}

int run(int argc, char** argv) {
  const ConvOptions o = parse(argc, argv);
  ThreadPool pool(o.threads);
  kernels::Peaks peaks = kernels::measure_peaks(pool, 10);
  std::printf(
      "%s, threads %d, GOPS: vpmaddubsw chain %.0f, two in 16 bits %.0f, eight %.0f, exact 8-bit %.0f\n",
      std::string(to_string(active_isa())).c_str(), o.threads, 2 * peaks.chain_gmac, 2 * peaks.deep2_gmac,
      2 * peaks.deep8_gmac, 2 * peaks.exact8_gmac);
  for (const int batch : o.batches)
    for (const std::string& bits : o.bits) run_network(o, batch, bits_named(bits), pool, peaks);
  return 0;
}

}  // namespace
}  // namespace halftone::bench

int main(int argc, char** argv) {
  try {
    return halftone::bench::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
