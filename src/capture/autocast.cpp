#include "capture/autocast.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "graph/operators.h"

namespace halftone {
namespace {

using c10::ScalarType;

/// Operators that autocast runs in low precision on the CPU. Of the others that it knows, two promote to the
/// widest operand and the rest run in float32.
constexpr std::array<std::string_view, 23> kLowPrecision = {"aten::conv1d",
                                                            "aten::conv1d.padding",
                                                            "aten::conv2d",
                                                            "aten::conv2d.padding",
                                                            "aten::conv3d",
                                                            "aten::conv3d.padding",
                                                            "aten::bmm",
                                                            "aten::mm",
                                                            "aten::linalg_vecdot",
                                                            "aten::baddbmm",
                                                            "aten::addmm",
                                                            "aten::_addmm_activation",
                                                            "aten::addbmm",
                                                            "aten::linear",
                                                            "aten::_convolution.deprecated",
                                                            "aten::matmul",
                                                            "aten::conv_tbc",
                                                            "aten::conv_transpose1d",
                                                            "aten::conv_transpose2d.input",
                                                            "aten::conv_transpose3d.input",
                                                            "aten::prelu",
                                                            "aten::scaled_dot_product_attention",
                                                            "aten::_native_multi_head_attention"};
constexpr std::array<std::string_view, 3> kPromote = {"aten::stack", "aten::cat", "aten::index_copy"};

/// Autocast leaves float64 and everything that is not a float alone.
bool is_eligible(const Value& value) {
  return value.type() == ValueType::kTensor && value.meta() && value.meta()->device.is_cpu() &&
         c10::isFloatingType(value.meta()->dtype) && value.meta()->dtype != ScalarType::Double;
}

void collect_values(const Argument& argument, std::vector<Value*>& values) {
  if (Value* value = argument.value()) values.push_back(value);
  if (const auto* list = argument.list()) {
    for (const Argument& item : *list) collect_values(item, values);
  }
}

class Caster {
 public:
  Caster(Graph& graph, ScalarType dtype, const Source& source)
      : graph_(graph), dtype_(dtype), source_(source) {}

  Argument cast(const Argument& argument) {
    if (const auto* list = argument.list()) {
      Argument::List copy;
      for (const Argument& item : *list) copy.push_back(cast(item));
      return copy;
    }
    Value* value = argument.value();
    if (!value || !is_eligible(*value) || value->meta()->dtype == dtype_) return argument;
    TensorMeta meta = *value->meta();
    meta.dtype = dtype_;
    return graph_
        .append("aten::to.dtype", {{"self", value}, {"dtype", dtype_}},
                {{.name = value->name() + "_autocast", .meta = std::move(meta)}}, source_)
        ->output();
  }

 private:
  Graph& graph_;
  ScalarType dtype_;
  const Source& source_;
};

std::optional<ScalarType> target_dtype(std::string_view target, ScalarType region,
                                       const std::vector<Value*>& operands) {
  if (std::find(kLowPrecision.begin(), kLowPrecision.end(), target) != kLowPrecision.end()) return region;
  if (std::find(kPromote.begin(), kPromote.end(), target) == kPromote.end()) return ScalarType::Float;
  for (const Value* value : operands) {
    if (is_eligible(*value) && value->meta()->dtype == ScalarType::Float) return ScalarType::Float;
  }
  return region;
}

}  // namespace

std::string insert_autocast(Graph& graph, ScalarType region, std::string_view target,
                            std::vector<NamedArgument>& inputs, const std::vector<OutputSpec>& outputs,
                            const Source& source) {
  const c10::OperatorHandle* op = try_operator(target);
  if (!op) return {};
  std::vector<Value*> operands;
  for (const NamedArgument& input : inputs) collect_values(input.value, operands);
  const bool known = op->hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU);
  const bool any_eligible =
      std::any_of(operands.begin(), operands.end(), [](Value* v) { return is_eligible(*v); });
  if (!any_eligible) return {};
  std::optional<ScalarType> dtype;
  if (known) {
    dtype = target_dtype(target, region, operands);
    Caster caster(graph, *dtype, source);
    for (NamedArgument& input : inputs) input.value = caster.cast(input.value);
  }
  // The recorded result says whether the rules above are the ones the exporter's torch followed.
  const bool chooses_dtype =
      std::any_of(inputs.begin(), inputs.end(), [](const auto& input) { return input.name == "dtype"; });
  for (const OutputSpec& output : outputs) {
    if (!output.meta || !c10::isFloatingType(output.meta->dtype) || chooses_dtype) continue;
    const bool expected = known ? output.meta->dtype == *dtype
                                : std::any_of(operands.begin(), operands.end(), [&](const Value* value) {
                                    return value->meta() && value->meta()->dtype == output.meta->dtype;
                                  });
    if (!expected) {
      return fmt::format("autocast to {} gives {} in a way that casts around the operator cannot",
                         c10::toString(region), c10::toString(output.meta->dtype));
    }
  }
  return {};
}

}  // namespace halftone
