// Every operator of the dispatcher, with a quantized tensor in each place that takes a tensor: it does what
// it would do with the dequantized one, or raises the error that names layer, operator and config.
#include <ATen/core/dispatch/Dispatcher.h>

#include <set>

#include "quant/module/dispatch_keys.h"
#include "quant/module/test_support.h"

namespace halftone {
namespace {

using c10::IValue;
using c10::TypeKind;
using torch::jit::Stack;

enum class Place { kNone, kTensor, kList, kOptionalList };

const c10::Type& without_optional(const c10::Type& type) {
  if (type.kind() != TypeKind::OptionalType) return type;
  return *type.expectRef<c10::OptionalType>().getElementType();
}

Place place_of(const c10::Argument& argument) {
  const c10::Type& type = without_optional(*argument.type());
  if (type.kind() == TypeKind::TensorType) return Place::kTensor;
  if (type.kind() != TypeKind::ListType) return Place::kNone;
  const c10::Type& element = *type.expectRef<c10::ListType>().getElementType();
  if (element.kind() == TypeKind::TensorType) return Place::kList;
  return without_optional(element).kind() == TypeKind::TensorType ? Place::kOptionalList : Place::kNone;
}

/// A tensor, alone or with a plain neighbour in a list.
IValue in_place(const at::Tensor& tensor, Place place) {
  if (place == Place::kTensor) return tensor;
  if (place == Place::kList) return c10::List<at::Tensor>({at::ones({4, 4}), tensor});
  c10::List<std::optional<at::Tensor>> list;
  list.push_back(std::nullopt);
  list.push_back(tensor);
  return list;
}

IValue plausible(const c10::Argument& argument) {
  if (argument.default_value().has_value()) return *argument.default_value();
  switch (argument.type()->kind()) {
    case TypeKind::TensorType:
      return at::ones({4, 4});
    case TypeKind::IntType:
    case TypeKind::SymIntType:
    case TypeKind::NumberType:
      return 1;
    case TypeKind::FloatType:
      return 1.0;
    case TypeKind::BoolType:
      return false;
    case TypeKind::StringType:
      return "";
    case TypeKind::ScalarTypeType:
      return at::kFloat;
    case TypeKind::DeviceObjType:
      return c10::Device(c10::kCPU);
    case TypeKind::LayoutType:
      return at::kStrided;
    case TypeKind::ListType: {
      const auto kind = argument.type()->expectRef<c10::ListType>().getElementType()->kind();
      if (kind == TypeKind::IntType || kind == TypeKind::SymIntType) return c10::List<int64_t>({1, 0});
      if (kind == TypeKind::TensorType) return c10::List<at::Tensor>({at::ones({4, 4})});
      return {};
    }
    default:
      return {};  // whatever it is, only kernels look at it, and the operators that have one need no such
                  // thing
  }
}

/// Names like "split_with_sizes" want {1, 0} as sizes that add up: never mind, then both must fail.
struct Outcome {
  bool raised = false;
  bool ours = false;
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  Stack results;
};

Outcome call(const c10::OperatorHandle& op, size_t position, const at::Tensor& tensor) {
  Outcome outcome;
  Stack stack;
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    stack.push_back(i == position ? in_place(tensor, place_of(arguments[i])) : plausible(arguments[i]));
  }
  try {
    op.callBoxed(&stack);
    outcome.results = std::move(stack);
  } catch (const Error& error) {
    outcome = {true, true, error.code(), error.what(), {}};
  } catch (const std::exception& error) {
    outcome = {true, false, ErrorCode::kInternal, error.what(), {}};
  }
  return outcome;
}

bool is_random_or_uninitialised(const std::string& name) {
  return name.find("rand") != std::string::npos || name.find("empty") != std::string::npos;
}

void expect_equal(const IValue& got, const IValue& expected, bool compare_values) {
  ASSERT_EQ(got.tagKind(), expected.tagKind());
  if (got.isList()) {
    ASSERT_EQ(got.toListRef().size(), expected.toListRef().size());
    for (size_t i = 0; i < got.toListRef().size(); ++i) {
      expect_equal(got.toListRef()[i], expected.toListRef()[i], compare_values);
    }
  } else if (got.isTensor()) {
    const at::Tensor& tensor = got.toTensor();
    const at::Tensor plain = is_quantized_tensor(tensor) ? tensor.dequantize() : tensor;
    EXPECT_EQ(tensor.sizes(), expected.toTensor().sizes());
    EXPECT_EQ(tensor.strides(), expected.toTensor().strides());
    EXPECT_EQ(tensor.scalar_type(), expected.toTensor().scalar_type());
    EXPECT_TRUE(tensor.device().is_cpu());
    if (compare_values) {
      EXPECT_TRUE(at::allclose(plain, expected.toTensor(), 1e-5, 1e-5));
    }
  } else {
    EXPECT_EQ(got, expected);
  }
}

void expect_sound(const c10::OperatorHandle& op, size_t position, const at::Tensor& weight) {
  const std::string name = c10::toString(op.operator_name());
  SCOPED_TRACE(name + ", argument " + op.schema().arguments()[position].name());
  const Outcome got = call(op, position, weight);
  if (got.ours && got.code == ErrorCode::kUnsupported) {
    EXPECT_NE(got.message.find("toy.layer is quantized (ToyConfig"), std::string::npos) << got.message;
    // A kernel that several operators share, or that calls another one, names the one that it stands for.
    if (!op.hasKernelForDispatchKey(kWrapperKey)) {
      EXPECT_NE(got.message.find(name + " has no kernel"), std::string::npos) << got.message;
    }
    return;
  }
  ASSERT_TRUE(op.hasKernelForDispatchKey(kWrapperKey)) << "got past the refusal: " << got.message;
  const Outcome expected = call(op, position, weight.dequantize());
  ASSERT_EQ(got.raised, expected.raised) << got.message << expected.message;
  if (got.raised) return;
  ASSERT_EQ(got.results.size(), expected.results.size());
  for (size_t i = 0; i < got.results.size(); ++i) {
    expect_equal(got.results[i], expected.results[i], !is_random_or_uninitialised(name));
  }
}

TEST(QuantizedTensor, EveryOperatorWorksOrRefuses) {
  const at::Tensor weight = toy_tensor(4, 4);
  size_t operators = 0;
  size_t places = 0;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op.has_value()) continue;
    const auto& arguments = op->schema().arguments();
    const size_t before = places;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (place_of(arguments[i]) == Place::kNone) continue;
      expect_sound(*op, i, weight);
      expect_sound(*op, i, weight.t());
      ++places;
    }
    operators += places > before;
  }
  // torch 2.13 has more than three thousand operators that take tensors.
  EXPECT_GT(operators, 2500u);
  EXPECT_GT(places, operators);
  RecordProperty("operators", static_cast<int>(operators));
  RecordProperty("places", static_cast<int>(places));
}

}  // namespace
}  // namespace halftone
