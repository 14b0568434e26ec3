// autoquant on graphs, and its plan.
#include "api.h"
#include "halftone/tune/autoquant.h"

namespace halftone::python {
namespace {

AutoquantPlan plan_graph(const std::shared_ptr<GraphModule>& module, const py::iterable& samples,
                         const py::dict& given) {
  const Samples calls(to_samples(samples));
  AutoquantOptions options;
  options.schemes = given["schemes"].cast<std::vector<std::string>>();
  options.min_cosine = given["min_cosine"].cast<double>();
  options.min_layer_cosine = given["min_layer_cosine"].cast<double>();
  options.time_limit = given["time_limit"].cast<double>();
  options.error_on_unseen = given["error_on_unseen"].cast<bool>();
  options.final_comparison = given["final_comparison"].cast<bool>();
  options.include = given["include"].cast<std::string>();
  options.exclude = given["exclude"].cast<std::string>();
  options.cache_dir = given["cache_dir"].cast<std::string>();
  options.progress = to_progress(given["progress"]);
  const WithoutGil no_gil;
  return plan_autoquant(ModelSource(module), calls, options);
}

/// (name, scheme, reason) of each layer.
std::vector<std::tuple<std::string, std::string, std::string>> layers_of(const AutoquantPlan& plan) {
  std::vector<std::tuple<std::string, std::string, std::string>> result;
  for (const AutoquantLayer& layer : plan.layers) result.emplace_back(layer.name, layer.choice, layer.reason);
  return result;
}

}  // namespace

void bind_autoquant(py::module_& m) {
  py::class_<AutoquantPlan>(m, "AutoquantPlan")
      .def_static(
          "from_json",
          [](const std::string& json, const std::string& file) {
            return AutoquantPlan::from_json(json, file);
          },
          py::arg("json"), py::arg("file") = "plan")
      .def_property_readonly("layers", &layers_of)
      .def_readonly("cosine", &AutoquantPlan::cosine)
      .def_readonly("notes", &AutoquantPlan::notes)
      .def("overrides", &AutoquantPlan::overrides)
      .def("quantizes", &AutoquantPlan::quantizes)
      .def("to_json", &AutoquantPlan::to_json)
      .def("to_text", &AutoquantPlan::to_text)
      .def("__str__", &AutoquantPlan::to_text)
      .def(
          "__eq__", [](const AutoquantPlan& a, const AutoquantPlan& b) { return a == b; }, py::is_operator())
      .def("__repr__", [](const AutoquantPlan& plan) {
        return "AutoquantPlan(" + std::to_string(plan.layers.size()) + " layers)";
      });
  m.def("plan_autoquant", &plan_graph, py::arg("module"), py::arg("samples"), py::arg("options"));
  m.def(
      "apply_plan",
      [](const py::object& module, const AutoquantPlan& plan) {
        const auto graph = module.cast<std::shared_ptr<GraphModule>>();
        const QuantizeReport report = [&] {
          const WithoutGil no_gil;
          return apply_plan(*graph, plan);
        }();
        forget_runner(module);
        return report;
      },
      py::arg("module"), py::arg("plan"));
  m.def("autoquant_schemes", &default_autoquant_schemes);
}

}  // namespace halftone::python
