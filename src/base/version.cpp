// The version of Halftone and of the torch that it was built with.
#include "halftone/base/version.h"

namespace halftone {

const char* version() {
  return "0.3.0";
}
const char* torch_version() {
  return HALFTONE_BUILT_WITH_TORCH;
}

}  // namespace halftone
