#include "quant/backend_config/names.h"

#include <array>
#include <map>
#include <mutex>
#include <set>

#include "base/errors.h"
#include "base/nearest.h"

namespace halftone {
namespace {

constexpr std::array kPlainModules = {"AdaptiveAvgPool1d",
                                      "AdaptiveAvgPool2d",
                                      "AdaptiveAvgPool3d",
                                      "AdaptiveMaxPool1d",
                                      "AdaptiveMaxPool2d",
                                      "AdaptiveMaxPool3d",
                                      "AvgPool1d",
                                      "AvgPool2d",
                                      "AvgPool3d",
                                      "BatchNorm1d",
                                      "BatchNorm2d",
                                      "BatchNorm3d",
                                      "ConstantPad2d",
                                      "Conv1d",
                                      "Conv2d",
                                      "Conv3d",
                                      "ConvTranspose1d",
                                      "ConvTranspose2d",
                                      "ConvTranspose3d",
                                      "Dropout",
                                      "ELU",
                                      "Embedding",
                                      "EmbeddingBag",
                                      "Flatten",
                                      "GELU",
                                      "GRU",
                                      "GRUCell",
                                      "GroupNorm",
                                      "Hardsigmoid",
                                      "Hardswish",
                                      "Hardtanh",
                                      "Identity",
                                      "InstanceNorm1d",
                                      "InstanceNorm2d",
                                      "InstanceNorm3d",
                                      "LSTM",
                                      "LSTMCell",
                                      "LayerNorm",
                                      "LeakyReLU",
                                      "Linear",
                                      "MaxPool1d",
                                      "MaxPool2d",
                                      "MaxPool3d",
                                      "Mish",
                                      "MultiheadAttention",
                                      "PReLU",
                                      "PixelShuffle",
                                      "PixelUnshuffle",
                                      "RNNCell",
                                      "ReLU",
                                      "ReLU6",
                                      "SiLU",
                                      "Sigmoid",
                                      "Softmax",
                                      "Tanh",
                                      "Upsample",
                                      "ZeroPad2d"};

// torch.ao's fused modules; those with a twin for training with fake quantization first.
constexpr std::array kFusedWithTwin = {"ConvBn1d",     "ConvBn2d",     "ConvBn3d",   "ConvBnReLU1d",
                                       "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d",
                                       "ConvReLU3d",   "LinearBn1d",   "LinearReLU"};
constexpr std::array kFused = {"BNReLU2d",      "BNReLU3d",        "ConvAdd2d",
                               "ConvAddReLU2d", "LinearLeakyReLU", "LinearTanh"};
constexpr std::array kTrainable = {"Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"};
constexpr std::array kReferences = {"Conv1d",
                                    "Conv2d",
                                    "Conv3d",
                                    "ConvTranspose1d",
                                    "ConvTranspose2d",
                                    "ConvTranspose3d",
                                    "Embedding",
                                    "EmbeddingBag",
                                    "GRU",
                                    "GRUCell",
                                    "LSTM",
                                    "LSTMCell",
                                    "Linear",
                                    "RNNCell"};

constexpr std::array kFunctionals = {"adaptive_avg_pool1d",
                                     "adaptive_avg_pool2d",
                                     "adaptive_avg_pool3d",
                                     "avg_pool1d",
                                     "avg_pool2d",
                                     "avg_pool3d",
                                     "batch_norm",
                                     "conv1d",
                                     "conv2d",
                                     "conv3d",
                                     "conv_transpose1d",
                                     "conv_transpose2d",
                                     "conv_transpose3d",
                                     "dropout",
                                     "elu",
                                     "embedding",
                                     "embedding_bag",
                                     "gelu",
                                     "group_norm",
                                     "hardsigmoid",
                                     "hardswish",
                                     "hardtanh",
                                     "hardtanh_",
                                     "instance_norm",
                                     "interpolate",
                                     "layer_norm",
                                     "leaky_relu",
                                     "leaky_relu_",
                                     "linear",
                                     "max_pool1d",
                                     "max_pool2d",
                                     "max_pool3d",
                                     "pad",
                                     "pixel_shuffle",
                                     "pixel_unshuffle",
                                     "relu",
                                     "relu6",
                                     "scaled_dot_product_attention",
                                     "silu",
                                     "softmax"};
constexpr std::array kTorchFunctions = {
    "add",      "bmm",     "cat",   "chunk",   "clamp",   "concat",       "concatenate", "flatten",
    "matmul",   "mean",    "mul",   "narrow",  "permute", "permute_copy", "relu",        "repeat_interleave",
    "sigmoid",  "softmax", "split", "squeeze", "stack",   "sub",          "tanh",        "transpose",
    "unsqueeze"};
constexpr std::array kPythonOperators = {"add",    "floordiv", "iadd", "imul",
                                         "matmul", "mul",      "sub",  "truediv"};
constexpr std::array kMethods = {"add",        "add_",    "chunk",     "clamp",       "contiguous",
                                 "detach",     "detach_", "flatten",   "hardsigmoid", "hardsigmoid_",
                                 "leaky_relu", "matmul",  "mean",      "mul",         "mul_",
                                 "permute",    "relu",    "relu_",     "repeat",      "repeat_interleave",
                                 "reshape",    "resize_", "shape",     "sigmoid",     "sigmoid_",
                                 "size",       "softmax", "split",     "squeeze",     "squeeze_",
                                 "tanh",       "tanh_",   "transpose", "unsqueeze",   "unsqueeze_",
                                 "view"};
constexpr std::array kFusers = {"fuse_conv_bn", "fuse_conv_bn_relu", "fuse_convtranspose_bn",
                                "fuse_linear_bn"};

class Names {
 public:
  Names() {
    add_all(ConfigNameKind::kModule, "torch.nn.", kPlainModules);
    for (const char* place : {"torch.ao.nn.intrinsic.", "torch.ao.nn.intrinsic.qat."})
      add_all(ConfigNameKind::kModule, place, kFusedWithTwin);
    add_all(ConfigNameKind::kModule, "torch.ao.nn.intrinsic.", kFused);
    add_all(ConfigNameKind::kModule, "torch.ao.nn.qat.", kTrainable);
    add_all(ConfigNameKind::kModule, "torch.ao.nn.quantized.reference.", kReferences);
    add_all(ConfigNameKind::kFunction, "torch.nn.functional.", kFunctionals);
    add_all(ConfigNameKind::kFunction, "torch.", kTorchFunctions);
    add_all(ConfigNameKind::kFunction, "operator.", kPythonOperators);
    add_all(ConfigNameKind::kMethod, "Tensor.", kMethods);
    add_all(ConfigNameKind::kFuserMethod, "torch.ao.quantization.", kFusers);
    for (const auto& list : {std::vector<std::string>(kFusedWithTwin.begin(), kFusedWithTwin.end()),
                             std::vector<std::string>(kFused.begin(), kFused.end())}) {
      for (const std::string& name : list)
        names_.emplace("sequential(torch.ao.nn.intrinsic." + name + ")", ConfigNameKind::kFuserMethod);
    }
    add_sums();
  }

  void add(ConfigNameKind kind, std::string name) {
    const std::lock_guard lock(mutex_);
    const auto [place, added] = names_.emplace(std::move(name), kind);
    if (!added && place->second != kind)
      fail(ErrorCode::kInvalidArgument, "\"{}\" is a {} already, and cannot be a {} too", place->first,
           to_string(place->second), to_string(kind));
  }

  std::vector<std::string> all(const std::set<ConfigNameKind>& kinds) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    for (const auto& [name, kind] : names_) {
      if (kinds.contains(kind)) found.push_back(name);
    }
    return found;
  }

  bool has(const std::set<ConfigNameKind>& kinds, std::string_view name) const {
    const std::lock_guard lock(mutex_);
    const auto place = names_.find(name);
    return place != names_.end() && kinds.contains(place->second);
  }

 private:
  template <size_t N>
  void add_all(ConfigNameKind kind, std::string_view place, const std::array<const char*, N>& list) {
    for (const char* name : list) names_.emplace(std::string(place) + name, kind);
  }

  /// What oneDNN's config has for sums of a convolution and something else, on either side.
  void add_sums() {
    const std::string place = "torch.ao.quantization.backend_config.onednn._";
    names_.emplace(place + "fuse_linear_bn_leaky_relu", ConfigNameKind::kFuserMethod);
    for (const std::string chain : {"conv_add", "conv_add_relu", "conv_bn_add", "conv_bn_add_relu"}) {
      for (const std::string side : {"_left", "_right"}) {
        names_.emplace(place + "fuse_" + chain + side, ConfigNameKind::kFuserMethod);
        names_.emplace(place + chain + "_root_node_getter" + side, ConfigNameKind::kRootNodeGetter);
        names_.emplace(place + chain + "_extra_inputs_getter" + side, ConfigNameKind::kExtraInputsGetter);
      }
    }
  }

  mutable std::mutex mutex_;
  std::map<std::string, ConfigNameKind, std::less<>> names_;
};

Names& all_names() {
  static Names names;
  return names;
}

std::string problem_unless(const std::set<ConfigNameKind>& kinds, std::string_view what,
                           std::string_view name) {
  if (all_names().has(kinds, name)) return {};
  return fmt::format("there is no {} \"{}\"{}", what, name, did_you_mean(name, all_names().all(kinds)));
}

}  // namespace

std::string_view to_string(ConfigNameKind kind) {
  switch (kind) {
    case ConfigNameKind::kModule:
      return "module type";
    case ConfigNameKind::kFunction:
      return "function";
    case ConfigNameKind::kMethod:
      return "method";
    case ConfigNameKind::kFuserMethod:
      return "fuser method";
    case ConfigNameKind::kRootNodeGetter:
      return "root-node getter";
    case ConfigNameKind::kExtraInputsGetter:
      return "extra-inputs getter";
  }
  return "?";
}

std::string problem_with_operation(std::string_view name) {
  if (name == kAnything) return {};
  const size_t colons = name.find("::");
  if (colons != std::string_view::npos && colons > 0 && colons + 2 < name.size()) return {};
  return problem_unless({ConfigNameKind::kModule, ConfigNameKind::kFunction, ConfigNameKind::kMethod},
                        "module type, function or method", name);
}

std::string problem_with_name(ConfigNameKind kind, std::string_view name) {
  return problem_unless({kind}, to_string(kind), name);
}

void register_backend_config_name(ConfigNameKind kind, std::string name) {
  if (name.empty()) fail(ErrorCode::kInvalidArgument, "a {} needs a name", to_string(kind));
  all_names().add(kind, std::move(name));
}

std::vector<std::string> backend_config_names(ConfigNameKind kind) {
  return all_names().all({kind});
}

}  // namespace halftone
