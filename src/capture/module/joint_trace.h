// One run of a model, forward and backward, as a joint graph of constant sizes.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

#include "halftone/autograd/decompositions.h"
#include "halftone/autograd/joint_graph.h"
#include "halftone/capture/capture_module.h"

namespace halftone {

/// What is differentiated: a C++ module, a function, or a graph module's graph.
struct JointRequest {
  torch::nn::Module* module = nullptr;  ///< may be nullptr
  const GraphModule* graph = nullptr;   ///< whose tensors `forward` uses; may be nullptr
  const ForwardFunction& forward;
  const DecompositionTable* decompositions = nullptr;
  bool gradients = true;  ///< false: the forward part alone, without autograd
};

/// Where a primal comes from in each call.
struct Primal {
  std::optional<size_t> leaf;  ///< of the arguments
  at::Tensor tensor;           ///< else: a parameter, buffer or constant, shared with its owner
  std::string name;
  bool requires_grad = false;
  TensorMeta meta;  ///< as it was traced
};

/// How one leaf of the model's result is made in each call.
struct ResultLeaf {
  enum class Kind {
    kComputed,  ///< a result of the graph
    kPrimal,    ///< a primal itself
    kView,      ///< a view of a primal's memory: what as_strided gives with this geometry
    kConstant,  ///< no tensor
  };
  Kind kind = Kind::kComputed;
  size_t index = 0;  ///< among the graph's results, or the primals
  c10::IValue constant;
  std::vector<int64_t> sizes, strides;  ///< of views
  int64_t offset = 0;                   ///< of views, from the primal's first element
  bool detached = false;                ///< of primals and views: no gradient flows through it
};

struct JointTrace {
  JointGraph joint;
  std::vector<Primal> primals;
  std::vector<TensorMeta> results;     ///< what the graph computes for the user; its other results are writes
  std::vector<size_t> differentiable;  ///< which results have a tangent, in the order of the tangents
  std::vector<size_t> written;         ///< which primal each further result of the graph is written to
  std::vector<ResultLeaf> leaves;
  CallSpec call;
};

/// Traces below autograd, through autograd's own formulas; random draws are nodes. Inputs and parameters that
/// require grad get a gradient. Leaves module, examples and random state as they were. Only in a CaptureLock.
JointTrace trace_joint(const JointRequest& request, const std::vector<c10::IValue>& examples);

}  // namespace halftone
