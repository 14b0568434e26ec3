// Stands in for bind_graph until the graph builder is there.
#include "bindings.h"

namespace halftone::python {

void bind_graph(py::module_&) {}

}  // namespace halftone::python
