// The backend record of a .ht file, resolved in this process: its recipe and its device. The file is not
// believed.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "checkpoint/container/ht_lifecycle.h"
#include "halftone/backend/recipes.h"

namespace halftone {

/// kUnsupported, naming file and key, if the record names code or other files, whatever its config says.
void require_no_code(const HtBackend& backend, const HtMetadata& metadata);

/// kUnsupported if the type is not registered here or may not come from a file: what cannot be saved names
/// code or other files. kCorruptFile if the type refuses the config. All name file and key.
std::shared_ptr<const BackendRecipe> recipe_of(const HtBackend& backend, const HtMetadata& metadata);

/// kCorruptFile if it is none. Whether this machine has it is asked when the backend is deployed.
c10::Device device_of(const HtBackend& backend, const HtMetadata& metadata);

}  // namespace halftone
