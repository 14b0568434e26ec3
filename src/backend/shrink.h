// The steps of the minifier: each gives a smaller case of the same kind, which may or may not fail as before.
#pragma once

#include <cstddef>
#include <optional>

#include "backend/graph_case.h"

namespace halftone {

/// Keeps the first `count` nodes; what later nodes would read becomes the outputs. Nothing if no node reads
/// any of it.
std::optional<GraphCase> cut_end(const GraphCase& graph_case, size_t count);

/// Without the first `count` nodes: what later nodes read of them are inputs, which hold the values of a run.
/// Nothing where such a value is a list or none.
std::optional<GraphCase> cut_begin(const GraphCase& graph_case, size_t count);

/// Without the outputs [begin, end), and without what only they needed. Nothing where no output is left.
std::optional<GraphCase> without_outputs(const GraphCase& graph_case, size_t begin, size_t end);

/// The nodes [begin, end) are gone; those of their results that others read are inputs, which hold the
/// recorded values. Nothing if such a result is a list or none.
std::optional<GraphCase> nodes_as_inputs(const GraphCase& graph_case, size_t begin, size_t end,
                                         const RecordedValues& values);

/// Without inputs and tensors that are neither read nor written; nothing if there are none.
std::optional<GraphCase> without_unused_inputs(const GraphCase& graph_case);

/// What was to be written to buffers and inputs becomes plain outputs; nothing if there is none.
std::optional<GraphCase> without_mutation_outputs(const GraphCase& graph_case);

/// Symbolic sizes become the numbers of this call; nothing if all are numbers.
std::optional<GraphCase> with_fixed_sizes(const GraphCase& graph_case, const RecordedValues& values);

}  // namespace halftone
