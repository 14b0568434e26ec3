#include "halftone/version.h"

namespace halftone {

const char* version() {
  return "0.2.0";
}
const char* torch_version() {
  return "2.13.0";
}

}  // namespace halftone
