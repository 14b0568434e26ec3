// Reading reference graphs: quantize and dequantize nodes, constants, operands of operators.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/read_node.h"
#include "halftone/graph/graph_module.h"

namespace halftone::static_int8 {

/// What an integer means: (q - zero_point) · scale.
struct Affine {
  float scale = 1;
  int64_t zero_point = 0;
  bool operator==(const Affine&) const = default;
};

/// A float that is a quantized value in disguise: the result of dequantize_per_tensor.
struct Dequantized {
  Value* q = nullptr;
  Affine affine;
};
std::optional<Dequantized> try_dequantized(const Value* value);

/// A quantize_per_tensor node.
struct Quantized {
  Affine affine;
  int64_t least = 0;
  int64_t largest = 255;
  c10::ScalarType dtype = c10::ScalarType::Byte;
  bool operator==(const Quantized&) const = default;
  /// The integer of x, by the operator's own formula.
  int64_t quantize(float x) const;
};
std::optional<Quantized> try_quantized(const Node& node);

bool is_byte(const Value* value);  ///< a uint8 tensor by its metadata
/// The largest integer that a uint8 value can hold, as far as the graph says; 255 where it says nothing.
int64_t largest_integer(const Value* value, const TensorMap& constants);

/// A list of integers as long as `rank` says: one number stands for all, an empty list for `otherwise`.
std::optional<std::vector<int64_t>> try_extent(const Node& node, std::string_view name, size_t rank,
                                               int64_t otherwise);

/// The tensor behind an input of the graph, where it is among `constants`; undefined for all else.
at::Tensor constant_of(const Value* value, const TensorMap& constants);

}  // namespace halftone::static_int8
