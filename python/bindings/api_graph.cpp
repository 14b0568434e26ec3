// GraphModule and Session: opening, calling, reading and saving captured models.
#include "api.h"
#include "halftone/base/error.h"
#include "halftone/capture/capture.h"
#include "halftone/capture/open_model.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/cli/summary.h"
#include "halftone/graph/graph_module.h"
#include "halftone/tune/samples.h"
#include "runner.h"

namespace halftone::python {
namespace {

constexpr const char* kRunner = "_runner";
using Module = std::shared_ptr<GraphModule>;

std::shared_ptr<Runner> runner_of(const py::object& self) {
  const py::dict attributes = self.attr("__dict__");
  if (attributes.contains(kRunner)) return attributes[kRunner].cast<std::shared_ptr<Runner>>();
  auto runner = std::make_shared<Runner>(self.cast<Module>());
  attributes[kRunner] = py::cast(runner);
  return runner;
}

py::object call_module(const py::object& self, const py::args& args, const py::kwargs& kwargs) {
  const std::shared_ptr<Runner> runner = runner_of(self);
  const Sample call{to_ivalues(args), to_ivalues(kwargs)};
  c10::IValue result;
  {
    const WithoutGil no_gil;
    result = (*runner)(call);
  }
  return to_python(result);
}

py::object call_session(Session& session, const py::args& args, const py::kwargs& kwargs) {
  Sample call{to_ivalues(args), to_ivalues(kwargs)};
  c10::IValue result;
  {
    const WithoutGil no_gil;
    result = session(std::move(call.args), std::move(call.kwargs));
  }
  return to_python(result);
}

std::unique_ptr<Session> make_session(const Module& module, const std::string& backend) {
  const WithoutGil no_gil;
  return std::make_unique<Session>(module, executor_of(module, backend));
}

/// Of every input of the user: "mask i64[batch, 64]".
std::vector<std::string> describe_inputs(const GraphModule& module) {
  std::vector<std::string> lines;
  for (const GraphInput& input : module.graph().inputs()) {
    if (input.kind == InputKind::kUser) lines.push_back(input.target + " " + format_shape(*input.value));
  }
  return lines;
}

std::string repr(const GraphModule& module) {
  std::string inputs;
  for (const std::string& input : describe_inputs(module)) inputs += (inputs.empty() ? "" : ", ") + input;
  int64_t bytes = 0;
  const auto tensors = module.tensors();
  for (const auto& [name, tensor] : *tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return "GraphModule(\"" + module.name + "\", inputs: (" + inputs + "), " +
         std::to_string(module.graph().nodes().size()) + " nodes, " + std::to_string(tensors->size()) +
         " tensors of " + std::to_string(bytes) + " bytes)";
}

py::object own_sample(const GraphModule& module) {
  if (module.sample_inputs.empty() && !module.input_names().empty()) return py::none();
  const Sample sample = sample_from_flat(module, module.sample_inputs);
  py::dict kwargs;
  for (const auto& [name, value] : sample.kwargs) kwargs[py::str(name)] = to_python(value);
  return py::make_tuple(to_python(sample.args), kwargs);
}

/// Instead of what the file said: torch.export marks its inputs, and marked ones are saved as Python objects.
void set_sample(GraphModule& module, const py::args& args, const py::kwargs& kwargs) {
  module.sample_inputs = flat_inputs(module, {to_ivalues(args), to_ivalues(kwargs)});
  std::erase_if(module.notes,
                [](const std::string& note) { return note.starts_with("the sample inputs cannot be read"); });
}

void bind_module(py::module_& m) {
  py::class_<GraphModule, Module>(m, "GraphModule", py::dynamic_attr(),
                                  "A captured model: a graph and its tensors.")
      .def("__call__", &call_module)
      .def("session", &make_session, py::arg("backend") = "halftone",
           "A stream of calls with a state of its own. backend: \"halftone\", compiled, or \"eager\", "
           "operator by operator.")
      .def_property_readonly("graph_text",
                             [](const GraphModule& module) { return print_graph(module.graph()); })
      .def_property_readonly("graph_dot", [](const GraphModule& module) { return print_dot(module.graph()); })
      .def_property_readonly("input_names", &GraphModule::input_names)
      .def_property_readonly("inputs", &describe_inputs)
      .def_property_readonly("sample_inputs",
                             [](const GraphModule& module) { return to_python(module.sample_inputs); })
      .def_property_readonly("sample", &own_sample,
                             "The sample inputs as (args, kwargs); None: the model has none.")
      .def("set_sample", &set_sample)
      .def_property_readonly("notes", [](const GraphModule& module) { return module.notes; })
      .def_readwrite("name", &GraphModule::name)
      .def("tensors", [](const GraphModule& module) { return *module.tensors(); })
      .def(
          "set_tensor",
          [](const py::object& self, const std::string& name, const at::Tensor& tensor) {
            self.cast<Module>()->set_tensor(name, tensor);
            forget_runner(self);
          },
          py::arg("name"), py::arg("tensor"))
      .def("clone", &GraphModule::clone)
      .def(
          "save",
          [](const GraphModule& module, const std::string& path, bool packed) {
            const WithoutGil no_gil;
            save_checkpoint(module, path, {.packed = packed});
          },
          py::arg("path"), py::arg("packed") = false)
      .def("__repr__", &repr)
      .def("__reduce_ex__", [](const GraphModule&, int) {
        refuse_pickle("GraphModule",
                      "save(path) writes it, halftone.load(path) reads it; clone() makes a copy");
      });
}

void bind_session(py::module_& m) {
  py::class_<Session>(m, "Session", "A stream of calls to a model, with a state of its own.")
      .def("__call__", &call_session)
      .def("reset", &Session::reset)
      .def_property_readonly("state_names", &Session::state_names)
      .def(
          "state", [](const Session& session, const std::string& name) { return session.state(name); },
          py::arg("name"))
      .def("__repr__", [](const Session& session) { return "Session(" + repr(session.module()) + ")"; })
      .def("__reduce_ex__", [](const Session&, int) { refuse_pickle("Session", "save its module"); });
  py::class_<Runner, std::shared_ptr<Runner>>(m, "_Runner");
}

}  // namespace

void forget_runner(py::handle module) {
  const py::dict attributes = module.attr("__dict__");
  if (attributes.contains(kRunner)) attributes.attr("pop")(kRunner);
}

void bind_graph_module(py::module_& m) {
  bind_session(m);
  bind_module(m);
  const auto options = [](bool map, bool verify) { return OpenOptions{.map = map, .verify = verify}; };
  m.def(
      "open_model",
      [options](const std::string& path, bool map, bool verify) {
        const WithoutGil no_gil;
        return open_model(path, options(map, verify));
      },
      py::arg("path"), py::arg("map") = true, py::arg("verify") = true);
  m.def(
      "load_pt2",
      [options](const std::string& path, bool map, bool verify) {
        const WithoutGil no_gil;
        return load_pt2(path, options(map, verify));
      },
      py::arg("path"), py::arg("map") = true, py::arg("verify") = true);
  m.def(
      "stored_backend",
      [](const std::string& path) -> std::string {
        if (model_file_kind(path) != ModelFileKind::kHt) return {};
        return verify_checkpoint(path, VerifyDepth::kMetadata).backend;
      },
      py::arg("path"), "The type of the backend that a .ht file holds; empty: a graph only, or no .ht.");
  m.def("load_operator_library", &load_operator_library, py::arg("path"));
  m.def(
      "allow_operators", [](const std::string& name) { allow_operators(name); }, py::arg("namespace"));
}

}  // namespace halftone::python
