// bind_graph: the builder, compiled calls, and what explain() asks them.
#include <memory>

#include "graph_builder.h"
#include "graph_call.h"
#include "halftone/base/error.h"

namespace halftone::python {
namespace {

ConvChoice conv_choice(const std::string& name) {
  if (name == "halftone") return ConvChoice::kHalftone;
  if (name == "mkldnn") return ConvChoice::kMkldnn;
  if (name == "fastest") return ConvChoice::kFastest;
  throw Error(ErrorCode::kInvalidArgument,
              "option convolutions is \"" + name + "\": it must be \"halftone\", \"mkldnn\" or \"fastest\"");
}

using Frozen = std::vector<std::pair<size_t, at::Tensor>>;

std::shared_ptr<CompiledVariant> compile_variant(std::shared_ptr<GraphModule> module, const Frozen& frozen,
                                                 const std::vector<std::string>& disabled_passes,
                                                 size_t max_plans, int threads,
                                                 const std::string& convolutions) {
  CompileOptions options;
  options.disabled_passes = disabled_passes;
  options.max_plans = max_plans;
  options.threads = threads;
  options.convolutions = conv_choice(convolutions);
  const WithoutGil no_gil;
  return std::make_shared<CompiledVariant>(std::move(module), options, frozen);
}

std::shared_ptr<CompiledVariant> compile_variant_with(std::shared_ptr<GraphModule> module,
                                                      const std::string& compiler, const py::dict& options,
                                                      const py::tuple& examples) {
  CompilerOptions given;
  for (const auto& [name, value] : options) given.emplace(name.cast<std::string>(), to_ivalue(value));
  std::vector<c10::IValue> inputs;
  for (const py::handle example : examples) inputs.push_back(to_ivalue(example));
  const WithoutGil no_gil;
  return std::make_shared<CompiledVariant>(std::move(module), compiler, given, inputs);
}

py::dict to_dict(const StepReport& step) {
  py::dict result;
  result["target"] = step.target;
  result["layer"] = step.layer;
  result["kernel"] = step.kernel;
  result["bytes"] = step.bytes;
  result["operations"] = step.operations;
  return result;
}

/// The plan for these arguments, as plain Python.
py::dict report(const CompiledVariant& variant, const py::tuple& args) {
  const std::vector<c10::IValue> inputs = call_inputs(args.ptr(), variant);
  PlanReport plan;
  {
    const WithoutGil no_gil;
    plan = variant.graph().report(inputs);
  }
  py::list steps;
  for (const StepReport& step : plan.steps) steps.append(to_dict(step));
  py::dict result;
  result["steps"] = steps;
  result["left_to_aten"] = plan.left_to_aten;
  result["interpreted"] = plan.interpreted;
  result["arena_bytes"] = plan.arena_bytes;
  result["threads"] = plan.threads;
  result["log"] = variant.graph().log();
  return result;
}

void bind_builder(py::module_& m) {
  py::class_<Graph, std::shared_ptr<Graph>>(m, "Subgraph", "The body of a cond, while_loop, map or scan.")
      .def("__repr__", [](const Graph& graph) { return print_graph(graph); });
  py::class_<BuilderValue>(m, "GraphValue", "A value of a graph that a GraphBuilder makes.")
      .def_property_readonly("name", [](const BuilderValue& value) { return value.name(); })
      .def("__repr__", [](const BuilderValue& value) { return "%" + value.name(); });
  py::class_<GraphBuilder>(m, "GraphBuilder",
                           "Makes a graph node by node; finish() checks it and gives a GraphModule.")
      .def(py::init<std::string>(), py::arg("name"))
      .def("add_input", &GraphBuilder::add_input, py::arg("spec"), py::arg("kind"), py::arg("target"),
           py::arg("tensor") = py::none())
      .def("append", &GraphBuilder::append, py::arg("target"), py::arg("inputs"), py::arg("outputs"),
           py::arg("layer") = "", py::arg("module_type") = "")
      .def("set_outputs", &GraphBuilder::set_outputs, py::arg("values"), py::arg("kinds"))
      .def("set_range", &GraphBuilder::set_range, py::arg("symbol"), py::arg("min"),
           py::arg("max") = py::none())
      .def("add_guard", &GraphBuilder::add_guard, py::arg("condition"))
      .def("text", &GraphBuilder::text)
      .def("finish", &GraphBuilder::finish)
      .def("subgraph", &GraphBuilder::subgraph);
}

}  // namespace

void bind_graph(py::module_& m) {
  bind_builder(m);
  py::class_<CompiledVariant, std::shared_ptr<CompiledVariant>>(m, "CompiledVariant",
                                                                "A graph compiled with certain weights.")
      .def("report", &report, py::arg("args"),
           "The plan for these arguments: steps, what is left to ATen, and why.")
      .def(
          "text", [](const CompiledVariant& variant) { return print_graph(variant.graph().graph()); },
          "The graph after all passes.")
      .def_property_readonly("plan_count",
                             [](const CompiledVariant& variant) { return variant.graph().plan_count(); })
      .def_property_readonly(
          "nodes", [](const CompiledVariant& variant) { return variant.module().graph().nodes().size(); });
  m.def("compile_variant", &compile_variant, py::arg("module"), py::arg("frozen"), py::kw_only(),
        py::arg("disabled_passes"), py::arg("max_plans"), py::arg("threads"), py::arg("convolutions"));
  m.def("compile_variant_with", &compile_variant_with, py::arg("module"), py::arg("compiler"),
        py::arg("options"), py::arg("examples"));
  py::class_<CompiledCall>(m, "CompiledCall", "What dynamo calls: flat arguments in, a flat tuple out.")
      .def(py::init<py::object, py::object, std::vector<size_t>>(), py::arg("make"), py::arg("eager"),
           py::arg("written"))
      .def("__call__", &CompiledCall::operator())
      .def("add", [](CompiledCall& call, const std::shared_ptr<CompiledVariant>& variant,
                     const py::tuple& args) { call.add(variant, args); })
      .def(
          "variant_for",
          [](CompiledCall& call, const py::tuple& args) -> std::shared_ptr<CompiledVariant> {
            for (const auto& variant : call.variants()) {
              if (variant->fits(args.ptr())) return std::const_pointer_cast<CompiledVariant>(variant);
            }
            return nullptr;
          },
          "The variant that serves these arguments, or None.")
      .def_property_readonly("variant_count", [](const CompiledCall& call) { return call.variants().size(); })
      .def_property_readonly("eager_calls", &CompiledCall::eager_calls);
}

}  // namespace halftone::python
