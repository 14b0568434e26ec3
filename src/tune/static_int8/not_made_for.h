// Candidates that a model need not wait for.
#pragma once

#include <string>

#include "halftone/backend/recipes.h"

namespace halftone {

/// Why static int8 of this recipe is not tried with the model; empty: it is, or the recipe is another.
std::string not_made_for(const BackendRecipe& recipe, const GraphModule& module);

}  // namespace halftone
