// Values between Python and C++. torch's own converter guesses types of containers and gives errors that do not name the
// place; models are called with nested arguments, so the place matters.
#include <c10/core/Device.h>
#include <c10/util/complex.h>
#include <cxxabi.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>
#include <unistd.h>

#include <vector>

#include "bindings.h"
#include "halftone/base/error.h"
#include "halftone/graph/tree.h"

namespace halftone::python {
namespace {

[[noreturn]] void refuse(py::handle value, const std::string& place) {
  const auto type = py::type::of(value).attr("__name__").cast<std::string>();
  throw py::type_error(
      place + " is of type " + type +
      ": a model takes tensors, numbers, strings, None, dtypes and devices, in tuples, lists and dicts "
      "with string keys");
}

/// False: not a leaf.
bool to_leaf(py::handle value, c10::IValue& leaf) {
  PyObject* object = value.ptr();
  if (THPVariable_Check(object)) {
    leaf = THPVariable_Unpack(object);
  } else if (value.is_none()) {
    leaf = c10::IValue();
  } else if (PyBool_Check(object)) {
    leaf = object == Py_True;
  } else if (PyLong_Check(object)) {
    leaf = value.cast<int64_t>();
  } else if (PyFloat_Check(object)) {
    leaf = PyFloat_AS_DOUBLE(object);
  } else if (PyUnicode_Check(object)) {
    leaf = value.cast<std::string>();
  } else if (PyComplex_Check(object)) {
    leaf = c10::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object));
  } else if (THPDtype_Check(object)) {
    leaf = reinterpret_cast<THPDtype*>(object)->scalar_type;
  } else if (THPDevice_Check(object)) {
    leaf = reinterpret_cast<THPDevice*>(object)->device;
  } else {
    return false;
  }
  return true;
}

TreeSpec take_apart(py::handle value, const std::string& place, std::vector<c10::IValue>& leaves, int depth);

TreeSpec take_apart_dict(const py::dict& dict, const std::string& place, std::vector<c10::IValue>& leaves,
                         int depth) {
  TreeSpec spec;
  spec.kind = TreeSpec::Kind::kDict;
  for (const auto& [key, child] : dict) {
    if (!PyUnicode_Check(key.ptr())) {
      throw py::type_error(place + " has the key " + py::repr(key).cast<std::string>() +
                           ": keys must be strings");
    }
    spec.keys.push_back(key.cast<std::string>());
    spec.children.push_back(take_apart(child, place + "['" + spec.keys.back() + "']", leaves, depth));
  }
  return spec;
}

TreeSpec take_apart(py::handle value, const std::string& place, std::vector<c10::IValue>& leaves, int depth) {
  constexpr int kMaxDepth = 64;  // a list that holds itself must be an error and no crash
  if (depth > kMaxDepth) throw py::value_error(place + ": nested more than 64 deep");
  if (c10::IValue leaf; to_leaf(value, leaf)) {
    leaves.push_back(std::move(leaf));
    return TreeSpec::leaf();
  }
  if (PyDict_Check(value.ptr())) {
    return take_apart_dict(py::reinterpret_borrow<py::dict>(value), place, leaves, depth + 1);
  }
  if (!PyTuple_Check(value.ptr()) && !PyList_Check(value.ptr())) refuse(value, place);
  TreeSpec spec;
  spec.kind = PyTuple_Check(value.ptr()) ? TreeSpec::Kind::kTuple : TreeSpec::Kind::kList;
  size_t index = 0;
  for (const py::handle child : py::reinterpret_borrow<py::sequence>(value)) {
    spec.children.push_back(
        take_apart(child, place + "[" + std::to_string(index++) + "]", leaves, depth + 1));
  }
  return spec;
}

template <typename List>
py::list to_list(const List& values) {
  py::list result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = to_python(c10::IValue(values.get(i)));
  return result;
}

py::dict to_dict(const c10::IValue& value) {
  py::dict result;
  for (const auto& entry : value.toGenericDict()) result[to_python(entry.key())] = to_python(entry.value());
  return result;
}

}  // namespace

c10::IValue to_ivalue(py::handle value, const std::string& place) {
  c10::IValue leaf;
  if (to_leaf(value, leaf)) return leaf;
  std::vector<c10::IValue> leaves;
  const TreeSpec spec = take_apart(value, place, leaves, 0);
  return unflatten(spec, leaves);
}

py::object to_python(const c10::IValue& value) {
  if (value.isTensor()) return py::cast(value.toTensor());
  if (value.isNone()) return py::none();
  if (value.isBool()) return py::bool_(value.toBool());
  if (value.isInt()) return py::int_(value.toInt());
  if (value.isDouble()) return py::float_(value.toDouble());
  if (value.isString()) return py::str(value.toStringRef());
  if (value.isComplexDouble()) {
    const auto number = value.toComplexDouble();
    return py::reinterpret_steal<py::object>(PyComplex_FromDoubles(number.real(), number.imag()));
  }
  if (value.isTuple()) return to_python(value.toTupleRef().elements().vec());
  if (value.isList()) return to_list(value.toList());
  if (value.isGenericDict()) return to_dict(value);
  if (value.isDevice()) return py::cast(value.toDevice());
  throw Error(ErrorCode::kUnsupported,
              "a result of type " + value.tagKind() + " has no counterpart in Python");
}

std::vector<c10::IValue> to_ivalues(const py::args& args, const std::string& place) {
  std::vector<c10::IValue> values;
  values.reserve(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    values.emplace_back();
    // The place is only put together where it is needed: tiny models are called in microseconds.
    if (!to_leaf(args[i], values.back()))
      values.back() = to_ivalue(args[i], place + "[" + std::to_string(i) + "]");
  }
  return values;
}

std::map<std::string, c10::IValue> to_ivalues(const py::kwargs& kwargs) {
  std::map<std::string, c10::IValue> values;
  for (const auto& [key, value] : kwargs) {
    const auto name = key.cast<std::string>();
    values.emplace(name, to_ivalue(value, name));
  }
  return values;
}

py::tuple to_python(const std::vector<c10::IValue>& values) {
  py::tuple result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = to_python(values[i]);
  return result;
}

Sample to_sample(py::handle value, const std::string& place) {
  if (PyDict_Check(value.ptr())) return {{}, to_ivalues(py::reinterpret_borrow<py::kwargs>(value))};
  if (PyList_Check(value.ptr())) return to_sample(py::tuple(py::reinterpret_borrow<py::list>(value)), place);
  if (!PyTuple_Check(value.ptr())) return {{to_ivalue(value, place)}, {}};
  const auto tuple = py::reinterpret_borrow<py::tuple>(value);
  if (tuple.size() == 2 && PyTuple_Check(tuple[0].ptr()) && PyDict_Check(tuple[1].ptr())) {
    return {to_ivalues(py::reinterpret_borrow<py::args>(tuple[0]), place + "[0]"),
            to_ivalues(py::reinterpret_borrow<py::kwargs>(tuple[1]))};
  }
  return {to_ivalues(py::reinterpret_borrow<py::args>(value), place), {}};
}

WithoutGil::~WithoutGil() {
  try {
    PyEval_RestoreThread(thread_);
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
}

void refuse_pickle(const char* type, const char* instead) {
  throw Error(ErrorCode::kUnsupported, std::string("a ") + type + " cannot be pickled or copied: " + instead);
}

}  // namespace halftone::python
