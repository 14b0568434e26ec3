// Backends with a lifecycle: build, activate, deactivate, deploy, infer, dicts and files.
#include "api.h"
#include "halftone/backend/backend.h"
#include "halftone/base/error.h"
#include "halftone/checkpoint/checkpoint.h"

namespace halftone::python {
namespace {

c10::Device device_of(const py::object& device) {
  if (device.is_none()) return c10::Device(c10::DeviceType::CPU);
  if (py::isinstance<py::str>(device)) return c10::Device(device.cast<std::string>());
  return device.cast<c10::Device>();
}

py::object infer(const Backend& backend, const py::args& args, const py::kwargs& kwargs) {
  Sample call{to_ivalues(args), to_ivalues(kwargs)};
  c10::IValue result;
  {
    const WithoutGil no_gil;
    result = backend.infer(std::move(call.args), std::move(call.kwargs));
  }
  return to_python(result);
}

void build(Backend& backend, const std::shared_ptr<GraphModule>& graph, const py::iterable& data,
           const py::object& device, const std::string& cache_dir) {
  const auto samples = to_samples(data);
  const c10::Device where = device_of(device);
  const WithoutGil no_gil;
  backend.build(ModelSource(graph), {}, samples, where, cache_dir);
}

py::dict to_dict(const Backend& backend) {
  const BackendDict dict = backend.to_dict();
  py::list data;
  for (const Sample& sample : dict.data) {
    py::dict kwargs;
    for (const auto& [name, value] : sample.kwargs) kwargs[py::str(name)] = to_python(value);
    data.append(py::make_tuple(to_python(sample.args), kwargs));
  }
  py::dict result;
  result["type"] = dict.type;
  result["config"] = dict.config;
  result["module"] = py::cast(dict.module);
  result["data"] = data;
  result["device"] = py::cast(dict.device);
  return result;
}

Backend from_dict(const std::shared_ptr<GraphModule>& graph, const py::dict& state, const std::string& type) {
  BackendDict dict;
  dict.type = state["type"].cast<std::string>();
  dict.config = state["config"].cast<std::string>();
  dict.module = state["module"].cast<TensorMap>();
  dict.data = to_samples(state["data"]);
  dict.device = device_of(state["device"]);
  std::optional<ModelSource> source;
  if (graph) source.emplace(graph);
  return Backend::from_dict(source, dict, type);
}

void bind_states(py::class_<Backend>& backend) {
  const auto no_gil = py::call_guard<WithoutGil>();
  backend.def("build", &build, py::arg("module"), py::arg("data"), py::arg("device"), py::arg("cache_dir"))
      .def("activate", &Backend::activate, no_gil)
      .def("deactivate", &Backend::deactivate, no_gil)
      .def(
          "deploy",
          [](Backend& self, const py::object& device) {
            const std::optional<c10::Device> where =
                device.is_none() ? std::nullopt : std::optional(device_of(device));
            const WithoutGil no_gil;
            self.deploy(where);
          },
          py::arg("device") = py::none())
      .def("infer", &infer);
}

}  // namespace

void bind_backend(py::module_& m) {
  py::class_<Backend> backend(m, "Backend");
  backend
      .def(py::init([](const std::string& type, const std::string& config) { return Backend(type, config); }),
           py::arg("type"), py::arg("config_json") = "{}")
      .def_property_readonly("state",
                             [](const Backend& self) { return std::string(to_string(self.state())); })
      .def_property_readonly("is_active", &Backend::is_active)
      .def_property_readonly("name", &Backend::name)
      .def_property_readonly("device", &Backend::device)
      .def_property_readonly("config_json", &Backend::config)
      .def_property_readonly("tuning", &Backend::tuning)
      .def("describe", &Backend::describe)
      .def("key", &Backend::key)
      .def("config_to_json", &Backend::config_to_json, py::arg("path"))
      .def("to_dict", &to_dict)
      .def_static("from_dict", &from_dict, py::arg("module").none(true), py::arg("state_dict"),
                  py::arg("type"))
      .def(
          "save",
          [](const Backend& self, const std::string& path, bool packed, bool original) {
            const WithoutGil no_gil;
            save(self, path, {.packed = packed, .original = original});
          },
          py::arg("path"), py::arg("packed") = false, py::arg("original") = false);
  bind_states(backend);
  m.def(
      "load_backend",
      [](const std::string& path, bool map, bool verify) {
        const WithoutGil no_gil;
        return load(path, {.map = map, .verify = verify});
      },
      py::arg("path"), py::arg("map") = true, py::arg("verify") = true);
  m.def("backend_types", [] {
    std::vector<std::pair<std::string, std::string>> result;
    for (const BackendType& type : backend_types()) result.emplace_back(type.type, type.what);
    return result;
  });
}

}  // namespace halftone::python
