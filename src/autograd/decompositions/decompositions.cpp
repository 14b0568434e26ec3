// The tables of decompositions: default_decompositions() and core_decompositions().
#include "halftone/autograd/decompositions.h"

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
  for (const auto add : {add_activations, add_activation_backwards, add_batch_norm, add_batch_norm_backward,
                         add_cross_entropy, add_group_norm, add_indexing, add_layer_norm, add_losses,
                         add_nll_loss, add_products, add_softmaxes, add_statistics}) {
    add(table);
  }
  return table;
}

}  // namespace halftone
