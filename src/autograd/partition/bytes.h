// Memory of values, and which of them share it.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "halftone/graph/graph.h"

namespace halftone::partition {

using ValueSet = std::unordered_set<const Value*>;

/// Nothing if the sizes are not known or depend on symbols.
std::optional<int64_t> try_element_count(const Value& value);

/// Elements times the width of one, as if it had memory of its own; kInvalidArgument if sizes are not
/// known.
int64_t bytes_of(const Value& value);

/// The value whose memory this one shares: itself, where it is not a view.
const Value* storage_of(const Value* value);

/// Of the memory that the values keep alive, each piece once; inputs of the graph are alive anyway.
int64_t bytes_kept_alive(const ValueSet& values);

}  // namespace halftone::partition
