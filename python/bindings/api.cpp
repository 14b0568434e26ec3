// The public API, in the order in which types need each other.
#include "api.h"

#include "halftone/tune/samples.h"

namespace halftone::python {

void bind_api(py::module_& m) {
  bind_graph_module(m);
  bind_quantize(m);
  bind_weights(m);
  bind_backend(m);
  bind_tune(m);
  bind_autoquant(m);
  bind_static_int8(m);
  bind_generator(m);
  bind_tools(m);
}

std::vector<Sample> to_samples(const py::iterable& samples) {
  std::vector<Sample> result;
  for (const py::handle sample : samples) {
    result.push_back(to_sample(sample, "samples[" + std::to_string(result.size()) + "]"));
  }
  return result;
}

std::vector<std::vector<c10::IValue>> to_calls(const GraphModule& module, const py::iterable& samples) {
  std::vector<std::vector<c10::IValue>> calls;
  for (const Sample& sample : to_samples(samples)) calls.push_back(flat_inputs(module, sample));
  return calls;
}

Callback::Callback(py::object function)
    : function_(new py::object(std::move(function)), [](py::object* last) {
        if (!Py_IsInitialized()) return;  // the interpreter is gone, and the object with it
        const py::gil_scoped_acquire gil;
        delete last;
      }) {}

ProgressCallback to_progress(const py::object& function) {
  if (function.is_none()) return nullptr;
  return [callback = Callback(function)](int64_t done, int64_t total, std::string_view what) {
    const py::gil_scoped_acquire gil;
    callback.function()(done, total, what);
  };
}

}  // namespace halftone::python
