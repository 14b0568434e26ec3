// A model's forward and backward as one graph, and the two graphs that a partitioner makes of it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "halftone/base/api.h"
#include "halftone/graph/graph.h"

namespace halftone {

/// Inputs: primals (arguments, parameters, buffers), then tangents (gradients of results). Outputs: results,
/// then one gradient for each primal, None if it has none. All inputs are of kind kUser and tensors, all
/// sizes are constants, no node writes to an operand.
struct JointGraph {
  std::unique_ptr<Graph> graph;
  size_t primals = 0;
  size_t tangents = 0;
  /// Outputs of the forward part: user results, then the last contents of what the model writes to.
  size_t results = 0;
  /// The first node of the backward part; nullptr if it has none. A hint for partitioners: what stands
  /// before it ran in the forward pass.
  const Node* first_backward = nullptr;
};

/// Saved values are tensors, each once, primals among them where backward reads those: the caller of the
/// graphs must pass the contents from before any write. Both graphs are linted and without dead code; values
/// keep the names that they have in the joint graph.
struct PartitionedGraphs {
  std::unique_ptr<Graph> forward;   ///< primals → results, then saved values
  std::unique_ptr<Graph> backward;  ///< saved values, then tangents → one gradient for each primal
  size_t saved = 0;
};

using PartitionFunction = std::function<PartitionedGraphs(const JointGraph&)>;

/// Everything that the forward pass computes stays there; what backward needs of it is saved. Only views are
/// made again, from a base that is saved or a primal. kInvalidArgument if inputs and outputs are not those
/// of a joint graph, and if a result depends on a tangent.
HALFTONE_API PartitionedGraphs default_partition(const JointGraph& joint);

struct MinCutOptions {
  /// 1: only what costs next to nothing runs again, as in torch. 0: whatever can run again does, so that
  /// primals and what random operators drew are all that is saved. Between: at most that share of the way
  /// from the bytes saved at 0 to those saved at 1; operators that free much memory for little work go first.
  double memory_budget = 1.0;
};

/// Saves as few bytes as possible, never more than default_partition: a minimum cut between the values that
/// forward must compute and those that backward needs. Cheap operators may run again in backward, just before
/// their first use. Random operators never run twice, costly ones only if the budget asks for it. Needs the
/// sizes of all values (kInvalidArgument).
HALFTONE_API PartitionedGraphs min_cut_rematerialization_partition(const JointGraph& joint,
                                                                   const MinCutOptions& options = {});

/// Bytes of memory that the saved values keep alive: what views share counts once and whole, primals do not
/// count, because they are alive anyway.
HALFTONE_API int64_t saved_bytes(const PartitionedGraphs& graphs);

}  // namespace halftone
