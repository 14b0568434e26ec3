#include "autograd/partition/operator_classes.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "autograd/partition/bytes.h"

namespace halftone::partition {
namespace {

using std::string_view;

// Operators by name, without namespace and overload. What carries torch's tag "pointwise" need not stand
// here.
constexpr auto kCheap = std::to_array<string_view>({
    "_grad_sum_to_size",
    "_to_copy",
    "_unsafe_view",
    "all",
    "amax",
    "amin",
    "any",
    "arange",
    "argmax",
    "argmin",
    "broadcast_tensors",
    "clone",
    "contiguous",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "gather",
    "index",
    "max",
    "mean",
    "min",
    "new_empty",
    "new_full",
    "new_ones",
    "new_zeros",
    "ones",
    "ones_like",
    "prod",
    "reshape",
    "reshape_as",
    "scalar_tensor",
    "std",
    "sum",
    "sum_to_size",
    "to",
    "tril",
    "triu",
    "type_as",
    "var",
    "var_mean",
    "zeros",
    "zeros_like",
    "lift_fresh_copy",
});

constexpr auto kComputeIntensive = std::to_array<string_view>({
    "mm",
    "bmm",
    "addmm",
    "baddbmm",
    "matmul",
    "linear",
    "linear_backward",
    "convolution",
    "convolution_backward",
    "_convolution",
    "mkldnn_convolution",
    "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention",
    "_flash_attention_forward",
    "_efficient_attention_forward",
    "upsample_bilinear2d",
    "_scaled_mm",
    "lstm",
    "mkldnn_rnn_layer",
});

// Their schemas say that the result may be a view; often it is a copy.
constexpr auto kSometimesCopies =
    std::to_array<string_view>({"contiguous", "flatten", "reshape", "reshape_as", "to"});

string_view base_name(const Node& node) {
  string_view name = node.target();
  constexpr string_view kSpace = "aten::";
  if (!name.starts_with(kSpace)) return {};
  name.remove_prefix(kSpace.size());
  return name.substr(0, name.find('.'));
}

template <size_t N>
bool contains(const std::array<string_view, N>& names, string_view name) {
  return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

bool draws_random_numbers(const Node& node) {
  return node.op() != nullptr && node.op()->hasTag(at::Tag::nondeterministic_seeded);
}

bool is_element(const Node& node) {
  return node.is("builtin::unpack") || node.is("builtin::getitem");
}

double count_of(const Value* value) {
  const auto count = value != nullptr ? try_element_count(*value) : std::nullopt;
  return static_cast<double>(count.value_or(0));
}

const Value* operand(const Node& node, string_view name) {
  const Argument* given = node.try_input(name);
  return given != nullptr ? given->value() : nullptr;
}

double last_size(const Value* value) {
  if (value == nullptr || !value->meta() || value->meta()->sizes.empty()) return 0;
  return static_cast<double>(value->meta()->sizes.back().as_constant().value_or(0));
}

}  // namespace

const Value* viewed_operand(const Node& node) {
  if (is_element(node)) {
    const Value* list = node.input(0).value();
    return list != nullptr && list->producer() != nullptr ? viewed_operand(*list->producer()) : nullptr;
  }
  if (node.op() == nullptr || contains(kSometimesCopies, base_name(node))) return nullptr;
  // Shares memory although its schema does not say so.
  if (base_name(node) == "_unsafe_view") return node.input(0).value();
  const auto& schema = node.op()->schema();
  if (schema.is_mutable() || schema.returns().size() != 1) return nullptr;
  if (schema.returns()[0].alias_info() == nullptr) return nullptr;
  for (const c10::Argument& expected : schema.arguments()) {
    if (expected.alias_info() != nullptr) return operand(node, expected.name());
  }
  return nullptr;
}

bool is_cheap(const Node& node) {
  if (is_element(node) || node.target().starts_with("sym::")) return true;
  if (node.op() == nullptr || draws_random_numbers(node)) return false;
  return node.op()->hasTag(at::Tag::pointwise) || contains(kCheap, base_name(node)) ||
         viewed_operand(node) != nullptr;
}

bool is_fusible(const Node& node) {
  // What autograd saved in eager mode was detached for that: it is in memory then, and worth keeping.
  if (node.is("aten::detach")) return false;
  return is_cheap(node) || draws_random_numbers(node);
}

bool absorbs_producers(const Node& node) {
  return node.is("aten::cat");
}

bool is_compute_intensive(const Node& node) {
  return contains(kComputeIntensive, base_name(node));
}

bool runs_once(const Node& node) {
  return has_side_effects(node);
}

double estimated_work(const Node& node) {
  double results = 0;
  for (const Value* output : node.outputs()) results += count_of(output);
  if (!is_compute_intensive(node)) {
    for (const Value* input : node.input_values()) results += count_of(input);
    return results;
  }
  const string_view name = base_name(node);
  if (name.find("convolution") != string_view::npos) {
    const Value* weight = operand(node, "weight");
    if (weight == nullptr || !weight->meta() || weight->meta()->sizes.empty()) return results;
    const double channels = static_cast<double>(weight->meta()->sizes.front().as_constant().value_or(1));
    return results * count_of(weight) / std::max(channels, 1.0);
  }
  if (const Value* query = operand(node, "query")) {
    const double keys = count_of(operand(node, "key")) / std::max(last_size(query), 1.0);
    return 2 * count_of(query) * std::max(keys, 1.0);
  }
  // A product: each result takes as many multiplications as the rows of its left operand are long.
  for (const string_view left : {"mat1", "batch1", "self", "input"}) {
    if (const Value* rows = operand(node, left)) return results * std::max(last_size(rows), 1.0);
  }
  return results;
}

}  // namespace halftone::partition
