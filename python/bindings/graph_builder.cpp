#include "graph_builder.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>

#include <array>
#include <utility>

#include "halftone/base/error.h"

namespace halftone::python {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "GraphBuilder: " + message);
}

template <typename Enum, size_t n>
Enum by_name(const std::array<Enum, n>& all, std::string_view name, const char* what) {
  for (const Enum each : all) {
    if (to_string(each) == name) return each;
  }
  refuse(std::string("unknown ") + what + " \"" + std::string(name) + "\"");
}

InputKind input_kind(const std::string& name) {
  return by_name(std::array{InputKind::kUser, InputKind::kParameter, InputKind::kBuffer,
                            InputKind::kNonPersistentBuffer, InputKind::kConstant},
                 name, "kind of input");
}

OutputKind output_kind(const std::string& name) {
  return by_name(std::array{OutputKind::kUser, OutputKind::kBufferMutation, OutputKind::kInputMutation}, name,
                 "kind of output");
}

ValueType value_type(const std::string& name) {
  return by_name(std::array{ValueType::kTensor, ValueType::kInt, ValueType::kFloat, ValueType::kBool,
                            ValueType::kString, ValueType::kList, ValueType::kNone},
                 name, "type of value");
}

SymExpr to_expression(const py::handle& size) {
  if (py::isinstance<py::str>(size)) return SymExpr::parse(size.cast<std::string>());
  return SymExpr(size.cast<int64_t>());
}

std::vector<SymExpr> to_expressions(const py::handle& sizes) {
  std::vector<SymExpr> result;
  for (const py::handle size : py::reinterpret_borrow<py::sequence>(sizes))
    result.push_back(to_expression(size));
  return result;
}

TreeSpec flat_tuple(size_t leaves) {
  TreeSpec spec;
  spec.kind = TreeSpec::Kind::kTuple;
  spec.children.assign(leaves, TreeSpec::leaf());
  return spec;
}

/// Flat arguments in, a flat tuple out: the nesting is the caller's business.
CallSpec flat_call(const Graph& graph) {
  size_t inputs = 0;
  size_t outputs = 0;
  for (const GraphInput& input : graph.inputs()) inputs += input.kind == InputKind::kUser ? 1 : 0;
  for (const GraphOutput& output : graph.outputs()) outputs += output.kind == OutputKind::kUser ? 1 : 0;
  CallSpec call{flat_tuple(inputs), {}, flat_tuple(outputs)};
  call.kwargs.kind = TreeSpec::Kind::kDict;
  return call;
}

/// Constants that Python and torch have types of their own for; nothing for other objects.
std::optional<Argument> try_torch_constant(PyObject* object) {
  if (THPDtype_Check(object)) return Argument(reinterpret_cast<THPDtype*>(object)->scalar_type);
  if (THPLayout_Check(object)) return Argument(reinterpret_cast<THPLayout*>(object)->layout);
  if (THPMemoryFormat_Check(object))
    return Argument(reinterpret_cast<THPMemoryFormat*>(object)->memory_format);
  if (THPDevice_Check(object)) return Argument(reinterpret_cast<THPDevice*>(object)->device);
  return std::nullopt;
}

}  // namespace

const std::string& BuilderValue::name() const {
  if (graph.expired()) refuse("this value's graph is finished");
  return value->name();
}

OutputSpec to_output_spec(const py::handle& tuple) {
  const auto fields = py::reinterpret_borrow<py::sequence>(tuple);
  if (fields.size() != 6) refuse("a value is (name, type, dtype, sizes, strides, expression)");
  OutputSpec spec{.name = fields[0].cast<std::string>(), .type = value_type(fields[1].cast<std::string>())};
  const py::object dtype = fields[2];
  if (!dtype.is_none()) {
    TensorMeta meta{.dtype = dtype.cast<at::ScalarType>(), .sizes = to_expressions(fields[3])};
    const py::object strides = fields[4];
    if (!strides.is_none()) meta.strides = to_expressions(strides);
    spec.meta = std::move(meta);
  }
  const py::object expression = fields[5];
  if (!expression.is_none()) spec.expression = to_expression(expression);
  return spec;
}

Graph& GraphBuilder::graph() const {
  if (!graph_) refuse("\"" + name_ + "\" is finished");
  return *graph_;
}

Argument GraphBuilder::to_argument(const py::handle& object) const {
  PyObject* raw = object.ptr();
  if (object.is_none()) return Argument();
  if (PyBool_Check(raw)) return Argument(raw == Py_True);
  if (PyLong_Check(raw)) return Argument(object.cast<int64_t>());
  if (PyFloat_Check(raw)) return Argument(PyFloat_AS_DOUBLE(raw));
  if (PyUnicode_Check(raw)) return Argument(object.cast<std::string>());
  if (PyComplex_Check(raw))
    return Argument(c10::complex<double>(PyComplex_RealAsDouble(raw), PyComplex_ImagAsDouble(raw)));
  if (PyList_Check(raw) || PyTuple_Check(raw)) {
    Argument::List list;
    for (const py::handle item : py::reinterpret_borrow<py::sequence>(object))
      list.push_back(to_argument(item));
    return Argument(std::move(list));
  }
  if (auto constant = try_torch_constant(raw)) return *std::move(constant);
  if (py::isinstance<BuilderValue>(object)) {
    const auto& held = object.cast<const BuilderValue&>();
    if (held.graph.lock() != graph_) refuse("an operand is a value of another graph");
    return Argument(held.value);
  }
  if (py::isinstance<Graph>(object)) return Argument(object.cast<std::shared_ptr<Graph>>());
  refuse("an operand of type " + py::type::of(object).attr("__name__").cast<std::string>() +
         ": operands are values, numbers, strings, None, dtypes, layouts, memory formats, devices, graphs "
         "and lists");
}

BuilderValue GraphBuilder::add_input(const py::handle& spec, const std::string& kind,
                                     const std::string& target, std::optional<at::Tensor> tensor) {
  const InputKind input = input_kind(kind);
  if ((input == InputKind::kUser) == tensor.has_value())
    refuse("input \"" + target + "\": user inputs have no tensor, all others have one");
  Value* value = graph().add_input(to_output_spec(spec), input, target);
  if (tensor) tensors_.insert_or_assign(target, *std::move(tensor));
  return {value, graph_};
}

std::vector<BuilderValue> GraphBuilder::append(const std::string& target, const py::list& inputs,
                                               const py::list& outputs, const std::string& layer,
                                               const std::string& module_type) {
  std::vector<NamedArgument> operands;
  for (const py::handle input : inputs) {
    const auto pair = py::reinterpret_borrow<py::sequence>(input);
    operands.push_back({pair[0].cast<std::string>(), to_argument(pair[1])});
  }
  std::vector<OutputSpec> specs;
  for (const py::handle output : outputs) specs.push_back(to_output_spec(output));
  const Node* node = graph().append(target, std::move(operands), std::move(specs), {layer, module_type});
  std::vector<BuilderValue> results;
  for (Value* value : node->outputs()) results.push_back({value, graph_});
  return results;
}

void GraphBuilder::set_outputs(const py::list& values,
                               const std::vector<std::pair<std::string, std::string>>& kinds) {
  std::vector<Argument> results;
  for (const py::handle value : values) results.push_back(to_argument(value));
  std::vector<GraphOutput> outputs;
  for (const auto& [kind, target] : kinds) outputs.push_back({output_kind(kind), target});
  if (results.size() != outputs.size()) refuse("set_outputs needs one kind for each value");
  graph().set_outputs(std::move(results), std::move(outputs));
}

void GraphBuilder::set_range(const std::string& symbol, int64_t min, std::optional<int64_t> max) {
  ranges_[symbol] = {min, max.value_or(SymbolRange{}.max)};
}

void GraphBuilder::add_guard(const std::string& condition) {
  guards_.push_back({SymExpr::parse(condition), condition});
}

std::string GraphBuilder::text() const {
  return print_graph(graph());
}

std::shared_ptr<GraphModule> GraphBuilder::finish() {
  lint_or_throw(graph(), name_);
  const CallSpec call = flat_call(graph());
  // A graph is owned by one module, and values may still point at ours.
  auto module = std::make_shared<GraphModule>(graph().clone(), std::move(tensors_), call);
  graph_.reset();
  module->ranges = std::move(ranges_);
  module->guards = std::move(guards_);
  module->name = name_;
  return module;
}

std::shared_ptr<Graph> GraphBuilder::subgraph() {
  lint_or_throw(graph(), name_);
  return std::exchange(graph_, nullptr);
}

}  // namespace halftone::python
