// One convolution of a network as the int8 benchmark runs it: operands, packed weights, the check of its
// answer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data.h"
#include "kernels/int8_conv/int8_conv.h"

namespace halftone::bench {

struct ConvInt8Spec {
  std::string name;
  kernels::ConvShape shape;  ///< of batch 1
  bool residual = false;
  int times = 1;  ///< in the network
};

/// ResNet-50 at 224 x 224, each shape once.
const std::vector<ConvInt8Spec>& resnet50_convolutions();

/// Which of the operands have 7 bits.
struct ConvInt8Bits {
  const char* name;
  int weight_bits, activation_bits;
};

class ConvInt8Layer {
 public:
  ConvInt8Layer(const ConvInt8Spec& spec, int64_t batch, const ConvInt8Bits& bits, int threads);

  void run(ParallelFor& parallel_for);
  /// Throws kInternal unless some hundred outputs of the last run are right.
  void check() const;
  double operations() const;  ///< two for each multiply-add
  const ConvInt8Spec& spec() const { return spec_; }
  const char* kernel() const { return kernel_.name; }
  /// Panels with at most 0, 1, 2, 4 and 8 results of vpmaddubsw in 16 bits.
  std::vector<int> depths() const;

 private:
  int64_t sum_at(int64_t pixel, int64_t channel) const;

  ConvInt8Spec spec_;
  kernels::Int8ConvProblem problem_;
  const kernels::Int8ConvKernel& kernel_;
  std::vector<uint8_t> x_, residual_, y_;
  std::vector<int8_t> w_;
  std::vector<float> multiplier_, offset_;
  Memory packed_, workspace_;
  kernels::Int8ConvArgs args_;
};

}  // namespace halftone::bench
