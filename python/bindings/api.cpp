// The public API, in the order in which types need each other.
#include "bindings.h"

namespace halftone::python {

void bind_api(py::module_& m) {}

}  // namespace halftone::python
