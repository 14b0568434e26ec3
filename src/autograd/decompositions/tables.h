// The families of decompositions: each function puts its entries into a table.
#pragma once

#include "halftone/autograd/decompositions.h"

namespace halftone {

// What functorch decomposes by default. Its two of cudnn_batch_norm are left out: this is a library for CPUs.
void add_basic_activations(DecompositionTable& table);  // elu, hardtanh, leaky_relu, …
void add_basic_activation_backwards(
    DecompositionTable& table);                    // of these, and of gelu, sigmoid, silu, tanh, …
void add_basic_others(DecompositionTable& table);  // detach, masked_fill, …

// What core_decompositions() has besides.
void add_activations(DecompositionTable& table);
void add_activation_backwards(DecompositionTable& table);
void add_batch_norm(DecompositionTable& table);
void add_batch_norm_backward(DecompositionTable& table);
void add_cross_entropy(DecompositionTable& table);  // of probabilities and of logits, binary
void add_group_norm(DecompositionTable& table);
void add_indexing(DecompositionTable& table);  // backwards of embeddings, slices and diagonals
void add_layer_norm(DecompositionTable& table);
void add_losses(DecompositionTable& table);  // of differences
void add_nll_loss(DecompositionTable& table);
void add_products(DecompositionTable& table);  // with bias, and elementwise ones
void add_softmaxes(DecompositionTable& table);
void add_statistics(DecompositionTable& table);  // variances and norms of vectors

}  // namespace halftone
