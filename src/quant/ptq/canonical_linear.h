// C++ modules write a linear as a product with a transposed weight; patterns know it as aten::linear.
#pragma once

#include "halftone/graph/graph.h"

namespace halftone::ptq {

/// addmm(b, x, t(W)), mm(x, t(W)) and matmul(x, t(W)) become linear(x, W, b). Names of values stay. Returns
/// how many were rewritten.
size_t make_linears(Graph& graph);

}  // namespace halftone::ptq
