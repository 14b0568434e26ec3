// Whether the results of a backend are those of the interpreter.
#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

#include "halftone/compile/minify.h"

namespace halftone {

/// A value that a call gave or wrote, with its name for messages: "output 0", "input \"x\" after the call".
struct Observed {
  std::string name;
  c10::IValue value;
};

/// What differs first; nothing if all is right as MinifyOptions::tolerance says. `exact`: the same in
/// float64, or empty if that is not known.
std::optional<std::string> find_difference(const std::vector<Observed>& results,
                                           const std::vector<Observed>& expected,
                                           const std::vector<Observed>& exact, double tolerance);

/// The case with everything in double precision: graph, tensors and inputs.
GraphCase in_float64(const GraphCase& graph_case);

}  // namespace halftone
