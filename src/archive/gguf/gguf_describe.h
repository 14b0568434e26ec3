// What describing and checking of GGUF files share.
#pragma once

#include "archive/gguf/gguf.h"
#include "halftone/cli/gguf.h"

namespace halftone {

GgufDescription describe(const GgufReader& file);

}  // namespace halftone
