// Sizes and strides of values: ranks, and the metadata of results that are laid out in one of the usual ways.
#pragma once

#include <optional>
#include <vector>

#include "halftone/graph/graph.h"

namespace halftone {

size_t rank(const Value* value);  ///< 0 where nothing is known

/// Sizes and strides of a contiguous tensor.
TensorMeta contiguous_meta(c10::ScalarType dtype, std::vector<SymExpr> sizes);
/// The same with the channels, dimension 1, neighbours in memory: [n, …, c]. At least three sizes.
TensorMeta channels_last_meta(c10::ScalarType dtype, const std::vector<SymExpr>& sizes);
/// The metadata with the strides of a contiguous tensor: recorded ones may be those of another kernel.
std::optional<TensorMeta> with_contiguous_strides(std::optional<TensorMeta> meta);

/// Strides of a row-major tensor; empty where they cannot be written down (contiguous_strides).
std::vector<SymExpr> contiguous_strides_or_none(const std::vector<SymExpr>& sizes);
/// Strides of a tensor whose channels (dimension 1) are neighbours, for three dimensions and more; row-major
/// ones for less; empty where they cannot be written down.
std::vector<SymExpr> channels_last_strides(const std::vector<SymExpr>& sizes);

}  // namespace halftone
