#include "compiler/passes/match.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace halftone::compiler {

bool is_float(const Value* value) {
  return value != nullptr && value->meta() && value->meta()->dtype == c10::ScalarType::Float &&
         value->meta()->device.is_cpu();
}

SymbolBindings probe_bindings(const std::vector<SymExpr>& expressions, int probe) {
  std::set<std::string> names;
  for (const SymExpr& expression : expressions) expression.collect_symbols(names);
  SymbolBindings bindings;
  constexpr int64_t kPrimes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  size_t index = static_cast<size_t>(probe) * 4 + 1;
  for (const std::string& name : names) bindings[name] = kPrimes[index++ % std::size(kPrimes)];
  return bindings;
}

bool same(const SymExpr& a, const SymExpr& b) {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return a.constant() == b.constant();
  try {
    for (int probe = 0; probe < kProbes; ++probe) {
      const SymbolBindings bindings = probe_bindings({a, b}, probe);
      if (a.evaluate(bindings) != b.evaluate(bindings)) return false;
    }
  } catch (const Error&) {
    return false;  // overflow or a division by zero: not known to be the same
  }
  return true;
}

bool same_sizes(const Value* a, const Value* b) {
  if (!a->meta() || !b->meta()) return false;
  return std::equal(a->meta()->sizes.begin(), a->meta()->sizes.end(), b->meta()->sizes.begin(),
                    b->meta()->sizes.end(), same);
}

namespace {

// Dense, with the dimensions in that order in memory, the last one innermost.
bool is_dense_in_order(const Value* value, const std::vector<size_t>& order) {
  const TensorMeta& meta = *value->meta();
  if (meta.strides.size() != meta.sizes.size()) return false;
  SymExpr expected = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const SymExpr& size = meta.sizes[order[i]];
    const bool single = size.as_constant() == 1;  // its stride is never used
    if (!single && !same(meta.strides[order[i]], expected)) return false;
    expected = SymExpr::make(SymExpr::Op::kMul, {expected, size});
  }
  return true;
}

std::vector<size_t> memory_order(size_t rank, bool channels_last) {
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  if (channels_last) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

}  // namespace

bool is_contiguous(const Value* value) {
  return value->meta() && is_dense_in_order(value, memory_order(rank(value), false));
}

bool is_channels_last(const Value* value) {
  return rank(value) >= 3 && is_dense_in_order(value, memory_order(rank(value), true));
}

int64_t positive_dim(int64_t dim, size_t rank) {
  return dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
}

SymExpr rows_of(const std::vector<SymExpr>& sizes) {
  SymExpr rows = 1;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    const bool first = rows.as_constant() == 1;
    rows = first                         ? sizes[i]
           : sizes[i].as_constant() == 1 ? rows
                                         : SymExpr::make(SymExpr::Op::kMul, {rows, sizes[i]});
  }
  return rows;
}

std::vector<OutputSpec> quantized_specs(const std::string& name, const TensorMeta& meta, bool symmetric) {
  const SymExpr rows = rows_of(meta.sizes);
  return {{name + "_q", ValueType::kTensor,
           contiguous_meta(symmetric ? c10::ScalarType::Char : c10::ScalarType::Byte, meta.sizes)},
          {name + "_scale", ValueType::kTensor, contiguous_meta(c10::ScalarType::Float, {rows})},
          {name + "_zero_point", ValueType::kTensor, contiguous_meta(c10::ScalarType::Int, {rows})}};
}

}  // namespace halftone::compiler
