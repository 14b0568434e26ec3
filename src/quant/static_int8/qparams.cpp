#include "quant/static_int8/qparams.h"

#include <ATen/ops/max.h>

#include <algorithm>
#include <cmath>

#include "quant/static_int8/movement.h"

namespace halftone::static_int8 {
namespace {

Affine affine_of(const Node& node) {
  return {static_cast<float>(try_number(node, "scale").value_or(0)),
          static_cast<int64_t>(try_number(node, "zero_point").value_or(0))};
}

}  // namespace

std::optional<Dequantized> try_dequantized(const Value* value) {
  const Node* node = value != nullptr ? value->producer() : nullptr;
  if (node == nullptr || !node->is("halftone::dequantize_per_tensor")) return std::nullopt;
  return Dequantized{try_tensor(*node, "q"), affine_of(*node)};
}

std::optional<Quantized> try_quantized(const Node& node) {
  if (!node.is("halftone::quantize_per_tensor")) return std::nullopt;
  Quantized quantized;
  quantized.affine = affine_of(node);
  quantized.least = static_cast<int64_t>(try_number(node, "quant_min").value_or(0));
  quantized.largest = static_cast<int64_t>(try_number(node, "quant_max").value_or(0));
  const Argument* dtype = node.try_input("dtype");
  const auto* type = dtype != nullptr ? dtype->get_if<c10::ScalarType>() : nullptr;
  if (type != nullptr) quantized.dtype = *type;
  return quantized;
}

int64_t Quantized::quantize(float x) const {
  const float inverse = 1.0F / affine.scale;
  const float steps = std::nearbyint(x * inverse + static_cast<float>(affine.zero_point));
  if (std::isnan(steps)) return largest;
  return static_cast<int64_t>(std::clamp(steps, static_cast<float>(least), static_cast<float>(largest)));
}

bool is_byte(const Value* value) {
  return value != nullptr && value->meta() && value->meta()->dtype == c10::ScalarType::Byte;
}

int64_t largest_integer(const Value* value, const TensorMap& constants) {
  constexpr int64_t kAll = 255;
  const Node* node = value->producer();
  if (node == nullptr) return kAll;
  if (const auto quantized = try_quantized(*node)) return quantized->largest;
  if (const auto bound = try_number(*node, "out_max")) return static_cast<int64_t>(*bound);
  if (node->is("halftone::int8_lookup")) {
    const at::Tensor table = constant_of(try_tensor(*node, "table"), constants);
    return table.defined() && table.scalar_type() == at::kByte ? table.max().item<int64_t>() : kAll;
  }
  if (!moves_elements(*node) && !node->is("builtin::unpack")) return kAll;
  // The value that a padding adds is a quantized 0.
  int64_t largest = static_cast<int64_t>(try_number(*node, "value").value_or(0));
  for (const Value* input : node->input_values()) {
    if (input->type() == ValueType::kList || is_byte(input))
      largest = std::max(largest, largest_integer(input, constants));
  }
  return largest == 0 ? kAll : largest;
}

std::optional<std::vector<int64_t>> try_extent(const Node& node, std::string_view name, size_t rank,
                                               int64_t otherwise) {
  if (is_absent(node, name)) return std::vector<int64_t>(rank, otherwise);
  auto numbers = try_integers(node, name);
  if (!numbers) return std::nullopt;
  if (numbers->empty()) return std::vector<int64_t>(rank, otherwise);
  if (numbers->size() == 1) return std::vector<int64_t>(rank, numbers->front());
  return numbers->size() == rank ? numbers : std::nullopt;
}

at::Tensor constant_of(const Value* value, const TensorMap& constants) {
  if (value == nullptr || value->producer() != nullptr) return {};
  const GraphInput& input = value->graph().inputs()[value->index()];
  if (input.kind == InputKind::kUser) return {};
  const auto found = constants.find(input.target);
  return found != constants.end() ? found->second : at::Tensor();
}

}  // namespace halftone::static_int8
