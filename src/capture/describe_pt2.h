// The description of a .pt2 file, without a graph.
#pragma once

#include "base/json.h"
#include "capture/pt2_types.h"
#include "halftone/capture/capture.h"

namespace halftone {

/// Checks the version and the keys of the exported program; gives its graph module.
JsonCursor open_program(Pt2Context& context, const JsonCursor& program);

/// describe_pt2() but for the types of errors.
Pt2Description describe(const std::string& path);

}  // namespace halftone
