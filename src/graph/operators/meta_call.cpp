#include "graph/operators/meta_call.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_map>

#include "base/checked.h"
#include "base/errors.h"
#include "graph/aten/dtype_text.h"
#include "graph/operators/operand_guards.h"

namespace halftone {
namespace {

using Operands = std::vector<c10::IValue>;
using SizesFunction = at::Tensor (*)(const Operands& operands);

at::Tensor empty_meta(c10::IntArrayRef sizes, const at::Tensor& like) {
  return at::empty(sizes, like.options().device(at::kMeta));
}

void require(bool condition, const char* what) {
  if (!condition) fail(ErrorCode::kInvalidArgument, "{}", what);
}

at::Tensor same_result(const Operands& operands) {
  return at::empty_like(operands.at(0).toTensor());
}

at::Tensor layer_norm_result(const Operands& operands) {
  const at::Tensor& x = operands.at(0).toTensor();
  const std::vector<int64_t> shape = operands.at(1).toIntVector();
  require(!shape.empty() && std::cmp_less_equal(shape.size(), x.dim()) &&
              x.sizes().slice(static_cast<size_t>(x.dim()) - shape.size()) == c10::IntArrayRef(shape),
          "x does not end in the sizes that are normalized over");
  for (const size_t factor : {size_t{2}, size_t{3}}) {
    const c10::IValue& given = operands.at(factor);
    require(!given.isTensor() || !given.toTensor().defined() ||
                given.toTensor().sizes() == c10::IntArrayRef(shape),
            "weight and bias must have the sizes that are normalized over");
  }
  return empty_meta(x.sizes(), x);
}

/// Without data ATen views the input as groups, which strides of channels last forbid; its kernel does not.
at::Tensor group_norm_result(const Operands& operands) {
  const at::Tensor& x = operands.at(0).toTensor();
  const int64_t groups = operands.at(1).toInt();
  require(x.dim() >= 2 && groups > 0 && x.size(1) % groups == 0,
          "the channels of x, its second dimension, must be a multiple of the groups");
  for (const size_t factor : {size_t{2}, size_t{3}}) {
    const c10::IValue& given = operands.at(factor);
    require(
        !given.isTensor() || !given.toTensor().defined() || given.toTensor().sizes() == x.sizes().slice(1, 1),
        "weight and bias must have one number for each channel");
  }
  return at::empty_like(x);
}

at::Tensor embedding_result(const Operands& operands) {
  const at::Tensor &table = operands.at(0).toTensor(), &indices = operands.at(1).toTensor();
  require(table.dim() == 2, "the table must have two dimensions");
  require(indices.scalar_type() == at::kLong || indices.scalar_type() == at::kInt,
          "indices must be int64 or int32");
  std::vector<int64_t> sizes = indices.sizes().vec();
  sizes.push_back(table.size(1));
  return empty_meta(sizes, table);
}

at::Tensor adaptive_result(const Operands& operands) {
  const at::Tensor& x = operands.at(0).toTensor();
  const std::vector<int64_t> wanted = operands.at(1).toIntVector();
  const auto dims = static_cast<int64_t>(wanted.size());
  require(dims >= 1 && (x.dim() == dims + 1 || x.dim() == dims + 2), "x has another number of dimensions");
  std::vector<int64_t> sizes = x.sizes().vec();
  for (int64_t i = 0; i < dims; ++i) {
    int64_t& size = sizes[sizes.size() - static_cast<size_t>(dims - i)];
    require(size > 0 && wanted[static_cast<size_t>(i)] >= 0, "sizes must be positive");
    size = wanted[static_cast<size_t>(i)];
  }
  return empty_meta(sizes, x);
}

at::Tensor max_pool3d_result(const Operands& operands) {
  constexpr int64_t kDims = 3;
  const at::Tensor& x = operands.at(0).toTensor();
  require(x.dim() == kDims + 1 || x.dim() == kDims + 2, "x must have four or five dimensions");
  const auto numbers = [&](size_t at) {
    std::vector<int64_t> values = operands.at(at).toIntVector();
    if (values.size() == 1) values.resize(kDims, values[0]);
    return values;
  };
  const auto kernel = numbers(1), padding = numbers(3), dilation = numbers(4);
  auto stride = numbers(2);
  if (stride.empty()) stride = kernel;
  for (const auto& each : {kernel, stride, padding, dilation}) {
    require(each.size() == kDims, "there must be one number, or one for each dimension");
    require(
        std::all_of(each.begin(), each.end(), [](int64_t number) { return std::in_range<int32_t>(number); }),
        "kernel, stride, padding and dilation must fit 32 bits");
  }
  std::vector<int64_t> sizes = x.sizes().vec();
  for (size_t i = 0; i < kDims; ++i) {
    int64_t& size = sizes[sizes.size() - kDims + i];
    require(
        kernel[i] > 0 && dilation[i] > 0 && stride[i] > 0 && padding[i] >= 0 && padding[i] <= kernel[i] / 2,
        "kernel, stride and dilation must be positive, padding at most half the kernel");
    size = at::native::pooling_output_shape(size, kernel[i], padding[i], stride[i], dilation[i],
                                            operands.at(5).toBool());
    require(size > 0, "the window is larger than x");
  }
  return empty_meta(sizes, x);
}

/// libtorch's kernel reads past the values if there are fewer of them than keys.
at::Tensor attention_result(const Operands& operands) {
  const at::Tensor &q = operands.at(0).toTensor(), &k = operands.at(1).toTensor(),
                   &v = operands.at(2).toTensor();
  require(q.dim() >= 2 && k.dim() == q.dim() && v.dim() == q.dim(),
          "queries, keys and values must have the same dimensions, two at least");
  require(q.size(-1) == k.size(-1), "queries and keys must be of one width");
  require(k.size(-2) == v.size(-2), "there must be as many values as keys");
  const auto batch = [](const at::Tensor& tensor) { return tensor.sizes().slice(0, tensor.dim() - 2); };
  if (const c10::IValue& mask = operands.at(3); !mask.isNone()) {
    require(mask.isTensor() && mask.toTensor().dim() > 0, "the mask must be a tensor with dimensions");
    const c10::ScalarType type = mask.toTensor().scalar_type();
    require(type == at::kBool || type == at::kFloat || type == q.scalar_type(),
            "the mask must be bool, float or of the type of the queries");
  }
  const bool grouped = operands.at(7).toBool();
  TORCH_CHECK_NOT_IMPLEMENTED(grouped || (batch(q) == batch(k) && batch(q) == batch(v)), "broadcast");
  std::vector<int64_t> sizes = q.sizes().vec();
  sizes.back() = v.size(-1);
  return empty_meta(sizes, q);
}

/// Of operators with one tensor as a result (further ones, indices of maxima, have its sizes).
SizesFunction try_sizes_function(const c10::OperatorName& name) {
  static const std::unordered_map<std::string_view, SizesFunction> table = {
      {"aten::scaled_dot_product_attention", attention_result},
      {"aten::relu", same_result},
      {"aten::layer_norm", layer_norm_result},
      {"aten::group_norm", group_norm_result},
      {"aten::embedding", embedding_result},
      {"aten::adaptive_avg_pool1d", adaptive_result},
      {"aten::adaptive_avg_pool2d", adaptive_result},
      {"aten::_adaptive_avg_pool2d", adaptive_result},
      {"aten::adaptive_avg_pool3d", adaptive_result},
      {"aten::_adaptive_avg_pool3d", adaptive_result},
      {"aten::max_pool3d", max_pool3d_result},
      {"aten::max_pool3d_with_indices", max_pool3d_result},
  };
  const auto found = table.find(name.name);
  return found == table.end() || !name.overload_name.empty() ? nullptr : found->second;
}

MetaAnswer computed(SizesFunction function, const c10::OperatorHandle& op, const Operands& operands) {
  MetaAnswer answer{MetaAnswer::Kind::kKnown, {function(operands)}, {}};
  for (size_t i = 1; i < op.schema().returns().size(); ++i) {
    const at::Tensor& first = answer.results[0].toTensor();
    answer.results.emplace_back(at::empty(first.sizes(), first.options().dtype(at::kLong)));
  }
  return answer;
}

/// Whether the call stays on the meta device: there is a tensor, a device, or nothing but numbers.
bool stays_without_data(const Node& node, const Operands& operands) {
  const auto is_data = [](const c10::IValue& operand) {
    return operand.isTensor() || operand.isTensorList() || operand.isDevice() ||
           (operand.isList() && !operand.isIntList() && !operand.isDoubleList() && !operand.isBoolList());
  };
  if (std::any_of(operands.begin(), operands.end(), is_data)) return true;
  return std::all_of(node.outputs().begin(), node.outputs().end(), [](const Value* output) {
    return output->type() != ValueType::kTensor && output->type() != ValueType::kList;
  });
}

/// The meta device in the place of the CPU; false if another one is asked for.
bool move_to_meta(const c10::FunctionSchema& schema, Operands& operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (schema.arguments()[i].name() != "device") continue;
    if (operands[i].isDevice() && !operands[i].toDevice().is_cpu()) return false;
    operands[i] = c10::Device(at::kMeta);
  }
  return true;
}

MetaAnswer refused(std::string reason) {
  return {MetaAnswer::Kind::kRefused, {}, std::move(reason)};
}

/// Some operators look for data, or for the CPU, in code of their own.
MetaAnswer unless_about_meta(std::string message) {
  return message.find("meta") != std::string::npos ? MetaAnswer{} : refused(std::move(message));
}

}  // namespace

bool writes_to_operand(const Node& node) {
  if (node.op() == nullptr) return false;
  const auto& arguments = node.op()->schema().arguments();
  return std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  });
}

MetaAnswer ask_operator(const Node& node, Operands operands) {
  const c10::OperatorHandle& op = *node.op();
  if (has_side_effects(node) && !writes_to_operand(node)) return {};
  try {
    if (const SizesFunction function = try_sizes_function(op.operator_name()))
      return computed(function, op, operands);
    if (!move_to_meta(op.schema(), operands) || !stays_without_data(node, operands)) return {};
    if (const OperandGuard guard = try_size_guard(op)) guard(operands);
    op.callBoxed(operands);
    return {MetaAnswer::Kind::kKnown, std::move(operands), {}};
  } catch (const c10::NotImplementedError&) {
    return {};
  } catch (const c10::Error& error) {
    return unless_about_meta(error.what_without_backtrace());
  } catch (const Error& error) {
    return refused(error.what());
  } catch (const std::exception& error) {
    return unless_about_meta(error.what());  // of meta functions in Python, where this is a Python process
  }
}

size_t machine_memory() {
  static const size_t bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void require_memory_for(const at::Tensor& tensor) {
  // Sizes of zero count as one: kernels multiply the others all the same.
  std::optional<int64_t> all = 1, last = 0;
  for (int64_t i = 0; i < tensor.dim() && all && last; ++i) {
    all = checked_mul(*all, std::max<int64_t>(1, tensor.size(i)));
    const auto reach = checked_mul(std::max<int64_t>(0, tensor.size(i) - 1), tensor.stride(i));
    last = reach ? checked_add(*last, *reach) : std::nullopt;
  }
  const auto element = static_cast<int64_t>(tensor.element_size());
  const auto whole = all ? checked_mul(*all, element) : std::nullopt;
  const auto bytes = last && *last < INT64_MAX ? checked_mul(*last + 1, element) : std::nullopt;
  if (whole && bytes && (tensor.numel() == 0 || std::cmp_less_equal(*bytes, machine_memory()))) return;
  fail(ErrorCode::kInvalidArgument, "a tensor {} [{}] needs more memory than this machine has",
       dtype_text(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
}

}  // namespace halftone
