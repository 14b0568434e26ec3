// The families of decompositions: each function puts its entries into a table.
#pragma once

#include "halftone/decompositions.h"

namespace halftone {

// What functorch decomposes by default. Its two of cudnn_batch_norm are left out: this is a library for CPUs.
void add_basic_activations(DecompositionTable& table);  // elu, hardtanh, leaky_relu, …
void add_basic_activation_backwards(
    DecompositionTable& table);                    // of these, and of gelu, sigmoid, silu, tanh, …
void add_basic_others(DecompositionTable& table);  // detach, masked_fill, …

}  // namespace halftone
