// One run of a model, as a graph of constant sizes.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "halftone/capture/capture_module.h"

namespace halftone {

struct Trace {
  std::unique_ptr<Graph> graph;
  TensorMap tensors;
  CallSpec call;
  std::vector<std::string> notes;
  bool drew = false;                 ///< random numbers
  bool frozen = false;               ///< results of allowed operators are in it
  std::vector<c10::IValue> inputs;   ///< the leaves, as they were before the run
  std::vector<c10::IValue> results;  ///< what the model gave for them, its leaves, copied
};

struct TraceRequest {
  torch::nn::Module* module = nullptr;  ///< may be nullptr
  const ForwardFunction& forward;
  const std::vector<std::string>& input_names;
  std::set<std::string> allow;
  bool keep_random = false;
};

/// Leaves module, examples and random state as they were, even if it throws. Only in a CaptureLock.
Trace trace(const TraceRequest& request, const std::vector<c10::IValue>& examples);

/// The same nesting, with types kept, and other leaves.
std::vector<c10::IValue> with_leaves(const std::vector<c10::IValue>& like,
                                     const std::vector<c10::IValue>& leaves);

/// A number, string or None as an operand; kUnsupported for what is neither that nor a tensor.
Argument constant_leaf(const c10::IValue& leaf);

}  // namespace halftone
