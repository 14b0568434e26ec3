// Made-up inputs of given shapes.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include "base/errors.h"
#include "base/nearest.h"
#include "graph/operators/operands.h"
#include "halftone/tune/samples.h"

namespace halftone {
namespace {

using Sizes = std::vector<int64_t>;

constexpr int64_t kMaxElements = int64_t{1} << 34;

std::vector<const GraphInput*> user_inputs_of(const GraphModule& module) {
  std::vector<const GraphInput*> inputs;
  for (const GraphInput& input : module.graph().inputs())
    if (input.kind == InputKind::kUser) inputs.push_back(&input);
  return inputs;
}

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == text.size()) return parts;
    begin = end + 1;
  }
}

[[noreturn]] void refuse_shape(const std::string& text, std::string_view why) {
  fail(ErrorCode::kInvalidArgument, "\"{}\" {}", text, why);
}

Sizes parse_sizes(const std::string& item, std::string_view text) {
  Sizes sizes;
  int64_t elements = 1;
  for (const std::string& part : split_at(text, 'x')) {
    int64_t size = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    if (error != std::errc() || end != part.data() + part.size() || size < 0)
      refuse_shape(item, "is no shape: sizes with x between, as in ids:1x128");
    if (size > 0 && elements > kMaxElements / size) refuse_shape(item, "has too many elements");
    elements *= std::max<int64_t>(size, 1);
    sizes.push_back(size);
  }
  return sizes;
}

std::vector<std::string> tensor_names(const GraphModule& module) {
  std::vector<std::string> names;
  for (const GraphInput* input : user_inputs_of(module))
    if (input->value->type() == ValueType::kTensor && !input->fixed) names.push_back(input->target);
  return names;
}

std::map<std::string, Sizes> parse_shapes(const GraphModule& module, std::string_view text) {
  const std::vector<std::string> names = tensor_names(module);
  std::map<std::string, Sizes> shapes;
  for (const std::string& item : split_at(text, ',')) {
    const size_t colon = item.rfind(':');
    if (colon == std::string::npos && names.size() != 1) refuse_shape(item, "names no input: NAME:AxB");
    const std::string name = colon == std::string::npos ? names.front() : item.substr(0, colon);
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail(ErrorCode::kInvalidArgument, "there is no input \"{}\"{}", name, did_you_mean(name, names));
    const Sizes sizes = parse_sizes(item, item.substr(colon == std::string::npos ? 0 : colon + 1));
    if (!shapes.emplace(name, sizes).second) refuse_shape(item, "is the second shape of this input");
  }
  return shapes;
}

/// What the values are made like.
at::Tensor pattern_of(const GraphModule& module, const GraphInput& input, size_t index) {
  if (index < module.sample_inputs.size() && module.sample_inputs[index].isTensor()) {
    const at::Tensor sample = module.sample_inputs[index].toTensor();
    if (sample.numel() > 0) return sample;
  }
  const auto& meta = input.value->meta();
  const c10::ScalarType dtype = meta ? meta->dtype : at::kFloat;
  if (!c10::isFloatingType(dtype) && !c10::isComplexType(dtype)) return at::arange(2).to(dtype);
  return at::arange(2).mul(2).sub(1).to(dtype);  // mean 0, deviation about 1
}

std::optional<Sizes> declared_sizes(const GraphModule& module, const GraphInput& input, size_t index) {
  if (index < module.sample_inputs.size() && module.sample_inputs[index].isTensor())
    return module.sample_inputs[index].toTensor().sizes().vec();
  const auto& meta = input.value->meta();
  if (!meta) return std::nullopt;
  Sizes sizes;
  for (const SymExpr& size : meta->sizes) {
    if (!size.is_constant()) return std::nullopt;
    sizes.push_back(size.constant());
  }
  return sizes;
}

/// The pattern's elements again and again.
at::Tensor tiled(const at::Tensor& pattern, const Sizes& sizes) {
  int64_t elements = 1;
  for (const int64_t size : sizes) elements *= size;
  if (elements == 0) return at::zeros(sizes, pattern.options());
  const at::Tensor flat = pattern.reshape({-1});
  return flat.repeat({(elements - 1) / flat.numel() + 1}).slice(0, 0, elements).reshape(sizes).clone();
}

}  // namespace

std::optional<c10::IValue> known_input(const GraphModule& module, size_t index) {
  const GraphInput& input = *user_inputs_of(module).at(index);
  if (input.fixed) return constant_to_ivalue(*input.fixed, nullptr);
  if (input.value->type() == ValueType::kNone) return c10::IValue();
  if (input.value->type() == ValueType::kTensor || index >= module.sample_inputs.size()) return std::nullopt;
  return module.sample_inputs[index];
}

std::vector<c10::IValue> inputs_of_shapes(const GraphModule& module, std::string_view shapes, uint64_t seed) {
  const std::map<std::string, Sizes> given = parse_shapes(module, shapes);
  std::vector<c10::IValue> values;
  for (const GraphInput* input : user_inputs_of(module)) {
    const size_t index = values.size();
    if (auto known = known_input(module, index)) {
      values.push_back(*std::move(known));
      continue;
    }
    const auto found = given.find(input->target);
    const auto sizes = found != given.end() ? found->second : declared_sizes(module, *input, index);
    if (input->value->type() != ValueType::kTensor || !sizes)
      fail(ErrorCode::kInvalidArgument, "nothing is known of the size of \"{}\": name it too", input->target);
    values.emplace_back(tiled(pattern_of(module, *input, index), *sizes));
  }
  return flat_inputs(module, synthetic_sample(sample_from_flat(module, values), seed));
}

}  // namespace halftone
