// The parts of bind_api(), one for each api_*.cpp, and what they share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bindings.h"
#include "halftone/base/progress.h"
#include "halftone/graph/graph_module.h"

namespace halftone::python {

void bind_graph_module(py::module_& m);
void bind_quantize(py::module_& m);
void bind_weights(py::module_& m);
void bind_backend(py::module_& m);
void bind_tune(py::module_& m);
void bind_autoquant(py::module_& m);
void bind_static_int8(py::module_& m);
void bind_generator(py::module_& m);
void bind_tools(py::module_& m);

/// A sequence of samples; see to_sample().
std::vector<Sample> to_samples(const py::iterable& samples);
/// Flat inputs of each, as C++ functions take them that call the graph by its input_names().
std::vector<std::vector<c10::IValue>> to_calls(const GraphModule& module, const py::iterable& samples);

/// progress(done, total, what), called with the GIL. None: nothing is called.
ProgressCallback to_progress(const py::object& function);

/// A Python callable that C++ keeps: calls and the last goodbye take the GIL. Copies share it.
class Callback {
 public:
  explicit Callback(py::object function);
  /// With the GIL held.
  const py::object& function() const { return *function_; }

 private:
  std::shared_ptr<py::object> function_;
};

/// What the module computed from its graph and tensors is made anew at the next call.
void forget_runner(py::handle module);

}  // namespace halftone::python
