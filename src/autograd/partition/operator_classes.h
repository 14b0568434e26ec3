// Classes of operators by the cost of running them again in the backward pass.
#pragma once

#include "halftone/graph/graph.h"

namespace halftone::partition {

/// The operand that the node's outputs are views of; nullptr if it is not a view. Operators that copy only
/// sometimes (reshape, contiguous, to) are none.
const Value* viewed_operand(const Node& node);

/// Costs next to nothing: elementwise operators, casts, comparisons, fills, gathers, simple reductions, and
/// views.
bool is_cheap(const Node& node);

/// Could share a loop with a neighbour that is fusible too, so that its result never reaches memory.
bool is_fusible(const Node& node);

/// Reads its operands while it copies them, so that what stands before it can write into its result.
bool absorbs_producers(const Node& node);

/// Matrix products, convolutions, attention: work grows faster than memory.
bool is_compute_intensive(const Node& node);

/// Must run exactly once, where it stands: draws random numbers, writes, checks.
bool runs_once(const Node& node);

/// Multiplications of products, convolutions and attention; elements read and written for all others. Sizes
/// that are not known count nothing.
double estimated_work(const Node& node);

}  // namespace halftone::partition
