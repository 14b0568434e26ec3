#include "graph_call.h"

#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>

#include "halftone/base/error.h"
#include "halftone/compile/compilers.h"

namespace halftone::python {
namespace {

const void* memory_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().data() : nullptr;
}

uint32_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : static_cast<uint32_t>(tensor._version());
}

const at::Tensor* try_tensor(PyObject* args, size_t position) {
  PyObject* object = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(position));
  return THPVariable_Check(object) ? &THPVariable_Unpack(object) : nullptr;
}

c10::IValue to_input(PyObject* object, size_t position) {
  if (THPVariable_Check(object)) return THPVariable_Unpack(object);
  if (PyBool_Check(object)) return object == Py_True;
  if (PyLong_Check(object)) return py::handle(object).cast<int64_t>();
  if (PyFloat_Check(object)) return PyFloat_AS_DOUBLE(object);
  if (object == Py_None) return {};
  throw py::type_error("argument " + std::to_string(position) + " of a compiled graph is of type " +
                       Py_TYPE(object)->tp_name + ": it takes tensors, numbers and None");
}

PyObject* to_result(const c10::IValue& value) {
  if (value.isTensor()) return THPVariable_Wrap(value.toTensor());
  if (value.isInt()) return PyLong_FromLongLong(value.toInt());
  if (value.isBool()) return PyBool_FromLong(value.toBool() ? 1 : 0);
  if (value.isDouble()) return PyFloat_FromDouble(value.toDouble());
  return to_python(value).release().ptr();
}

}  // namespace

FrozenTensor::FrozenTensor(const at::Tensor& tensor)
    : tensor_(tensor.getIntrusivePtr()), data_(memory_of(tensor)), version_(version_of(tensor)) {}

bool FrozenTensor::is(const at::Tensor& tensor) const {
  return tensor_._unsafe_get_target() == tensor.unsafeGetTensorImpl();
}

bool FrozenTensor::is_unchanged(const at::Tensor& tensor) const {
  return is(tensor) && memory_of(tensor) == data_ && version_of(tensor) == version_;
}

CompiledVariant::CompiledVariant(std::shared_ptr<GraphModule> module, const CompileOptions& options,
                                 const std::vector<std::pair<size_t, at::Tensor>>& frozen)
    : module_(std::move(module)), graph_(compile(module_, options)) {
  for (const auto& [position, tensor] : frozen) {
    frozen_.emplace_back(position, FrozenTensor(tensor));
    skip_.resize(std::max(skip_.size(), position + 1), false);
    skip_[position] = true;
  }
}

CompiledVariant::CompiledVariant(std::shared_ptr<GraphModule> module, const std::string& compiler,
                                 const CompilerOptions& options, const std::vector<c10::IValue>& examples)
    : module_(std::move(module)), function_(lookup_compiler(compiler)(module_, examples, options)) {}

bool CompiledVariant::fits(PyObject* args) const {
  return std::all_of(frozen_.begin(), frozen_.end(), [args](const auto& entry) {
    const at::Tensor* tensor = try_tensor(args, entry.first);
    return tensor != nullptr && entry.second.is_unchanged(*tensor);
  });
}

bool CompiledVariant::has_same_tensors(PyObject* args) const {
  return std::all_of(frozen_.begin(), frozen_.end(), [args](const auto& entry) {
    const at::Tensor* tensor = try_tensor(args, entry.first);
    return tensor != nullptr && entry.second.is(*tensor);
  });
}

bool CompiledVariant::expired() const {
  return std::any_of(frozen_.begin(), frozen_.end(),
                     [](const auto& entry) { return entry.second.expired(); });
}

std::vector<c10::IValue> CompiledVariant::run(const std::vector<c10::IValue>& inputs) const {
  return graph_ ? graph_->run(inputs) : function_(inputs);
}

const CompiledGraph& CompiledVariant::graph() const {
  if (!graph_) throw Error(ErrorCode::kUnsupported, "only graphs of the compiler \"halftone\" have a report");
  return *graph_;
}

std::vector<c10::IValue> call_inputs(PyObject* args, const CompiledVariant& variant) {
  const auto count = static_cast<size_t>(PyTuple_GET_SIZE(args));
  std::vector<c10::IValue> inputs;
  inputs.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (!variant.is_frozen(i))
      inputs.push_back(to_input(PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i)), i));
  }
  return inputs;
}

CompiledCall::CompiledCall(py::object make, py::object eager, std::vector<size_t> written)
    : make_(std::move(make)), eager_(std::move(eager)), written_(std::move(written)) {}

py::object CompiledCall::operator()(const py::args& args) {
  if (!written_.empty() && shares_written_memory(args.ptr())) {
    ++eager_calls_;
    return eager_(*args);
  }
  std::shared_ptr<const CompiledVariant> variant = find(args.ptr());
  if (!variant) {
    const py::object made = make_(py::cast(this, py::return_value_policy::reference), args);
    if (made.is_none()) {
      ++eager_calls_;
      return eager_(*args);
    }
    variant = made.cast<std::shared_ptr<CompiledVariant>>();
  }
  std::vector<c10::IValue> inputs = call_inputs(args.ptr(), *variant);
  std::vector<c10::IValue> outputs;
  {
    const WithoutGil no_gil;
    outputs = variant->run(inputs);
    inputs.clear();
  }
  py::tuple results(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    PyObject* result = to_result(outputs[i]);
    if (!result) throw py::error_already_set();
    PyTuple_SET_ITEM(results.ptr(), static_cast<Py_ssize_t>(i), result);
  }
  return results;
}

void CompiledCall::add(std::shared_ptr<const CompiledVariant> variant, const py::tuple& args) {
  std::erase_if(variants_,
                [&](const auto& old) { return old->expired() || old->has_same_tensors(args.ptr()); });
  variants_.insert(variants_.begin(), std::move(variant));
}

std::shared_ptr<const CompiledVariant> CompiledCall::find(PyObject* args) {
  for (size_t i = 0; i < variants_.size(); ++i) {
    if (!variants_[i]->fits(args)) continue;
    std::swap(variants_[0], variants_[i]);
    return variants_[0];
  }
  return nullptr;
}

bool CompiledCall::shares_written_memory(PyObject* args) const {
  const auto count = static_cast<size_t>(PyTuple_GET_SIZE(args));
  for (const size_t position : written_) {
    const at::Tensor* written = try_tensor(args, position);
    if (written == nullptr) continue;
    for (size_t i = 0; i < count; ++i) {
      const at::Tensor* other = i == position ? nullptr : try_tensor(args, i);
      if (other != nullptr && other->has_storage() && other->is_alias_of(*written)) return true;
    }
  }
  return false;
}

}  // namespace halftone::python
