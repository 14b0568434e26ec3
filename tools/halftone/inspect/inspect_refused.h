// halftone inspect of a model that cannot be run here.
#pragma once

#include <string>

#include "halftone/capture/capture.h"

namespace halftone::cli {

class Console;

/// Inputs, outputs, operators by layer, tensors, and each node that cannot be run with its reason.
void inspect_refused(const std::string& path, const Pt2Description& description, bool json, Console& console);

}  // namespace halftone::cli
