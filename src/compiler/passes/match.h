// Reading nodes: constant operands, tensor operands, shapes that are known to be equal.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/passes/pass.h"
#include "graph/ir/read_node.h"
#include "graph/rewrite/layout.h"

namespace halftone::compiler {

template <size_t N>
bool is_one_of(const Node& node, const std::array<std::string_view, N>& targets) {
  return std::find(targets.begin(), targets.end(), node.target()) != targets.end();
}

bool is_float(const Value* value);  ///< a float32 tensor on the CPU, of known sizes
/// Equal for every value of the symbols: the same structure, or the same number under several bindings.
bool same(const SymExpr& a, const SymExpr& b);
bool same_sizes(const Value* a, const Value* b);
bool is_contiguous(const Value* value);  ///< strides are known to be
/// Strides are known to be those of channels_last_meta.
bool is_channels_last(const Value* value);
/// Not counting from the end.
int64_t positive_dim(int64_t dim, size_t rank);
/// Product of all sizes but the last.
SymExpr rows_of(const std::vector<SymExpr>& sizes);
/// For q, scale and zero_point of rows like `meta`.
std::vector<OutputSpec> quantized_specs(const std::string& name, const TensorMeta& meta, bool symmetric);
/// Values of symbols for trying things out: different in each probe.
SymbolBindings probe_bindings(const std::vector<SymExpr>& expressions, int probe);
inline constexpr int kProbes = 3;

}  // namespace halftone::compiler
