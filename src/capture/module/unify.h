// Several traces of one model, of different sizes, become one graph for all sizes.
#pragma once

#include <vector>

#include "capture/module/dynamic_sizes.h"
#include "capture/module/trace.h"

namespace halftone {

/// Rewrites the first trace's graph: numbers that differ become expressions of the symbols, computed by nodes
/// where they are operands. kUnsupported, naming the first node and layer, if the traces differ in
/// anything else, or in a number that no expression explains.
/// False if TraceCount::kFew was too little: the traces are spent then, and more are needed.
bool unify(std::vector<Trace>& traces, const DynamicSizes& sizes, TraceCount count);

}  // namespace halftone
