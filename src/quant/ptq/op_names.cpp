#include "quant/ptq/op_names.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/errors.h"
#include "base/nearest.h"

namespace halftone::ptq {
namespace {

using NameLists = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Functions (F is torch.nn.functional, T is torch, O is operator) and methods (M) by operator.
const NameLists& functions_by_operator() {
  static const NameLists lists = [] {
    const std::vector<std::pair<std::string, std::string>> short_lists = {
        {"add", "O.add T.add O.iadd M.add M.add_"},
        {"sub", "O.sub T.sub"},
        {"mul", "O.mul T.mul O.imul M.mul M.mul_"},
        {"div", "O.truediv"},
        {"floor_divide", "O.floordiv"},
        {"matmul", "T.matmul O.matmul M.matmul"},
        {"bmm", "T.bmm"},
        {"cat", "T.cat T.concat T.concatenate"},
        {"stack", "T.stack"},
        {"relu", "F.relu T.relu M.relu M.relu_"},
        {"hardtanh", "F.hardtanh F.hardtanh_"},
        {"leaky_relu", "F.leaky_relu F.leaky_relu_ M.leaky_relu"},
        {"hardsigmoid", "F.hardsigmoid M.hardsigmoid M.hardsigmoid_"},
        {"sigmoid", "T.sigmoid M.sigmoid M.sigmoid_"},
        {"tanh", "T.tanh M.tanh M.tanh_"},
        {"softmax", "F.softmax T.softmax M.softmax"},
        {"clamp", "T.clamp M.clamp"},
        {"mean", "T.mean M.mean"},
        {"flatten", "T.flatten M.flatten"},
        {"narrow", "T.narrow"},
        {"permute", "M.permute T.permute"},
        {"permute_copy", "T.permute_copy"},
        {"transpose", "T.transpose M.transpose"},
        {"squeeze", "T.squeeze M.squeeze M.squeeze_"},
        {"unsqueeze", "T.unsqueeze M.unsqueeze M.unsqueeze_"},
        {"view", "M.view"},
        {"reshape", "M.reshape"},
        {"contiguous", "M.contiguous"},
        {"detach", "M.detach M.detach_"},
        {"repeat", "M.repeat"},
        {"repeat_interleave", "T.repeat_interleave M.repeat_interleave"},
        {"resize", "M.resize_"},
        {"chunk", "T.chunk M.chunk"},
        {"split", "T.split M.split"}};
    const std::map<char, std::string> places = {
        {'F', "torch.nn.functional"}, {'T', "torch"}, {'O', "operator"}, {'M', "Tensor"}};
    NameLists made;
    for (const auto& [op, text] : short_lists) {
      auto& list = made["aten::" + op];
      for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(' ', at), text.size());
        list.push_back(places.at(text[at]) + text.substr(at + 1, end - at - 1));
        at = end + 1;
      }
    }
    // Functionals that have the operator's name.
    for (const char* name : {"conv1d",
                             "conv2d",
                             "conv3d",
                             "conv_transpose1d",
                             "linear",
                             "batch_norm",
                             "layer_norm",
                             "group_norm",
                             "instance_norm",
                             "hardswish",
                             "relu6",
                             "elu",
                             "gelu",
                             "silu",
                             "dropout",
                             "embedding",
                             "embedding_bag",
                             "pad",
                             "pixel_shuffle",
                             "pixel_unshuffle",
                             "adaptive_avg_pool1d",
                             "adaptive_avg_pool2d",
                             "adaptive_avg_pool3d",
                             "avg_pool1d",
                             "avg_pool2d",
                             "avg_pool3d",
                             "max_pool1d",
                             "max_pool2d",
                             "max_pool3d",
                             "conv_transpose2d",
                             "conv_transpose3d",
                             "scaled_dot_product_attention"})
      made[std::string("aten::") + name] = {std::string("torch.nn.functional.") + name};
    for (const char* mode : {"nearest1d", "nearest2d", "nearest3d", "_nearest_exact1d", "_nearest_exact2d",
                             "_nearest_exact3d", "linear1d", "bilinear2d", "trilinear3d", "bicubic2d"}) {
      const bool exact = mode[0] == '_';
      made[exact ? "aten::_upsample" + std::string(mode) : "aten::upsample_" + std::string(mode)] = {
          "torch.nn.functional.interpolate"};
    }
    return made;
  }();
  return lists;
}

/// The operator that a module of torch.nn is known for, where it is not the name in small letters.
const std::map<std::string, std::string, std::less<>>& operators_by_module() {
  static const std::map<std::string, std::string, std::less<>> list = {
      {"BatchNorm1d", "batch_norm"},
      {"BatchNorm2d", "batch_norm"},
      {"BatchNorm3d", "batch_norm"},
      {"ConstantPad2d", "pad"},
      {"ConvTranspose1d", "conv_transpose1d"},
      {"ConvTranspose2d", "conv_transpose2d"},
      {"ConvTranspose3d", "conv_transpose3d"},
      {"AdaptiveAvgPool1d", "adaptive_avg_pool1d"},
      {"AdaptiveAvgPool2d", "adaptive_avg_pool2d"},
      {"AdaptiveAvgPool3d", "adaptive_avg_pool3d"},
      {"AvgPool1d", "avg_pool1d"},
      {"AvgPool2d", "avg_pool2d"},
      {"AvgPool3d", "avg_pool3d"},
      {"EmbeddingBag", "embedding_bag"},
      {"GroupNorm", "group_norm"},
      {"InstanceNorm1d", "instance_norm"},
      {"InstanceNorm2d", "instance_norm"},
      {"InstanceNorm3d", "instance_norm"},
      {"LayerNorm", "layer_norm"},
      {"LeakyReLU", "leaky_relu"},
      {"MaxPool1d", "max_pool1d"},
      {"MaxPool2d", "max_pool2d"},
      {"MaxPool3d", "max_pool3d"},
      {"PixelShuffle", "pixel_shuffle"},
      {"PixelUnshuffle", "pixel_unshuffle"},
      {"RNNCell", "rnn_tanh_cell"},
      {"LSTMCell", "lstm_cell"},
      {"GRUCell", "gru_cell"},
      {"ReLU6", "hardtanh"},
      {"ZeroPad2d", "pad"}};
  return list;
}

constexpr std::string_view kTorchModules = "torch.nn.", kCppModules = "torch::nn::";

bool is_own_operator(std::string_view public_name, std::string_view base) {
  const std::string name(public_name.substr(kTorchModules.size()));
  const auto known = operators_by_module().find(name);
  std::string expected = known != operators_by_module().end() ? known->second : name;
  std::transform(expected.begin(), expected.end(), expected.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return base == "aten::" + expected || (name == "ReLU6" && base == "aten::relu6");
}

/// C++ modules have no hooks: what reads no parameter is put into a layer nearby, and may be no part of it.
bool is_inside_leaf(const Node& node) {
  const std::string& type = node.source().module_type;
  return !type.starts_with(kCppModules) && is_leaf_type(public_type_name(type));
}

}  // namespace

std::string_view base_name(std::string_view target) {
  return target.substr(0, target.find('.'));
}

std::string public_type_name(std::string_view module_type) {
  constexpr std::string_view kImpl = "Impl";
  const auto last_after = [&](std::string_view mark) {
    return std::string(module_type.substr(module_type.rfind(mark) + mark.size()));
  };
  if (module_type.starts_with("torch.nn.modules.")) return std::string(kTorchModules) + last_after(".");
  if (!module_type.starts_with(kCppModules)) return std::string(module_type);
  std::string name = last_after("::");
  if (name.ends_with(kImpl)) name.resize(name.size() - kImpl.size());
  return std::string(kTorchModules) + name;
}

bool is_leaf_type(std::string_view public_name) {
  static const std::set<std::string, std::less<>> containers = {"torch.nn.Sequential", "torch.nn.ModuleList",
                                                                "torch.nn.ModuleDict", "torch.nn.Module",
                                                                "torch.nn.Functional"};
  return public_name.starts_with(kTorchModules) && !containers.contains(public_name);
}

bool is_module_call(const Node& node) {
  const std::string type = public_type_name(node.source().module_type);
  return is_leaf_type(type) && is_own_operator(type, base_name(node.target()));
}

std::vector<std::string> names_of(const Node& node) {
  std::vector<std::string> names;
  if (node.op() == nullptr) return names;
  const std::string base(base_name(node.target()));
  if (is_module_call(node)) {
    names.push_back(public_type_name(node.source().module_type));
  } else if (const auto found = functions_by_operator().find(base);
             found != functions_by_operator().end() && !is_inside_leaf(node)) {
    names = found->second;
  }
  names.push_back(node.target());
  if (base != node.target()) names.push_back(base);
  return names;
}

void check_operator_name(std::string_view name, std::string_view place) {
  if (name.find("::") == std::string_view::npos) return;
  std::vector<std::string> known;
  for (const c10::OperatorName& each : c10::Dispatcher::singleton().getAllOpNames()) {
    const std::string full = each.overload_name.empty() ? each.name : each.name + "." + each.overload_name;
    if (name == full || name == each.name) return;
    known.push_back(each.name);
  }
  fail(ErrorCode::kInvalidArgument, "{}: there is no operator \"{}\"{}", place, name,
       did_you_mean(name, known));
}

}  // namespace halftone::ptq
