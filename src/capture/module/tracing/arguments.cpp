#include "capture/module/tracing/arguments.h"

#include <ATen/core/jit_type.h>

#include "base/errors.h"

namespace halftone {
namespace {

using c10::TypeKind;

const c10::Type* without_optional(const c10::TypePtr& type) {
  const c10::Type* plain = type.get();
  while (plain && plain->kind() == TypeKind::OptionalType) plain = plain->containedType(0).get();
  return plain;
}

/// Dtypes, layouts and memory formats travel as integers; only the schema tells them apart.
Argument typed_int(int64_t number, const c10::Type* type) {
  switch (type ? type->kind() : TypeKind::IntType) {
    case TypeKind::ScalarTypeType:
      return static_cast<c10::ScalarType>(number);
    case TypeKind::LayoutType:
      return static_cast<c10::Layout>(number);
    case TypeKind::MemoryFormatType:
      return static_cast<c10::MemoryFormat>(number);
    default:
      return number;
  }
}

Argument list_argument(const c10::IValue& value, const c10::Type* type, const TensorLookup& lookup) {
  const c10::TypePtr element =
      type && type->kind() == TypeKind::ListType ? type->containedType(0) : c10::TypePtr();
  Argument::List items;
  const auto list = value.toList();
  for (size_t i = 0; i < list.size(); ++i) items.push_back(to_argument(list.get(i), element, lookup));
  return items;
}

bool is_default(const c10::IValue& value, const c10::IValue& otherwise) {
  if (value.isNone() || otherwise.isNone()) return value.isNone() && otherwise.isNone();
  if (value.isTensor() || value.isTensorList()) return false;
  if (value.isInt() && otherwise.isInt()) return value.toInt() == otherwise.toInt();
  if (value.isBool() && otherwise.isBool()) return value.toBool() == otherwise.toBool();
  if (value.isDouble() && otherwise.isDouble()) return value.toDouble() == otherwise.toDouble();
  if (value.isIntList() && otherwise.isIntList()) return value.toIntVector() == otherwise.toIntVector();
  if (value.isString() && otherwise.isString()) return value.toStringRef() == otherwise.toStringRef();
  return false;
}

}  // namespace

Argument to_argument(const c10::IValue& value, const c10::TypePtr& type, const TensorLookup& lookup) {
  const c10::Type* plain = without_optional(type);
  if (value.isNone()) return {};
  if (value.isTensor()) return value.toTensor().defined() ? lookup(value.toTensor()) : Argument();
  if (value.isBool()) return value.toBool();
  if (value.isInt() || value.isSymInt()) return typed_int(value.toInt(), plain);
  if (value.isDouble() || value.isSymFloat()) return value.toDouble();
  if (value.isComplexDouble()) return value.toComplexDouble();
  if (value.isString()) return value.toStringRef();
  if (value.isDevice()) return value.toDevice();
  if (value.isList()) return list_argument(value, plain, lookup);
  fail(ErrorCode::kUnsupported, "a graph cannot hold an operand of type {}", value.tagKind());
}

std::vector<NamedArgument> to_arguments(const c10::FunctionSchema& schema,
                                        const std::vector<c10::IValue>& values, const TensorLookup& lookup) {
  std::vector<NamedArgument> inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    const c10::Argument& expected = schema.arguments()[i];
    const auto& otherwise = expected.default_value();
    if (otherwise && is_default(values[i], *otherwise)) continue;
    try {
      inputs.push_back({expected.name(), to_argument(values[i], expected.real_type(), lookup)});
    } catch (const Error& error) {
      throw error.with_context(fmt::format("operand \"{}\"", expected.name()));
    }
  }
  return inputs;
}

void for_each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isList()) {
    const auto list = value.toList();
    for (size_t i = 0; i < list.size(); ++i) for_each_tensor(list.get(i), visit);
  }
}

}  // namespace halftone
