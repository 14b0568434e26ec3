// fold_batch_norm: batch norm in inference after a convolution or linear with constant weights whose result
// has no other reader. With s = gamma / sqrt(variance + eps):
//   (x · W + b - mean) · s + beta  =  x · (W · s) + ((b - mean) · s + beta)
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/rsqrt.h>

#include "compiler/passes/alias.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

bool is_inference_norm(const Node& node) {
  if (node.is("aten::_native_batch_norm_legit_no_training")) return true;
  const bool norm = node.is("aten::batch_norm") || node.is("aten::native_batch_norm");
  return norm && try_flag(node, "training") == false;
}

Node* try_layer(const Value* y) {
  Node* node = try_producer(
      y, {"aten::linear", "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::conv1d.padding",
          "aten::conv2d.padding", "aten::conv3d.padding", "aten::convolution", "aten::_convolution",
          "aten::conv_transpose1d", "aten::conv_transpose2d.input", "aten::conv_transpose3d.input"});
  if (node == nullptr) return nullptr;
  if (node->is("aten::linear") && rank(y) != 2) return nullptr;  // batch norm counts dimension 1 as channels
  return node;
}

bool is_transposed(const Node& layer) {
  return layer.target().starts_with("aten::conv_transpose") || try_flag(layer, "transposed").value_or(false);
}

// The factor of each output channel, shaped for the weight: channels come first, or, in a transposed
// convolution, second and once a group.
at::Tensor scaled(const Node& layer, const at::Tensor& weight, const at::Tensor& factor) {
  if (!is_transposed(layer)) {
    std::vector<int64_t> per_channel(static_cast<size_t>(weight.dim()), 1);
    per_channel[0] = -1;
    return (weight * factor.view(per_channel)).to(at::kFloat);
  }
  const auto groups = static_cast<int64_t>(try_number(layer, "groups").value_or(1));
  std::vector<int64_t> split = weight.sizes().vec(), per_channel(split.size() + 1, 1);
  split.insert(split.begin(), groups);
  split[1] /= groups;
  per_channel[0] = groups;
  per_channel[2] = -1;
  return (weight.reshape(split) * factor.view(per_channel)).to(at::kFloat).view(weight.sizes());
}

class Folder {
 public:
  explicit Folder(PassContext& context) : context_(context), constants_(context), aliases_(context.graph) {}

  bool run() {
    size_t folded = 0;
    for (Node* node : snapshot(context_.graph)) {
      if (node->op() != nullptr && is_inference_norm(*node) && try_fold(*node)) ++folded;
    }
    if (folded > 0) context_.note("{}", counted(folded, "batch norm"));
    return folded > 0;
  }

 private:
  at::Tensor constant(const Node& node, std::string_view name) const {
    return constants_.tensor(try_tensor(node, name));
  }
  // Present but not constant.
  bool is_unknown(const Node& node, std::string_view name) const {
    return !is_absent(node, name) && !constant(node, name).defined();
  }

  // Whether each number of the norm belongs to one channel of the layer's result.
  bool fits(const Node& norm, const Node& layer, const at::Tensor& weight) const {
    const bool transposed = is_transposed(layer);
    const auto groups = static_cast<int64_t>(try_number(layer, "groups").value_or(1));
    if (weight.dim() < 2 || groups < 1 || weight.size(0) % groups != 0) return false;
    const std::vector<int64_t> channels = {transposed ? weight.size(1) * groups : weight.size(0)};
    const auto is_for_channels = [&](const at::Tensor& tensor) {
      return !tensor.defined() || tensor.sizes() == c10::IntArrayRef(channels);
    };
    return is_for_channels(constant(norm, "running_mean")) &&
           is_for_channels(constant(norm, "running_var")) && is_for_channels(constant(norm, "weight")) &&
           is_for_channels(constant(norm, "bias")) && is_for_channels(constant(layer, "bias"));
  }

  bool try_fold(Node& norm) {
    for (size_t i = 1; i < norm.outputs().size(); ++i) {
      if (!norm.output(i)->users().empty()) return false;
    }
    const Value* y = try_tensor(norm, "input");
    Node* layer = try_layer(y);
    if (layer == nullptr || only_user(y) != &norm || aliases_.is_written(norm.output())) return false;
    const at::Tensor weight = constant(*layer, "weight"), mean = constant(norm, "running_mean"),
                     variance = constant(norm, "running_var");
    const auto eps = try_number(norm, "eps");
    if (!weight.defined() || !mean.defined() || !variance.defined() || !eps || is_unknown(*layer, "bias") ||
        is_unknown(norm, "weight") || is_unknown(norm, "bias") || weight.scalar_type() != at::kFloat) {
      context_.note("%{} is not folded: a weight is computed or not float32", norm.output()->name());
      return false;
    }
    if (!fits(norm, *layer, weight)) return false;  // eager will say so
    const at::NoGradGuard no_grad;
    at::Tensor factor = at::rsqrt(variance.to(at::kDouble) + *eps);
    if (const at::Tensor gamma = constant(norm, "weight"); gamma.defined()) factor = factor * gamma;
    at::Tensor offset = -mean.to(at::kDouble);
    if (const at::Tensor bias = constant(*layer, "bias"); bias.defined()) offset = offset + bias;
    offset = offset * factor;
    if (const at::Tensor beta = constant(norm, "bias"); beta.defined()) offset = offset + beta;
    replace(norm, *layer, scaled(*layer, weight, factor), offset.to(at::kFloat));
    return true;
  }

  void replace(Node& norm, Node& layer, at::Tensor weight, at::Tensor bias) {
    const std::string name = norm.output()->name();
    Value *new_weight = constants_.add(name + "_weight", std::move(weight)),
          *new_bias = constants_.add(name + "_bias", std::move(bias));
    std::vector<NamedArgument> inputs = layer.inputs();
    bool has_bias = false;
    for (NamedArgument& input : inputs) {
      if (input.name == "weight") input.value = new_weight;
      if (input.name == "bias") {
        input.value = new_bias;
        has_bias = true;
      }
    }
    if (!has_bias) inputs.push_back({"bias", new_bias});
    replace_value(norm.output(), &norm, layer.target(), std::move(inputs), {}, layer.source());
  }

  PassContext& context_;
  Constants constants_;
  AliasSets aliases_;
};

}  // namespace

bool rewrite_fold_batch_norm(PassContext& context) {
  return Folder(context).run();
}

}  // namespace halftone::compiler
