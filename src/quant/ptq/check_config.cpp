#include "quant/ptq/check_config.h"

#include <array>

#include "base/errors.h"
#include "quant/ptq/op_names.h"

namespace halftone::ptq {
namespace {

constexpr std::string_view kTorch = "torch.ao.";

/// Where functions of torch.nn.functional take weight and bias. The names are prefixes: "conv" is conv1d to conv3d.
struct Operands {
  std::string_view function;
  int64_t weight, bias;
};
constexpr std::array kOperands = {Operands{"linear", 1, 2},     Operands{"conv", 1, 2},
                                  Operands{"embedding", 1, -1}, Operands{"layer_norm", 2, 3},
                                  Operands{"group_norm", 2, 3}, Operands{"instance_norm", 3, 4},
                                  Operands{"batch_norm", 3, 4}};

const Operands* operands_of(const Pattern& pattern) {
  constexpr std::string_view kFunctional = "torch.nn.functional.";
  for (const PatternNode& node : pattern.nodes()) {
    if (!node.op.starts_with(kFunctional)) continue;
    const std::string_view function = std::string_view(node.op).substr(kFunctional.size());
    for (const Operands& known : kOperands) {
      if (function.starts_with(known.function)) return &known;
    }
  }
  return nullptr;
}

bool is_where_torch_has_it(const Operands* operands, std::string_view type, int64_t index) {
  if (type == "input") return index == 0;
  if (operands == nullptr) return false;
  return index == (type == "weight" ? operands->weight : operands->bias);
}

void check_getter(const std::optional<std::string>& name, std::string_view field, const std::string& place) {
  if (!name || name->starts_with(kTorch)) return;
  fail(
      ErrorCode::kUnsupported,
      "{}.{}: \"{}\" is a name only: what it does is not known here. The root of a pattern is found by going "
      "down the last "
      "operand that is not \"*\", and the others are its extra inputs; leave the getter out if that is right",
      place, field, *name);
}

void check_pattern_config(const BackendPatternConfig& config, const std::string& place) {
  for (const PatternNode& node : config.pattern().nodes()) check_operator_name(node.op, place + ".pattern");
  check_getter(config.root_node_getter(), "root_node_getter", place);
  check_getter(config.extra_inputs_getter(), "extra_inputs_getter", place);
  if (const auto& reference = config.reference_quantized_module();
      reference && !reference->starts_with(kTorch)) {
    fail(ErrorCode::kUnsupported,
         "{}.reference_quantized_module_for_root: \"{}\" is a name only: what it computes is not known here. "
         "The reference "
         "form is always dequantize, the operation in float32, quantize",
         place, *reference);
  }
  const Operands* operands = operands_of(config.pattern());
  for (const auto& [type, index] : config.input_type_to_index()) {
    if (is_where_torch_has_it(operands, type, index)) continue;
    fail(ErrorCode::kUnsupported,
         "{}.input_type_to_index: \"{}\" is not operand {} of {}; operands are found by the operator's "
         "schema, so leave it out",
         place, type, index, config.pattern().to_text());
  }
}

}  // namespace

void check_config(const BackendConfig& config) {
  const std::vector<BackendPatternConfig> configs = config.configs();
  for (size_t i = 0; i < configs.size(); ++i)
    check_pattern_config(configs[i], fmt::format("backend config \"{}\", configs[{}]", config.name(), i));
}

}  // namespace halftone::ptq
