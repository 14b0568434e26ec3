// What operators say of operands that they do not take, with one spelling of dtypes.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "compiler/ops/ops.h"
#include "graph/operators/operators.h"
#include "halftone/base/error.h"

namespace halftone {
namespace {

/// Something of the schema's type; tensors are 4 by 4 and of one dtype.
c10::IValue any_of(const c10::Type& type, c10::ScalarType dtype) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return at::zeros({4, 4}, dtype);
    case c10::TypeKind::OptionalType:
      return any_of(*type.containedType(0), dtype);
    case c10::TypeKind::FloatType:
    case c10::TypeKind::NumberType:
      return 1.0;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return 4;
    case c10::TypeKind::BoolType:
      return false;
    case c10::TypeKind::StringType:
      return "none";
    case c10::TypeKind::ListType:
      if (type.containedType(0)->kind() == c10::TypeKind::TensorType)
        return std::vector<at::Tensor>{at::zeros({4, 4}, dtype)};
      if (type.containedType(0)->kind() == c10::TypeKind::FloatType) return std::vector<double>{1.0};
      return std::vector<int64_t>{1, 1};
    default:
      return {};
  }
}

std::vector<c10::OperatorHandle> own_operators() {
  register_fused_operators();
  std::vector<c10::OperatorHandle> own;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("halftone::")) continue;
    if (const auto op = c10::Dispatcher::singleton().findSchema(name)) own.push_back(*op);
  }
  return own;
}

TEST(Messages, SpellDtypesAsPythonDoes) {
  const std::regex other_spelling(
      R"(\b(Float|Double|Half|BFloat16|Long|Int|Short|Char|Byte|Bool|f32|f64|i64)\b)");
  size_t messages = 0, with_dtype = 0;
  for (const c10::OperatorHandle& op : own_operators()) {
    for (const c10::ScalarType dtype : {at::kDouble, at::kLong, at::kFloat, at::kByte}) {
      torch::jit::Stack stack;
      for (const c10::Argument& argument : op.schema().arguments())
        stack.push_back(any_of(*argument.real_type(), dtype));
      try {
        op.callBoxed(stack);
      } catch (const Error& error) {
        const std::string message = error.what();
        ++messages;
        with_dtype +=
            message.find("float64") != std::string::npos || message.find("int64") != std::string::npos;
        EXPECT_FALSE(std::regex_search(message, other_spelling)) << op.schema().name() << ": " << message;
      } catch (const std::exception&) {
        // ATen's own words.
      }
    }
  }
  EXPECT_GT(messages, 20U);
  EXPECT_GT(with_dtype, 10U);
}

}  // namespace
}  // namespace halftone
