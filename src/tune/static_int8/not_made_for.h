// Candidates that a model need not wait for.
#pragma once

#include <string>

#include "halftone/backend_kind.h"

namespace halftone {

/// Why static int8 of this kind is not tried with the model; empty: it is, or the kind is another.
std::string not_made_for(const BackendKind& kind, const GraphModule& module);

}  // namespace halftone
