// Which Halftone this is.
#pragma once

namespace halftone {

/// "0.2.0"
const char* version();

/// The libtorch that this library was built for, "2.13.0".
const char* torch_version();

}  // namespace halftone
