#include "capture/autocast.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "graph/aten/dtype_text.h"
#include "graph/operators/operators.h"

namespace halftone {
namespace {

using c10::ScalarType;

/// Operators that autocast runs in low precision on the CPU. Of the others that it knows, three promote to
/// the widest operand and the rest run in float32.
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

/// These promote by themselves, so they need no casts.
constexpr std::array<std::string_view, 2> kSelfPromoting = {"aten::stack", "aten::cat"};

/// Composite operators that autocast does not know but whose parts it does: only recorded dtypes show what
/// they give.
constexpr std::array<std::string_view, 14> kOpaque = {
    "aten::einsum",       "aten::tensordot",        "aten::inner",          "aten::bilinear",
    "aten::chain_matmul", "aten::linalg_multi_dot", "aten::lstm.input",     "aten::lstm.data",
    "aten::gru.input",    "aten::gru.data",         "aten::rnn_tanh.input", "aten::rnn_relu.input",
    "aten::lstm_cell",    "aten::gru_cell"};

template <typename List>
bool contains(const List& list, std::string_view target) {
  return std::find(list.begin(), list.end(), target) != list.end();
}

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
    if (!value || !is_eligible(*value)) return argument;
    // Only of inputs and of our own casts is the dtype certain; elsewhere a cast too many does nothing.
    const bool certain = !value->producer() || value->producer()->is("aten::to.dtype");
    if (certain && value->meta()->dtype == dtype_) return argument;
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

bool any_has_dtype(const std::vector<Value*>& values, ScalarType dtype) {
  return std::any_of(values.begin(), values.end(),
                     [&](const Value* value) { return value->meta() && value->meta()->dtype == dtype; });
}

/// The dtype that autocast casts the operands to; nothing if it leaves them alone.
std::optional<ScalarType> dtype_by_rule(const c10::OperatorHandle& op, std::string_view target,
                                        ScalarType region, const std::vector<Value*>& operands) {
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU) || contains(kSelfPromoting, target))
    return std::nullopt;
  if (contains(kLowPrecision, target)) return region;
  if (target == "aten::index_copy")
    return any_has_dtype(operands, ScalarType::Float) ? ScalarType::Float : region;
  return ScalarType::Float;
}

}  // namespace

std::string insert_autocast(Graph& graph, ScalarType region, std::string_view target,
                            std::vector<NamedArgument>& inputs, std::vector<OutputSpec>& outputs,
                            const Source& source, bool& plain_dtypes) {
  const c10::OperatorHandle* op = try_operator(target);
  if (!op) return {};
  std::vector<Value*> operands;
  for (const NamedArgument& input : inputs) collect_values(input.value, operands);
  if (std::none_of(operands.begin(), operands.end(), [](Value* value) { return is_eligible(*value); }))
    return {};
  const auto dtype = dtype_by_rule(*op, target, region, operands);
  const bool chooses_dtype =
      std::any_of(inputs.begin(), inputs.end(), [](const auto& input) { return input.name == "dtype"; });
  for (OutputSpec& output : outputs) {
    if (!output.meta || !c10::isFloatingType(output.meta->dtype) || chooses_dtype) continue;
    const ScalarType recorded = output.meta->dtype;
    if (dtype ? recorded == *dtype : any_has_dtype(operands, recorded)) continue;
    // Without autocast the result would have an operand's dtype, or float32 where low precision is not
    // accounted for.
    plain_dtypes = plain_dtypes || (dtype && any_has_dtype(operands, recorded));
    if (!plain_dtypes || contains(kOpaque, target)) {
      return fmt::format("autocast to {} gives {} in a way that casts around the operator cannot",
                         dtype_text(region), dtype_text(recorded));
    }
    const bool all_low = std::none_of(operands.begin(), operands.end(), [&](Value* value) {
      return is_eligible(*value) && value->meta()->dtype != region;
    });
    if (dtype || all_low) output.meta->dtype = dtype.value_or(region);
  }
  if (plain_dtypes && contains(kOpaque, target))
    return "the exporter did not record what autocast gives here";
  if (dtype) {
    Caster caster(graph, *dtype, source);
    for (NamedArgument& input : inputs) input.value = caster.cast(input.value);
  }
  return {};
}

}  // namespace halftone
