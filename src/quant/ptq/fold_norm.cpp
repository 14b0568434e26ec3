// Folding of batch norms with torch.ao's order of operations, so that the folded weights are its weights.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros_like.h>

#include "base/errors.h"
#include "graph/rewrite/edit.h"
#include "quant/ptq/constants.h"
#include "quant/ptq/fuse.h"
#include "quant/ptq/op_names.h"

namespace halftone::ptq {
namespace {

bool is_linear(const Node& layer) {
  return layer.is("aten::linear");
}

bool is_transposed(const Node& layer) {
  return base_name(layer.target()).starts_with("aten::conv_transpose");
}

int64_t groups_of(const Node& layer) {
  const Argument* groups = layer.try_input("groups");
  return groups != nullptr ? groups->as_int().value_or(0) : 1;
}

std::optional<double> epsilon_of(const Node& norm) {
  const Argument* eps = norm.try_input("eps");
  const double* number = eps != nullptr ? eps->get_if<double>() : nullptr;
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

int64_t output_channels(const Node& layer, const at::Tensor& weight) {
  return is_transposed(layer) ? weight.size(1) * groups_of(layer) : weight.size(0);
}

/// One factor for each output channel, in the shape that multiplies the weight.
at::Tensor along_outputs(const Node& layer, const at::Tensor& weight, const at::Tensor& factor) {
  if (!is_transposed(layer)) {
    std::vector<int64_t> shape(static_cast<size_t>(weight.dim()), 1);
    shape[0] = -1;
    return factor.reshape(shape);
  }
  // [inputs, outputs / groups, …]: rows of a group have that group's factors.
  const int64_t groups = groups_of(layer), inputs = weight.size(0);
  std::vector<int64_t> shape(static_cast<size_t>(weight.dim()), 1);
  shape[0] = inputs;
  shape[1] = weight.size(1);
  return factor.reshape({groups, 1, -1}).expand({groups, inputs / groups, weight.size(1)}).reshape(shape);
}

struct NormNumbers {
  at::Tensor mean, variance, gamma, beta;
  double eps = 0;
};

/// Undefined mean where something is not constant.
NormNumbers numbers_of(const GraphModule& module, const Node& norm, const std::vector<std::string>& written) {
  NormNumbers numbers;
  const at::Tensor mean = constant_operand(module, norm, "running_mean", written);
  numbers.variance = constant_operand(module, norm, "running_var", written);
  numbers.gamma = constant_operand(module, norm, "weight", written);
  numbers.beta = constant_operand(module, norm, "bias", written);
  const auto eps = epsilon_of(norm);
  const bool unknown = (has_operand(norm, "weight") && !numbers.gamma.defined()) ||
                       (has_operand(norm, "bias") && !numbers.beta.defined());
  if (!mean.defined() || !numbers.variance.defined() || !eps || unknown) return numbers;
  numbers.mean = mean;
  numbers.eps = *eps;
  if (!numbers.gamma.defined()) numbers.gamma = at::ones_like(mean);
  if (!numbers.beta.defined()) numbers.beta = at::zeros_like(mean);
  return numbers;
}

/// In the tensor's own place where this layer alone reads it, so that its name stays.
void set_weight(GraphModule& module, Node& layer, const std::string& operand, const std::string& fallback,
                const at::Tensor& tensor) {
  const Argument* argument = layer.try_input(operand);
  Value* old_value = argument != nullptr ? argument->value() : nullptr;
  const std::string name = name_of_constant(layer, operand);
  if (old_value != nullptr && old_value->users().size() == 1) {
    module.put_tensor(name, tensor);
    return;
  }
  set_operand(layer, operand, add_constant(module, name.empty() ? fallback : name, tensor));
}

}  // namespace

bool can_fold(const GraphModule& module, const Node& layer, const Node& norm,
              const std::vector<std::string>& written) {
  const Argument* training = norm.try_input("training");
  const bool* flag = training != nullptr ? training->get_if<bool>() : nullptr;
  if (!norm.is("aten::batch_norm") || flag == nullptr || *flag) return false;
  const at::Tensor weight = constant_operand(module, layer, "weight", written);
  if (!weight.defined() || weight.scalar_type() != at::kFloat || groups_of(layer) < 1) return false;
  if (has_operand(layer, "bias") && !constant_operand(module, layer, "bias", written).defined()) return false;
  // Batch norm takes dimension 1 for channels, a linear the last one.
  const auto& meta = layer.output()->meta();
  if (is_linear(layer) && (!meta || meta->sizes.size() != 2)) return false;
  const NormNumbers numbers = numbers_of(module, norm, written);
  return numbers.mean.defined() && numbers.mean.numel() == output_channels(layer, weight);
}

void fold_norm(GraphModule& module, Node& layer, Node& norm, const std::vector<std::string>& written) {
  const at::NoGradGuard no_grad;
  const NormNumbers numbers = numbers_of(module, norm, written);
  const at::Tensor weight = constant_operand(module, layer, "weight", written);
  at::Tensor bias = constant_operand(module, layer, "bias", written);
  if (!numbers.mean.defined() || !weight.defined())
    fail(ErrorCode::kInternal, "%{} cannot be folded", norm.output()->name());
  if (!bias.defined()) bias = at::zeros_like(numbers.mean);
  const at::Tensor deviation = at::rsqrt(numbers.variance + numbers.eps), scale = numbers.gamma * deviation;
  const at::Tensor folded_bias = is_linear(layer)
                                     ? (bias - numbers.mean) * scale + numbers.beta
                                     : (bias - numbers.mean) * deviation * numbers.gamma + numbers.beta;
  const std::string base = layer.source().layer.empty() ? layer.output()->name() : layer.source().layer;
  set_weight(module, layer, "weight", base + ".weight", weight * along_outputs(layer, weight, scale));
  set_weight(module, layer, "bias", base + ".bias", folded_bias);
  Graph& graph = module.mutable_graph();
  graph.replace_all_uses(norm.output(), layer.output());
  graph.erase(&norm);
}

}  // namespace halftone::ptq
