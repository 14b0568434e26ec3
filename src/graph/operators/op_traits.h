// What operators are like, by name: one table for all who ask. A pass that matches one operator keeps its
// name; a list of names that share a property belongs here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "halftone/graph/graph.h"

namespace halftone {

enum class OpTrait : uint32_t {
  // The same elements, seen otherwise.
  kView = 1U << 0,           ///< the result may show the first operand's memory, as the schema says
  kReshape = 1U << 1,        ///< all elements in their order, with other sizes
  kKeepsOrder = 1U << 2,     ///< all elements in their order: reshapes, and what changes memory only
  kMayCopy = 1U << 3,        ///< a view where the strides allow it, else a copy
  kPermutation = 1U << 4,    ///< all elements, dimensions in another order
  kPart = 1U << 5,           ///< a regular part of the elements: slices and selections
  kSplit = 1U << 6,          ///< a list of such parts
  kSizesDecide = 1U << 7,    ///< with the operand's sizes (and a slice's step 1) the result is the operand
  kMovesElements = 1U << 8,  ///< results are elements of the operands (or zeros), so integers do as well as
                             ///< the floats behind them; of max pooling the first result
  // The same elements, elsewhere or of another type.
  kAlias = 1U << 9,          ///< the operand itself, for autograd's or the exporter's sake
  kCopy = 1U << 10,          ///< the operand in memory of its own (contiguous: where it has to be)
  kSameElements = 1U << 11,  ///< changes nothing but layout or identity
  kCast = 1U << 12,          ///< the operand in another dtype or on another device
  kDropout = 1U << 13,       ///< in inference the operand
  // How results are computed.
  kElementwise = 1U << 14,   ///< element by element, operands broadcast
  kWindow = 1U << 15,        ///< from pixels of the first operand nearby, or each channel by itself
  kConcatenates = 1U << 16,  ///< tensors of a list, one after the other
  kReduces = 1U << 17,       ///< over the dimensions in `dim`
  kProduct = 1U << 18,       ///< of rows with a weight: what linears are spelled as
  kNorm = 1U << 19,          ///< of rows
  kActivation = 1U << 20,    ///< one that the compiler's linears take over
  // How operands are read.
  kChannelsLast = 1U << 21,    ///< in either layout; the result has the first operand's, or none to show
  kReadsStrided = 1U << 22,    ///< has a native step that reads pixels at any distance from each other
  kReadsSizesOnly = 1U << 23,  ///< sizes and dtype of the operand, no data
};

/// Several of them.
struct OpTraits {
  uint32_t bits = 0;
  constexpr OpTraits() = default;
  constexpr OpTraits(OpTrait trait)
      : bits(static_cast<uint32_t>(trait)) {}  // NOLINT(google-explicit-constructor)
  constexpr bool any_of(OpTraits others) const { return (bits & others.bits) != 0; }
};
constexpr OpTraits operator|(OpTraits a, OpTraits b) {
  a.bits |= b.bits;
  return a;
}
constexpr OpTraits operator|(OpTrait a, OpTrait b) {
  return OpTraits(a) | OpTraits(b);
}

struct OpTraitsEntry {
  std::string_view target;  ///< with its overload: "aten::add.Tensor"
  OpTraits traits;
};

/// The whole table.
std::span<const OpTraitsEntry> op_traits_table();

/// None for operators that are not in the table.
OpTraits traits_of(std::string_view target);
/// Whether the operator has one of the traits.
inline bool has_trait(std::string_view target, OpTraits traits) {
  return traits_of(target).any_of(traits);
}
inline bool has_trait(const Node& node, OpTraits traits) {
  return has_trait(node.target(), traits);
}

}  // namespace halftone
