// What a backend config asks for beyond what prepare and convert do.
#pragma once

#include "halftone/ptq/backend_config.h"

namespace halftone::ptq {

/// kUnsupported, naming the field, for what would be ignored otherwise: getters and reference modules of the user's own,
/// and operands at other places than torch's functions have them. kInvalidArgument for operators that do not exist.
void check_config(const BackendConfig& config);

}  // namespace halftone::ptq
