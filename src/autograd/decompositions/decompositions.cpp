#include "halftone/decompositions.h"

#include "autograd/decompositions/tables.h"

namespace halftone {

DecompositionTable default_decompositions() {
  DecompositionTable table;
  add_basic_activations(table);
  add_basic_activation_backwards(table);
  add_basic_others(table);
  return table;
}

DecompositionTable core_decompositions() {
  DecompositionTable table = default_decompositions();
  return table;
}

}  // namespace halftone
