// The backend that a .ht file was saved with, for halftone run.
#pragma once

#include <optional>

#include "common/command_line.h"
#include "halftone/backend/backend.h"

namespace halftone::cli {

/// As a C++ program takes it: load() and deploy(). Nothing if the file is not a .ht, or if no backend was
/// saved with it.
std::optional<Backend> try_stored_backend(const ModelOptions& options);

}  // namespace halftone::cli
