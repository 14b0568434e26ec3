// What the files of the extension module share: the order of binding, and values on their way between Python and C++.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/utils/pybind.h>  // before other headers of pybind11: casters of tensors, dtypes and devices

#include <map>
#include <string>
#include <vector>

#include "halftone/graph/sample.h"

namespace halftone::python {

namespace py = pybind11;

/// The public API: GraphModule, quantize_, Backend, tune, …. Runs first, since others return GraphModules.
void bind_api(py::module_& m);
/// Graphs from Python: the builder behind torch.compile, and compiled calls.
void bind_graph(py::module_& m);

/// Tensors, numbers, strings, None, dtypes and devices, nested in tuples, lists and dicts with string keys. Objects of
/// other types are TypeError with the place: "args[1]['mask']". Tensors are shared, not copied. The GIL must be held.
c10::IValue to_ivalue(py::handle value, const std::string& place = "value");
/// The opposite. The GIL must be held.
py::object to_python(const c10::IValue& value);

std::vector<c10::IValue> to_ivalues(const py::args& args, const std::string& place = "args");
std::map<std::string, c10::IValue> to_ivalues(const py::kwargs& kwargs);
/// A tuple: one Python object for each value.
py::tuple to_python(const std::vector<c10::IValue>& values);

/// A call of a model: a tuple or list of positional arguments, a dict of keyword arguments, a pair
/// (tuple, dict) of both, or one tensor.
Sample to_sample(py::handle value, const std::string& place = "sample");

/// Gives the GIL up for its scope, as pybind11's gil_scoped_release. A thread that wants it back while the interpreter ends is
/// made to exit by Python (before 3.14), by unwinding: through a destructor that would abort the process. Here it sleeps
/// until the process is gone.
class WithoutGil {
 public:
  WithoutGil() : thread_(PyEval_SaveThread()) {}
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* thread_;
};

/// Raises halftone.Error with the code "unsupported": what pickle, copy and deepcopy get from objects that only save() can keep.
void refuse_pickle(const char* type, const char* instead);

}  // namespace halftone::python
