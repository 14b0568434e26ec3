// The models of the built-in suite: C++ modules of the usual sizes, with weights that are the same on every
// machine.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/bench/bench.h"
#include "halftone/capture/capture_module.h"
#include "halftone/tune/samples.h"

namespace halftone {

/// One call with `batch` items; the same for the same seed.
using SampleFunction = std::function<Sample(int64_t batch, uint64_t seed)>;
/// What a training step minimizes: the loss of a result, given the arguments of the call.
using LossFunction =
    std::function<at::Tensor(const c10::IValue& result, const std::vector<c10::IValue>& args)>;

struct SuiteModel {
  std::string name;
  std::shared_ptr<torch::nn::Module> module;  ///< in evaluation mode
  ForwardFunction forward;
  SampleFunction sample;
  LossFunction loss;
  std::vector<std::string> input_names;

  /// `calls` of them, with seeds of their own.
  Samples samples(int64_t batch, size_t calls = 4, uint64_t seed = 0) const;
};

/// One of bench_models(), with weights of `seed`. kInvalidArgument with the nearest name. The process's
/// random state is left alone.
SuiteModel make_suite_model(std::string_view name, uint64_t seed = 0);

}  // namespace halftone
