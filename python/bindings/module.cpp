// The extension module halftone._C: errors, then the API, then graphs from Python.
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>

#include <exception>
#include <string>

#include "bindings.h"
#include "halftone/base/error.h"
#include "halftone/base/version.h"

namespace halftone::python {
namespace {

constexpr const char* kErrorDoc =
    "An error of Halftone. `code` says which kind, in the words of the C++ library: \"invalid argument\",\n"
    "\"not found\", \"corrupt file\", \"unsupported\", \"input/output error\", \"wrong state\", \"guard "
    "failed\" or\n"
    "\"internal error\". Errors of PyTorch outside of models stay RuntimeErrors.";

/// Lives as long as the process: exceptions may be raised while the interpreter ends.
PyObject* error_type = nullptr;

void raise(const Error& error) {
  const py::object exception = py::reinterpret_borrow<py::object>(error_type)(error.what());
  exception.attr("code") = std::string(to_string(error.code()));
  PyErr_SetObject(error_type, exception.ptr());
}

/// Everything else goes where torch's own bindings send it: c10::Error becomes RuntimeError, IndexError, ….
void translate(std::exception_ptr exception) {
  if (!exception) return;
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    raise(error);
  } catch (const c10::Error&) {
    torch::translate_exception_to_python(exception);
  }
}

void bind_errors(py::module_& m) {
  error_type = PyErr_NewExceptionWithDoc("halftone.Error", kErrorDoc, PyExc_RuntimeError, nullptr);
  if (!error_type) throw py::error_already_set();
  PyObject_SetAttrString(error_type, "code", py::str("internal error").ptr());
  m.attr("Error") = py::reinterpret_borrow<py::object>(error_type);
  py::register_local_exception_translator(&translate);
}

}  // namespace
}  // namespace halftone::python

PYBIND11_MODULE(_C, m) {
  m.doc() = "Halftone's C++ library. Use the package `halftone`: this module is its inside.";
  halftone::python::bind_errors(m);
  m.attr("__version__") = halftone::version();
  m.attr("torch_version") = halftone::torch_version();
  halftone::python::bind_api(m);
  halftone::python::bind_graph(m);
}
