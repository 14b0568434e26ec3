#include "graph/operators/operands.h"

#include <ATen/ScalarOps.h>

#include "base/errors.h"

namespace halftone {
namespace {

c10::TypePtr without_optional(const c10::TypePtr& type) {
  if (type && type->kind() == c10::TypeKind::OptionalType)
    return type->expectRef<c10::OptionalType>().getElementType();
  return type;
}

struct ToIValue {
  c10::IValue operator()(Argument::None) const { return {}; }
  c10::IValue operator()(bool value) const { return value; }
  c10::IValue operator()(int64_t value) const { return value; }
  c10::IValue operator()(double value) const { return value; }
  c10::IValue operator()(const c10::complex<double>& value) const { return value; }
  c10::IValue operator()(const std::string& value) const { return value; }
  c10::IValue operator()(c10::ScalarType value) const { return value; }
  c10::IValue operator()(c10::Layout value) const { return value; }
  c10::IValue operator()(c10::MemoryFormat value) const { return value; }
  c10::IValue operator()(const c10::Device& value) const { return value; }
  template <typename T>
  c10::IValue operator()(const T&) const {
    fail(ErrorCode::kInternal, "a value, list or subgraph stands where a scalar constant was expected");
  }
};

}  // namespace

c10::IValue constant_to_ivalue(const Argument& constant, const c10::TypePtr& type) {
  c10::IValue value = std::visit(ToIValue{}, constant.data());
  if (!type || value.isNone()) return value;
  switch (without_optional(type)->kind()) {
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
      return value.isInt() ? c10::IValue(static_cast<double>(value.toInt())) : value;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      // Some exporters write a flag or a whole number if the schema says int.
      if (value.isBool()) return static_cast<int64_t>(value.toBool());
      if (value.isDouble())
        fail(ErrorCode::kInvalidArgument, "{} where an integer is needed", value.toDouble());
      return value;
    case c10::TypeKind::TensorType:
      // Exports keep `x * 2` as mul.Tensor(x, 2).
      if (!value.isScalar())
        fail(ErrorCode::kInvalidArgument, "a constant {} where a tensor is needed", value.tagKind());
      return number_to_tensor(value);
    default:
      return value;
  }
}

c10::IValue number_to_tensor(const c10::IValue& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number.toScalar());
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

c10::TypePtr element_type(const c10::TypePtr& type) {
  const c10::TypePtr plain = without_optional(type);
  if (!plain || plain->kind() != c10::TypeKind::ListType) return nullptr;
  return plain->expectRef<c10::ListType>().getElementType();
}

c10::IValue list_to_ivalue(std::vector<c10::IValue> items, const c10::TypePtr& type) {
  const c10::TypePtr element = element_type(type);
  if (!element) return c10::ivalue::Tuple::create(std::move(items));
  switch (element->kind()) {
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::IntType: {
      c10::List<int64_t> list;
      list.reserve(items.size());
      for (const auto& item : items) list.push_back(item.toInt());
      return list;
    }
    case c10::TypeKind::TensorType: {
      c10::List<at::Tensor> list;
      list.reserve(items.size());
      for (auto& item : items) list.push_back(std::move(item).toTensor());
      return list;
    }
    case c10::TypeKind::FloatType: {
      c10::List<double> list;
      for (const auto& item : items)
        list.push_back(item.isInt() ? static_cast<double>(item.toInt()) : item.toDouble());
      return list;
    }
    case c10::TypeKind::BoolType: {
      c10::List<bool> list;
      for (const auto& item : items) list.push_back(item.toBool());
      return list;
    }
    default: {
      // Tensor?[], Scalar[], str[] and lists of lists: a list that knows its element type.
      c10::impl::GenericList list(element);
      for (auto& item : items) list.push_back(std::move(item));
      return list;
    }
  }
}

}  // namespace halftone
