#include "quant/module/module_layers.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <unordered_set>

#include "base/errors.h"
#include "graph/aten/dtype_text.h"
#include "halftone/quant/qat.h"
#include "halftone/quant/quantized_tensor.h"
#include "quant/select/left_alone.h"

namespace halftone {
namespace {

using torch::nn::Module;

/// The registered handles themselves, which Module keeps for its own classes: named_parameters() gives
/// copies.
struct Registered : Module {
  using Tensors = torch::OrderedDict<std::string, at::Tensor>;
  static Tensors& parameters(Module& module) { return module.*(&Registered::parameters_); }
};

std::string obstacle_of(const at::Tensor& weight) {
  if (is_quantized_tensor(weight)) return {};
  if (is_fake_quantized(weight))
    return "it is prepared for quantization-aware training: convert_qat() quantizes it";
  if (weight.dim() != 2) return fmt::format("its weight has {} dimensions, not two", weight.dim());
  if (!weight.is_floating_point())
    return fmt::format("its weight is of type {}", dtype_text(weight.scalar_type()));
  if (weight.layout() != c10::kStrided || !weight.device().is_cpu())
    return "its weight is no dense tensor on the CPU";
  if (weight.numel() == 0) return "it has no weights";
  if (!weight.is_leaf()) return "its weight is computed from other tensors that require gradients";
  return {};
}

/// What a module of torch is called among the layers that were left alone.
std::string family_of(const Module& module) {
  const std::string name = module.name();
  constexpr std::pair<std::string_view, std::string_view> kFamilies[] = {
      {"torch::nn::Conv", "convolution"},
      {"torch::nn::LSTM", "LSTM"},
      {"torch::nn::GRU", "GRU"},
      {"torch::nn::RNN", "RNN"},
      {"torch::nn::EmbeddingBag", "embedding bag"}};
  for (const auto& [prefix, family] : kFamilies) {
    if (name.starts_with(prefix)) return std::string(family);
  }
  return std::string(kOtherWeight);
}

class Finder {
 public:
  ModuleLayers found;

  void visit(Module& module, const std::string& name) {
    if (!seen_.insert(&module).second) return;
    of_layers_.clear();
    if (auto* linear = dynamic_cast<torch::nn::LinearImpl*>(&module)) {
      add(module, name, "weight", "linear", linear->weight);
    } else if (auto* attention = dynamic_cast<torch::nn::MultiheadAttentionImpl*>(&module)) {
      add_attention(*attention, name);
    } else if (auto* embedding = dynamic_cast<torch::nn::EmbeddingImpl*>(&module)) {
      add(module, name, "weight", "embedding", embedding->weight);
      if (embedding->options.max_norm() && embedding->weight.defined()) {
        found.layers.back().obstacle = "max_norm rescales its rows in every call";
      }
    }
    add_others(module, name);
    for (const auto& child : module.named_children()) {
      if (child.value()) visit(*child.value(), name.empty() ? child.key() : name + "." + child.key());
    }
  }

 private:
  void add(Module& module, const std::string& layer, const std::string& parameter, std::string kind,
           at::Tensor& used) {
    at::Tensor* entry = Registered::parameters(module).find(parameter);
    of_layers_.insert(parameter);
    if (!used.defined()) return;  // MultiheadAttention: either one weight for all projections or three
    found.tensors.push_back(used);
    // A lone linear has no name of its own.
    LayerInfo info{layer.empty() ? parameter : layer, std::move(kind), 0, 0};
    if (used.dim() == 2) info.n = used.size(0), info.k = used.size(1);
    const std::string family = info.kind;
    found.layers.push_back(
        {std::move(info), obstacle_of(used), &used, entry, family, &used, &module, parameter});
  }

  void add_attention(torch::nn::MultiheadAttentionImpl& module, const std::string& name) {
    const std::string prefix = name.empty() ? "" : name + ".";
    const std::pair<const char*, at::Tensor*> weights[] = {{"in_proj_weight", &module.in_proj_weight},
                                                           {"q_proj_weight", &module.q_proj_weight},
                                                           {"k_proj_weight", &module.k_proj_weight},
                                                           {"v_proj_weight", &module.v_proj_weight}};
    for (const auto& [parameter, weight] : weights)
      add(module, prefix + parameter, parameter, "linear", *weight);
  }

  /// Tensors that no known layer uses: those with two and more dimensions are listed, so that they are not
  /// taken for quantized.
  void add_others(Module& module, const std::string& name) {
    for (auto& item : Registered::parameters(module)) {
      at::Tensor& tensor = item.value();
      if (!tensor.defined()) continue;
      found.tensors.push_back(tensor);
      if (tensor.dim() < 2 || of_layers_.count(item.key())) continue;
      LayerInfo info{name.empty() ? item.key() : name + "." + item.key(), "parameter", tensor.size(0), 0};
      info.k = info.n ? tensor.numel() / info.n : 0;
      found.layers.push_back(
          {std::move(info),
           fmt::format("{} uses it in its own way, not as the weight of a linear", module.name()), nullptr,
           &tensor, family_of(module),
           family_of(module) == kOtherWeight ? static_cast<void*>(&tensor) : &module});
    }
    for (auto& item : module.named_buffers(/*recurse=*/false)) {
      if (item.value().defined()) found.tensors.push_back(item.value());
    }
  }

  std::unordered_set<const Module*> seen_;
  std::unordered_set<std::string> of_layers_;  ///< parameters of the module at hand that are layers' weights
};

}  // namespace

ModuleLayers find_module_layers(Module& module) {
  Finder finder;
  finder.visit(module, "");
  return std::move(finder.found);
}

int64_t tensor_bytes(const at::Tensor& tensor) {
  if (is_quantized_tensor(tensor)) return quantized_weight_of(tensor).bytes();
  return static_cast<int64_t>(tensor.nbytes());
}

int64_t total_bytes(const std::vector<at::Tensor>& tensors) {
  std::unordered_set<const void*> seen;
  int64_t sum = 0;
  for (const at::Tensor& tensor : tensors) {
    if (seen.insert(tensor.unsafeGetTensorImpl()).second) sum += tensor_bytes(tensor);
  }
  return sum;
}

}  // namespace halftone
