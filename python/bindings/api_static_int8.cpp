// Static int8 of graphs, and torch.ao's configs as JSON.
#include "api.h"
#include "halftone/ptq/backend_config.h"
#include "halftone/ptq/qconfig.h"
#include "halftone/ptq/static_int8.h"

namespace halftone::python {
namespace {

StaticInt8Result quantize(const GraphModule& module, const py::iterable& samples,
                          const std::string& backend_config, const std::string& mapping,
                          const py::dict& given) {
  const auto calls = to_calls(module, samples);
  StaticInt8Options options;
  options.backend_config = BackendConfig::from_dict(backend_config, "backend_config");
  if (!mapping.empty()) {
    options.mapping = QConfigMapping::from_dict(mapping, "qconfig_mapping");
  } else {
    options.mapping =
        static_int8_mapping({given["activation_bits"].cast<int>(), given["weight_bits"].cast<int>()});
  }
  options.statistics = given["statistics"].cast<std::string>();
  options.require_all = given["require_all"].cast<bool>();
  options.progress = to_progress(given["progress"]);
  const WithoutGil no_gil;
  return quantize_static(module, calls, options);
}

/// The same Python object each time, because what it compiles is kept with it.
template <std::shared_ptr<GraphModule> StaticInt8Result::*kMember>
py::object kept(const py::object& self, const char* name) {
  const py::dict attributes = self.attr("__dict__");
  if (!attributes.contains(name)) attributes[name] = py::cast(self.cast<const StaticInt8Result&>().*kMember);
  return attributes[name];
}

}  // namespace

void bind_static_int8(py::module_& m) {
  py::class_<StaticInt8Result>(m, "StaticInt8Result", py::dynamic_attr())
      .def_property_readonly(
          "module", [](const py::object& self) { return kept<&StaticInt8Result::module>(self, "_module"); })
      .def_property_readonly(
          "reference",
          [](const py::object& self) { return kept<&StaticInt8Result::reference>(self, "_reference"); })
      .def_readonly("cosine", &StaticInt8Result::cosine)
      .def_readonly("calibrated", &StaticInt8Result::calibrated)
      .def_readonly("statistics", &StaticInt8Result::statistics)
      .def("to_json", &StaticInt8Result::to_json)
      .def("to_text", &StaticInt8Result::to_text, py::arg("layers") = 20)
      .def("__str__", [](const StaticInt8Result& result) { return result.to_text(); });
  m.def("quantize_static", &quantize, py::arg("module"), py::arg("samples"), py::arg("backend_config"),
        py::arg("qconfig_mapping"), py::arg("options"));
  // JSON in, canonical JSON out: the text of Python's to_dict().
  m.def(
      "backend_config", [](const std::string& json) { return BackendConfig::from_dict(json).to_dict(); },
      py::arg("json"));
  m.def(
      "backend_config_text", [](const std::string& json) { return BackendConfig::from_dict(json).to_text(); },
      py::arg("json"));
  m.def(
      "builtin_backend_config",
      [](const std::string& name) { return builtin_backend_config(name).to_dict(); }, py::arg("name"));
  m.def("builtin_backend_configs", &builtin_backend_configs);
  m.def(
      "default_qconfig_mapping",
      [](const std::string& name) { return default_qconfig_mapping(name).to_dict(); },
      py::arg("backend") = "x86");
  m.def(
      "qconfig_mapping", [](const std::string& json) { return QConfigMapping::from_dict(json).to_dict(); },
      py::arg("json"));
  m.def(
      "register_backend_config_name",
      [](const std::string& kind, const std::string& name) {
        for (const auto known : {ConfigNameKind::kModule, ConfigNameKind::kFunction, ConfigNameKind::kMethod,
                                 ConfigNameKind::kFuserMethod, ConfigNameKind::kRootNodeGetter,
                                 ConfigNameKind::kExtraInputsGetter}) {
          if (to_string(known) == kind) return register_backend_config_name(known, name);
        }
        throw py::value_error("no kind of name is called " + kind);
      },
      py::arg("kind"), py::arg("name"));
}

}  // namespace halftone::python
