#include "graph/checks/schema_check.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>
#include <fmt/format.h>

#include "graph/ir/text_names.h"
#include "graph/operators/operators.h"

namespace halftone {
namespace {

using c10::TypeKind;

bool takes_number_value(ValueType type) {
  return type == ValueType::kInt || type == ValueType::kFloat || type == ValueType::kBool;
}

template <typename... Ts>
bool holds_any(const Argument& argument) {
  return (std::holds_alternative<Ts>(argument.data()) || ...);
}

bool accepts(const c10::Type& type, const Argument& argument, bool broadcasts);

bool accepts_value(const c10::Type& type, ValueType given) {
  switch (type.kind()) {
    case TypeKind::TensorType:
      return given == ValueType::kTensor || takes_number_value(given);
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return given == ValueType::kInt || given == ValueType::kBool;
    case TypeKind::FloatType:
    case TypeKind::SymFloatType:
      return given == ValueType::kFloat || given == ValueType::kInt;
    case TypeKind::NumberType:
      return takes_number_value(given);
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
      return given == ValueType::kBool;
    case TypeKind::StringType:
      return given == ValueType::kString;
    case TypeKind::ListType:
      return given == ValueType::kList;
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType:
    case TypeKind::DeviceObjType:
      return false;
    default:
      return true;  // kinds that graphs do not describe more closely
  }
}

bool accepts_constant(const c10::Type& type, const Argument& given) {
  switch (type.kind()) {
    case TypeKind::TensorType:
      return holds_any<bool, int64_t, double, c10::complex<double>>(given);
    case TypeKind::NumberType:
      return holds_any<bool, int64_t, double, c10::complex<double>>(given);
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return holds_any<bool, int64_t>(given);
    case TypeKind::FloatType:
    case TypeKind::SymFloatType:
      return holds_any<bool, int64_t, double>(given);
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
      return holds_any<bool>(given);
    case TypeKind::ComplexType:
      return holds_any<bool, int64_t, double, c10::complex<double>>(given);
    case TypeKind::StringType:
      return holds_any<std::string>(given);
    case TypeKind::DeviceObjType:
      return holds_any<c10::Device>(given);
    case TypeKind::ScalarTypeType:
      return holds_any<c10::ScalarType, int64_t>(given);
    case TypeKind::LayoutType:
      return holds_any<c10::Layout, int64_t>(given);
    case TypeKind::MemoryFormatType:
      return holds_any<c10::MemoryFormat, int64_t>(given);
    case TypeKind::GeneratorType:
      return false;
    default:
      return true;
  }
}

bool accepts(const c10::Type& type, const Argument& given, bool broadcasts) {
  if (type.kind() == TypeKind::AnyType) return true;
  if (type.kind() == TypeKind::OptionalType) {
    const bool none =
        given.is_none() || (given.value() != nullptr && given.value()->type() == ValueType::kNone);
    return none || accepts(*type.containedType(0), given, broadcasts);
  }
  if (given.is_none()) return type.kind() == TypeKind::NoneType;
  if (holds_any<std::shared_ptr<Graph>>(given)) return false;
  if (type.kind() == TypeKind::ListType) {
    const c10::Type& element = *type.containedType(0);
    if (const auto* list = given.list()) {
      return std::all_of(list->begin(), list->end(),
                         [&](const Argument& item) { return accepts(element, item, false); });
    }
    if (given.value() != nullptr && given.value()->type() == ValueType::kList) return true;
    return broadcasts && accepts(element, given, false);  // int[2] takes 3 for [3, 3]
  }
  if (given.list() != nullptr) return type.kind() == TypeKind::TupleType;
  if (given.value() != nullptr) return accepts_value(type, given.value()->type());
  return accepts_constant(type, given);
}

// Whether an operator that returns `type` may define a value of type `given`.
bool returns(const c10::Type& type, ValueType given) {
  switch (type.kind()) {
    case TypeKind::OptionalType:
      return given == ValueType::kNone || returns(*type.containedType(0), given);
    case TypeKind::TensorType:
      return given == ValueType::kTensor || given == ValueType::kNone;  // None: undefined gradients
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return given == ValueType::kInt;
    case TypeKind::FloatType:
    case TypeKind::SymFloatType:
      return given == ValueType::kFloat;
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
      return given == ValueType::kBool;
    case TypeKind::NumberType:
      return takes_number_value(given);
    case TypeKind::StringType:
      return given == ValueType::kString;
    case TypeKind::ListType:
    case TypeKind::TupleType:
      return given == ValueType::kList;
    default:
      return true;
  }
}

std::vector<std::string> builtin_arity_problems(const NodeShape& shape) {
  std::vector<std::string> problems;
  const Builtin* builtin = try_builtin(shape.target);
  if (builtin == nullptr) return {"is neither an operator nor a built-in"};
  if (shape.inputs.size() < builtin->min_operands || shape.inputs.size() > builtin->max_operands) {
    const std::string range = builtin->min_operands == builtin->max_operands
                                  ? fmt::format("{}", builtin->min_operands)
                                  : fmt::format("{} to {}", builtin->min_operands, builtin->max_operands);
    problems.push_back(fmt::format("takes {} operands, not {}", range, shape.inputs.size()));
  }
  for (const NamedArgument& input : shape.inputs) {
    if (!input.name.empty()) problems.push_back(fmt::format("takes no operand by name (\"{}\")", input.name));
  }
  if (builtin->outputs >= 0 && shape.outputs != static_cast<size_t>(builtin->outputs)) {
    problems.push_back(fmt::format("gives {} outputs, not {}", builtin->outputs, shape.outputs));
  }
  return problems;
}

}  // namespace

std::vector<std::string> arity_problems(const NodeShape& shape) {
  if (shape.op == nullptr) return builtin_arity_problems(shape);
  std::vector<std::string> problems;
  const c10::FunctionSchema& schema = shape.op->schema();
  std::vector<size_t> times(schema.arguments().size(), 0);
  for (const NamedArgument& input : shape.inputs) {
    const auto index = schema.argumentIndexWithName(input.name);
    if (index) {
      ++times[static_cast<size_t>(*index)];
    } else if (!schema.is_vararg()) {
      problems.push_back(input.name.empty() ? "has an operand without a name"
                                            : fmt::format("takes no operand \"{}\"", input.name));
    }
  }
  for (size_t i = 0; i < times.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (times[i] > 1)
      problems.push_back(fmt::format("has operand \"{}\" {} times", argument.name(), times[i]));
    if (times[i] == 0 && !argument.default_value())
      problems.push_back(fmt::format("lacks operand \"{}\"", argument.name()));
  }
  if (!schema.is_varret() && schema.returns().size() != shape.outputs) {
    problems.push_back(fmt::format("gives {} outputs, not {}", schema.returns().size(), shape.outputs));
  }
  return problems;
}

std::vector<std::string> kind_problems(const Node& node) {
  std::vector<std::string> problems;
  if (node.op() == nullptr) return problems;
  const c10::FunctionSchema& schema = node.op()->schema();
  for (const NamedArgument& input : node.inputs()) {
    const auto index = schema.argumentIndexWithName(input.name);
    if (!index) continue;
    const c10::Argument& argument = schema.arguments()[static_cast<size_t>(*index)];
    if (!accepts(*argument.real_type(), input.value, argument.N().has_value())) {
      problems.push_back(fmt::format("operand \"{}\" must be {}, not {}", argument.name(),
                                     argument.real_type()->repr_str(), describe(input.value)));
    }
  }
  for (size_t i = 0; i < std::min(schema.returns().size(), node.outputs().size()); ++i) {
    const Value& output = *node.output(i);
    if (!returns(*schema.returns()[i].type(), output.type())) {
      problems.push_back(fmt::format("output %{} must be {}, not {}", output.name(),
                                     schema.returns()[i].type()->repr_str(), to_string(output.type())));
    }
  }
  return problems;
}

std::string describe(const Argument& argument) {
  struct Describer {
    std::string operator()(Argument::None) const { return "None"; }
    std::string operator()(const Value* value) const {
      return value == nullptr ? "no value" : fmt::format("%{} ({})", value->name(), to_string(value->type()));
    }
    std::string operator()(bool) const { return "a boolean"; }
    std::string operator()(int64_t) const { return "an integer"; }
    std::string operator()(double) const { return "a float"; }
    std::string operator()(const c10::complex<double>&) const { return "a complex number"; }
    std::string operator()(const std::string&) const { return "a string"; }
    std::string operator()(c10::ScalarType) const { return "a dtype"; }
    std::string operator()(c10::Layout) const { return "a layout"; }
    std::string operator()(c10::MemoryFormat) const { return "a memory format"; }
    std::string operator()(const c10::Device&) const { return "a device"; }
    std::string operator()(const std::shared_ptr<Graph>&) const { return "a subgraph"; }
    std::string operator()(const Argument::List&) const { return "such a list"; }
  };
  return std::visit(Describer{}, argument.data());
}

}  // namespace halftone
