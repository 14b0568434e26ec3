// The version of Halftone.
#pragma once

namespace halftone {

/// "0.3.0"
const char* version();

/// The libtorch that this library was built with, "2.15.0"; "none" in builds without it.
const char* torch_version();

}  // namespace halftone
