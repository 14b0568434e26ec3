// Configs, schemes, quantize_ and diagnose on graphs.
#include <pybind11/functional.h>

#include "api.h"
#include "halftone/quant/config.h"
#include "halftone/quant/diagnose.h"
#include "halftone/quant/quantize.h"

namespace halftone::python {
namespace {

using Overrides = std::vector<std::pair<std::string, QuantConfig>>;

QuantizeOptions options_of(const py::kwargs& given) {
  QuantizeOptions options;
  for (const auto& [key, value] : given) {
    const auto name = key.cast<std::string>();
    if (name == "include") {
      options.include = value.cast<std::string>();
    } else if (name == "exclude") {
      options.exclude = value.cast<std::string>();
    } else if (name == "filter") {
      if (value.is_none()) continue;
      options.filter = [callback =
                            Callback(py::reinterpret_borrow<py::object>(value))](const LayerInfo& layer) {
        const py::gil_scoped_acquire gil;
        return py::bool_(callback.function()(layer)).cast<bool>();
      };
    } else if (name == "min_weights") {
      options.min_weights = value.cast<int64_t>();
    } else if (name == "embeddings") {
      options.embeddings = value.cast<bool>();
    } else if (name == "overrides") {
      options.overrides = value.cast<Overrides>();
    } else if (name == "dry_run") {
      options.dry_run = value.cast<bool>();
    } else if (name == "progress") {
      options.progress = to_progress(py::reinterpret_borrow<py::object>(value));
    } else {
      throw py::type_error("quantize_ has no option " + name);
    }
  }
  return options;
}

QuantizeReport quantize_graph(const py::object& module, const QuantConfig& config, const py::kwargs& given) {
  const auto graph = module.cast<std::shared_ptr<GraphModule>>();
  QuantizeOptions options = options_of(given);
  QuantizeReport report;
  {
    const WithoutGil no_gil;
    report = quantize_(*graph, config, options);
  }
  if (!options.dry_run) forget_runner(module);
  return report;
}

py::dict to_dict(const ErrorMeasure& error) {
  py::dict result;
  result["snr_db"] = error.snr_db;
  result["cosine"] = error.cosine;
  result["max_error"] = error.max_error;
  return result;
}

py::dict diagnose_graph(const GraphModule& module, const QuantConfig& config, const py::iterable& samples,
                        const py::kwargs& given) {
  const auto calls = to_calls(module, samples);
  const QuantizeOptions options = options_of(given);
  Diagnosis diagnosis;
  {
    const WithoutGil no_gil;
    diagnosis = diagnose(module, config, calls, options);
  }
  py::list layers;
  for (const LayerDiagnosis& layer : diagnosis.layers) {
    py::dict entry;
    entry["name"] = layer.layer.name;
    entry["kind"] = layer.layer.kind;
    entry["config"] = layer.config;
    entry["weight"] = to_dict(layer.weight);
    entry["output"] = to_dict(layer.output);
    entry["result"] = to_dict(layer.result);
    entry["share"] = layer.share;
    layers.append(entry);
  }
  py::dict result;
  result["layers"] = layers;
  result["result"] = to_dict(diagnosis.result);
  return result;
}

void bind_configs(py::module_& m) {
  py::class_<QuantConfig>(m, "QuantConfig")
      .def(py::init([](const std::string& scheme) { return QuantConfig(std::string_view(scheme)); }),
           py::arg("scheme"))
      .def_static(
          "of_type",
          [](const std::string& type, const std::string& fields) {
            return QuantConfig::of_type(type, fields);
          },
          py::arg("type"), py::arg("fields_json") = "{}")
      .def_static(
          "from_json", [](const std::string& json) { return QuantConfig::from_json(json); }, py::arg("json"))
      .def_property_readonly("type", [](const QuantConfig& config) { return config.type(); })
      .def_property_readonly("fields_json", [](const QuantConfig& config) { return config.fields(); })
      .def_property_readonly("scheme", &scheme_name)
      .def("to_json", &QuantConfig::to_json)
      .def("describe", &QuantConfig::describe)
      .def("key", &QuantConfig::key)
      .def("is_noquant", &QuantConfig::is_noquant)
      .def("__repr__", &QuantConfig::describe)
      .def(
          "__eq__", [](const QuantConfig& a, const QuantConfig& b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const QuantConfig& config) { return std::hash<std::string>()(config.to_json()); })
      .def(py::pickle(
          [](const QuantConfig& config) { return py::make_tuple(config.to_json()); },
          [](const py::tuple& state) { return QuantConfig::from_json(state[0].cast<std::string>()); }));
  py::implicitly_convertible<py::str, QuantConfig>();
  m.def("schemes", [] {
    py::list result;
    for (const Scheme& scheme : schemes()) {
      result.append(py::make_tuple(scheme.names, scheme.config, scheme.weights, scheme.activations,
                                   scheme.bits_per_weight));
    }
    return result;
  });
}

void bind_reports(py::module_& m) {
  py::class_<LayerInfo>(m, "LayerInfo")
      .def_readonly("name", &LayerInfo::name)
      .def_readonly("kind", &LayerInfo::kind)
      .def_readonly("n", &LayerInfo::n)
      .def_readonly("k", &LayerInfo::k)
      .def("__repr__", [](const LayerInfo& layer) {
        return "LayerInfo(" + layer.name + ", " + layer.kind + ", n=" + std::to_string(layer.n) +
               ", k=" + std::to_string(layer.k) + ")";
      });
  py::class_<QuantizeReport>(m, "QuantizeReport")
      .def(py::init<>())
      .def_readwrite("bytes_before", &QuantizeReport::bytes_before)
      .def_readwrite("bytes_after", &QuantizeReport::bytes_after)
      .def(
          "add_layer",
          [](QuantizeReport& report, const std::string& name, const std::string& kind, int64_t n, int64_t k,
             const std::optional<QuantConfig>& config, const std::string& reason, int64_t before,
             int64_t after, bool already) {
            LayerReport layer;
            layer.layer = {name, kind, n, k};
            layer.config = config;
            layer.outcome = already  ? LayerReport::Outcome::kAlready
                            : config ? LayerReport::Outcome::kQuantized
                                     : LayerReport::Outcome::kKept;
            layer.reason = reason;
            layer.bytes_before = before;
            layer.bytes_after = after;
            report.layers.push_back(std::move(layer));
          },
          py::arg("name"), py::arg("kind"), py::arg("n"), py::arg("k"), py::arg("config"), py::arg("reason"),
          py::arg("bytes_before"), py::arg("bytes_after"), py::arg("already") = false)
      .def("warnings", &QuantizeReport::warnings)
      .def("to_json", &QuantizeReport::to_json)
      .def("to_text", &QuantizeReport::to_text)
      .def("__str__", &QuantizeReport::to_text)
      .def("__repr__", [](const QuantizeReport& report) {
        const auto count = [&](LayerReport::Outcome outcome) {
          return std::to_string(report.count(outcome));
        };
        return "QuantizeReport(" + count(LayerReport::Outcome::kQuantized) + " quantized, " +
               count(LayerReport::Outcome::kKept) + " kept, " + std::to_string(report.bytes_before) + " -> " +
               std::to_string(report.bytes_after) + " bytes)";
      });
}

}  // namespace

void bind_quantize(py::module_& m) {
  bind_configs(m);
  bind_reports(m);
  m.def("quantize_", &quantize_graph, py::arg("module"), py::arg("config"));
  m.def("diagnose_graph", &diagnose_graph, py::arg("module"), py::arg("config"), py::arg("samples"));
}

}  // namespace halftone::python
