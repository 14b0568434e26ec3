// In-place operators as their functional forms, if nothing else can see the difference.
#pragma once

#include "halftone/graph/graph.h"

namespace halftone {

/// relu_(x) becomes relu(x), where x is a fresh result that only this node reads. Names of values stay.
/// Returns how many were rewritten.
size_t functionalize(Graph& graph);

}  // namespace halftone
