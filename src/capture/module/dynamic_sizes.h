// The dynamic dimensions of the arguments, and arguments of other sizes to trace with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "capture/module/trace.h"

namespace halftone {

/// A dimension of one leaf of the arguments.
struct DynamicLeaf {
  size_t leaf = 0;
  size_t dim = 0;
  std::string symbol;
};

struct DynamicSizes {
  std::vector<DynamicLeaf> dims;
  std::map<std::string, SymbolRange> ranges;
  /// Sets of arguments to trace with, and the symbols'
  /// values in each.
  std::vector<std::vector<c10::IValue>> examples;
  std::vector<SymbolBindings> bindings;
  bool starts_with_example = false;  ///< the first set is the user's
  /// Every symbol at its minimum, where that is not among the traces: sizes of 1 are often a special case.
  std::vector<c10::IValue> smallest;
  SymbolBindings smallest_bindings;
};

/// How many traces: enough for most models, or enough to tell (x + 1) // 2 from x // 2 too, as strides need
/// it.
enum class TraceCount { kFew, kMany };

/// `names`: of the leaves, empty for those that are not tensors. kInvalidArgument for declarations and
/// examples that do not fit each other.
DynamicSizes plan_sizes(const std::vector<c10::IValue>& examples, const std::vector<std::string>& names,
                        const CaptureOptions& options, TraceCount count);

}  // namespace halftone
