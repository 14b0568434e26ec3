#include "graph/operators/operand_guards.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <limits>
#include <string>
#include <utility>

#include "base/errors.h"

namespace halftone {
namespace {

using torch::jit::Stack;

/// The tensor at that place; nullptr for None and for other values.
const at::Tensor* tensor_in(const Stack& stack, size_t place) {
  if (place >= stack.size() || !stack[place].isTensor()) return nullptr;
  const at::Tensor& tensor = stack[place].toTensor();
  return tensor.defined() ? &tensor : nullptr;
}

void require_operand(bool holds, const char* what) {
  if (!holds) fail(ErrorCode::kInvalidArgument, "{}", what);
}

/// weight, bias and statistics are one number for each channel: operands 1 to `last`.
template <size_t kLast>
void guard_batch_norm(const Stack& stack) {
  const at::Tensor* input = tensor_in(stack, 0);
  require_operand(input != nullptr && input->dim() >= 2,
                  "the input of a batch norm needs two dimensions or more");
  for (size_t place = 1; place <= kLast; ++place) {
    const at::Tensor* channel = tensor_in(stack, place);
    require_operand(
        channel == nullptr || (channel->dim() == 1 && channel->size(0) == input->size(1)),
        "weight, bias and statistics of a batch norm need one number for each channel of the input");
  }
}

void require_dimensions(const Stack& stack) {
  const at::Tensor* input = tensor_in(stack, 0);
  require_operand(input != nullptr, "a Fourier transform needs a tensor");
  for (const int64_t dim : stack.at(1).toIntVector())
    require_operand(dim >= 0 && dim < input->dim(),
                    "a Fourier transform of a dimension that its input does not have");
  const int64_t normalization = stack.at(2).toInt();
  require_operand(normalization >= 0 && normalization <= 2,
                  "a Fourier transform with an unknown normalization");
}

void guard_fft(const Stack& stack) {
  require_dimensions(stack);
}

void guard_fft_c2r(const Stack& stack) {
  require_dimensions(stack);
  const std::vector<int64_t> dims = stack.at(1).toIntVector();
  const int64_t size = stack.at(3).toInt();
  require_operand(dims.empty() || (size >= 1 && size / 2 + 1 == tensor_in(stack, 0)->size(dims.back())),
                  "a Fourier transform to real numbers whose last size does not fit its input");
}

void guard_pdist(const Stack& stack) {
  const at::Tensor* input = tensor_in(stack, 0);
  require_operand(input != nullptr && input->dim() == 2, "pdist needs a matrix");
}

void guard_attention(const Stack& stack) {
  std::array<const at::Tensor*, 3> tensors{};
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = tensor_in(stack, i);
    require_operand(tensors[i] != nullptr && tensors[i]->dim() == 4 && tensors[i]->numel() > 0,
                    "attention needs query, key and value with four dimensions, none of them 0");
  }
  const auto [query, key, value] = tensors;
  require_operand(query->size(0) == key->size(0) && key->size(0) == value->size(0) &&
                      query->size(1) % key->size(1) == 0 && key->size(1) == value->size(1) &&
                      key->size(2) == value->size(2) && query->size(3) == key->size(3) &&
                      key->size(3) == value->size(3),
                  "attention with query, key and value that do not fit each other");
}

/// The least integer by -1 is not a number of its type: the processor traps. Narrower types are divided as
/// wider ones.
void guard_division(const Stack& stack) {
  const at::Tensor* dividend = tensor_in(stack, 0);
  if (dividend == nullptr || (dividend->scalar_type() != at::kLong && dividend->scalar_type() != at::kInt))
    return;
  const at::Tensor* divisor = tensor_in(stack, 1);
  const bool is_integer =
      divisor == nullptr || c10::isIntegralType(divisor->scalar_type(), /*includeBool=*/false);
  const bool minus_one = divisor != nullptr ? is_integer && divisor->eq(-1).any().item<bool>()
                                            : stack.at(1).isInt() && stack.at(1).toInt() == -1;
  if (!minus_one) return;
  const int64_t least = dividend->scalar_type() == at::kLong ? std::numeric_limits<int64_t>::min()
                                                             : std::numeric_limits<int32_t>::min();
  require_operand(!dividend->eq(least).any().item<bool>(), "the least integer is divided by -1");
}

/// The kernel for the first and for the last dimension takes g as one number for each of its indices.
void guard_weight_norm(const Stack& stack) {
  const at::Tensor *v = tensor_in(stack, 0), *g = tensor_in(stack, 1);
  const int64_t dim = stack.size() > 2 && stack[2].isInt() ? stack[2].toInt() : 0;
  require_operand(v != nullptr && g != nullptr && v->dim() > 0 && v->numel() > 0 && v->is_floating_point() &&
                      v->scalar_type() == g->scalar_type(),
                  "weight_norm needs v and g with elements of one floating-point type");
  require_operand(dim >= -1 && dim < v->dim(), "weight_norm of a dimension that v does not have");
  require_operand(dim == -1 || g->numel() == v->size(dim),
                  "weight_norm needs as many numbers in g as v has in that dimension");
}

/// It divides by the number of groups before it looks at it.
void guard_group_norm(const Stack& stack) {
  const at::Tensor* input = tensor_in(stack, 0);
  require_operand(input != nullptr && input->dim() >= 2 && stack.size() >= 7,
                  "the input of a group norm needs two dimensions or more");
  const int64_t batch = stack[3].toInt(), channels = stack[4].toInt(), pixels = stack[5].toInt();
  const int64_t groups = stack[6].toInt();
  require_operand(groups > 0 && batch == input->size(0) && channels == input->size(1) &&
                      channels % groups == 0 && pixels >= 0,
                  "a group norm with groups, batch or channels that are not those of its input");
  require_operand(batch * channels == 0 || input->numel() / (batch * channels) == pixels,
                  "a group norm with another number of elements than its input has");
}

// A list of tensors takes memory and time for each, however small they are.
constexpr int64_t kMaxPieces = int64_t{1} << 20;
constexpr const char* kTooManyPieces = "it gives more than a million tensors";

/// 0 if ATen will refuse the dimension.
int64_t size_along(const Stack& stack, size_t place) {
  const at::Tensor* input = tensor_in(stack, 0);
  if (input == nullptr || place >= stack.size() || !stack[place].isInt()) return 0;
  const int64_t dim = stack[place].toInt(), wrapped = dim < 0 ? dim + input->dim() : dim;
  return wrapped >= 0 && wrapped < input->dim() ? input->size(wrapped) : 0;
}

void guard_unbind(const Stack& stack) {
  require_operand(size_along(stack, 1) <= kMaxPieces, kTooManyPieces);
}

void guard_split(const Stack& stack) {
  const int64_t step = stack.at(1).isInt() ? stack[1].toInt() : 0;
  require_operand(step <= 0 || size_along(stack, 2) / step <= kMaxPieces, kTooManyPieces);
}

void guard_sections(const Stack& stack) {
  require_operand(!stack.at(1).isInt() || stack[1].toInt() <= kMaxPieces, kTooManyPieces);
}

void guard_sections_in_tensor(const Stack& stack) {
  const at::Tensor* sections = tensor_in(stack, 1);
  if (sections == nullptr || sections->is_meta() || sections->dim() != 0 ||
      !c10::isIntegralType(sections->scalar_type(), false))
    return;
  require_operand(sections->item<int64_t>() <= kMaxPieces, kTooManyPieces);
}

void guard_repeats(const Stack& stack) {
  const at::Tensor* repeats = tensor_in(stack, 0);
  require_operand(
      repeats != nullptr && repeats->dim() == 1 && c10::isIntegralType(repeats->scalar_type(), false),
      "repeat_interleave needs a row of integers");
  constexpr int64_t kMax = int64_t{1} << 40;
  const at::Tensor wide = repeats->to(at::kLong);
  require_operand(
      repeats->numel() == 0 || (wide.min().item<int64_t>() >= 0 && wide.max().item<int64_t>() <= kMax &&
                                wide.to(at::kDouble).sum().item<double>() <= static_cast<double>(kMax)),
      "repeat_interleave with repeats that are negative or too many");
}

using Entry = std::pair<std::string_view, OperandGuard>;

template <size_t kCount>
OperandGuard find_guard(const std::array<Entry, kCount>& guards, const c10::OperatorName& wanted) {
  for (const auto& [name, guard] : guards) {
    // "name.overload", without making that text for each node
    if (!name.starts_with(wanted.name)) continue;
    const std::string_view rest = name.substr(wanted.name.size());
    if (rest.empty() ? wanted.overload_name.empty()
                     : rest[0] == '.' && rest.substr(1) == wanted.overload_name)
      return guard;
  }
  return nullptr;
}

}  // namespace

OperandGuard try_operand_guard(const c10::OperatorHandle& op) {
  static constexpr std::array kGuards = {
      Entry{"aten::native_batch_norm", guard_batch_norm<4>},
      Entry{"aten::_native_batch_norm_legit", guard_batch_norm<4>},
      Entry{"aten::_native_batch_norm_legit.no_stats", guard_batch_norm<2>},
      Entry{"aten::_native_batch_norm_legit_functional", guard_batch_norm<4>},
      Entry{"aten::_native_batch_norm_legit_no_training", guard_batch_norm<4>},
      Entry{"aten::_batch_norm_with_update", guard_batch_norm<4>},
      Entry{"aten::_batch_norm_with_update_functional", guard_batch_norm<4>},
      Entry{"aten::_batch_norm_no_update", guard_batch_norm<4>},
      Entry{"aten::_batch_norm_impl_index", guard_batch_norm<4>},
      Entry{"aten::_fft_c2c", guard_fft},
      Entry{"aten::_fft_r2c", guard_fft},
      Entry{"aten::_fft_c2r", guard_fft_c2r},
      Entry{"aten::_pdist_forward", guard_pdist},
      Entry{"aten::_scaled_dot_product_flash_attention_for_cpu", guard_attention},
      Entry{"aten::div.Tensor_mode", guard_division},
      Entry{"aten::div.Scalar_mode", guard_division},
      Entry{"aten::div_.Tensor_mode", guard_division},
      Entry{"aten::div_.Scalar_mode", guard_division},
      Entry{"aten::divide.Tensor_mode", guard_division},
      Entry{"aten::divide.Scalar_mode", guard_division},
      Entry{"aten::divide_.Tensor_mode", guard_division},
      Entry{"aten::divide_.Scalar_mode", guard_division},
      Entry{"aten::floor_divide", guard_division},
      Entry{"aten::floor_divide.Scalar", guard_division},
      Entry{"aten::floor_divide_.Tensor", guard_division},
      Entry{"aten::floor_divide_.Scalar", guard_division},
      Entry{"aten::remainder.Tensor", guard_division},
      Entry{"aten::remainder.Scalar", guard_division},
      Entry{"aten::remainder_.Tensor", guard_division},
      Entry{"aten::remainder_.Scalar", guard_division},
      Entry{"aten::fmod.Tensor", guard_division},
      Entry{"aten::fmod.Scalar", guard_division},
      Entry{"aten::fmod_.Tensor", guard_division},
      Entry{"aten::fmod_.Scalar", guard_division},
      Entry{"aten::repeat_interleave.Tensor", guard_repeats},
      Entry{"aten::_weight_norm", guard_weight_norm},
      Entry{"aten::_weight_norm_interface", guard_weight_norm},
  };
  if (const OperandGuard guard = try_size_guard(op)) return guard;
  return find_guard(kGuards, op.operator_name());
}

OperandGuard try_size_guard(const c10::OperatorHandle& op) {
  static constexpr std::array kGuards = {
      Entry{"aten::native_group_norm", guard_group_norm},
      Entry{"aten::unbind.int", guard_unbind},
      Entry{"aten::unbind_copy.int", guard_unbind},
      Entry{"aten::split.Tensor", guard_split},
      Entry{"aten::split_copy.Tensor", guard_split},
      Entry{"aten::unsafe_split.Tensor", guard_split},
      Entry{"aten::chunk", guard_sections},
      Entry{"aten::unsafe_chunk", guard_sections},
      Entry{"aten::hsplit.int", guard_sections},
      Entry{"aten::vsplit.int", guard_sections},
      Entry{"aten::dsplit.int", guard_sections},
      Entry{"aten::tensor_split.sections", guard_sections},
      Entry{"aten::tensor_split.tensor_indices_or_sections", guard_sections_in_tensor},
  };
  return find_guard(kGuards, op.operator_name());
}

}  // namespace halftone
