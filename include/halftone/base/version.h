// The version of Halftone.
#pragma once

#include "halftone/base/api.h"

namespace halftone {

/// "0.3.0"
HALFTONE_API const char* version();

/// The libtorch that this library was built with, "2.15.0"; "none" in builds without it.
HALFTONE_API const char* torch_version();

}  // namespace halftone
