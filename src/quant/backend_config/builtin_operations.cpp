// Everything that is not a product.
#include <array>

#include "quant/backend_config/builtin.h"

namespace halftone::backend_config {
namespace {

constexpr std::array kOwnResults = {"torch.nn.ELU",
                                    "torch.nn.LeakyReLU",
                                    "torch.nn.Hardswish",
                                    "torch.nn.InstanceNorm1d",
                                    "torch.nn.InstanceNorm2d",
                                    "torch.nn.InstanceNorm3d",
                                    "torch.nn.Dropout",
                                    "torch.nn.PReLU",
                                    "torch.nn.functional.elu",
                                    "torch.nn.functional.hardswish",
                                    "torch.nn.functional.leaky_relu",
                                    "torch.nn.functional.dropout",
                                    "torch.matmul"};

constexpr std::array kShared = {"torch.cat",
                                "torch.nn.AdaptiveAvgPool1d",
                                "torch.nn.AdaptiveAvgPool2d",
                                "torch.nn.AdaptiveAvgPool3d",
                                "torch.nn.AvgPool1d",
                                "torch.nn.AvgPool2d",
                                "torch.nn.AvgPool3d",
                                "torch.nn.Hardtanh",
                                "torch.nn.Identity",
                                "torch.nn.MaxPool1d",
                                "torch.nn.MaxPool2d",
                                "torch.nn.MaxPool3d",
                                "torch.nn.PixelShuffle",
                                "torch.nn.PixelUnshuffle",
                                "torch.nn.ReLU",
                                "torch.nn.ReLU6",
                                "torch.nn.functional.adaptive_avg_pool1d",
                                "torch.nn.functional.adaptive_avg_pool2d",
                                "torch.nn.functional.adaptive_avg_pool3d",
                                "torch.nn.functional.hardtanh",
                                "torch.nn.functional.hardtanh_",
                                "torch.nn.functional.interpolate",
                                "torch.nn.functional.max_pool1d",
                                "torch.nn.functional.max_pool2d",
                                "torch.nn.functional.max_pool3d",
                                "torch.nn.functional.pixel_shuffle",
                                "torch.nn.functional.pixel_unshuffle",
                                "torch.nn.functional.relu",
                                "torch.nn.functional.relu6",
                                "torch.nn.functional.avg_pool1d",
                                "torch.nn.functional.avg_pool2d",
                                "torch.nn.functional.avg_pool3d",
                                "torch.clamp",
                                "torch.flatten",
                                "torch.mean",
                                "torch.narrow",
                                "torch.repeat_interleave",
                                "torch.transpose",
                                "torch.squeeze",
                                "torch.stack",
                                "torch.unsqueeze",
                                "operator.floordiv",
                                "Tensor.contiguous",
                                "Tensor.clamp",
                                "Tensor.detach",
                                "Tensor.detach_",
                                "Tensor.mean",
                                "Tensor.permute",
                                "Tensor.repeat",
                                "Tensor.repeat_interleave",
                                "Tensor.reshape",
                                "Tensor.resize_",
                                "Tensor.relu",
                                "Tensor.relu_",
                                "Tensor.squeeze",
                                "Tensor.squeeze_",
                                "Tensor.transpose",
                                "Tensor.unsqueeze",
                                "Tensor.unsqueeze_",
                                "Tensor.view"};

// Results between 0 and 1: all of quint8 with scale 1/256.
constexpr std::array kUnit = {"torch.nn.Hardsigmoid", "torch.nn.functional.hardsigmoid",
                              "Tensor.hardsigmoid",   "Tensor.hardsigmoid_",
                              "torch.nn.Sigmoid",     "torch.sigmoid",
                              "Tensor.sigmoid",       "Tensor.sigmoid_",
                              "torch.nn.Softmax"};
// Between -1 and 1.
constexpr std::array kSigned = {"torch.nn.Tanh", "torch.tanh", "Tensor.tanh", "Tensor.tanh_"};

template <size_t N>
void add_operations(Configs& list, const std::array<const char*, N>& names, ObservationType type,
                    const DTypes& dtypes) {
  for (const char* name : names)
    list.push_back(BackendPatternConfig(name).set_observation_type(type).set_dtype_configs(dtypes));
}

DTypeConfig int8_dtypes(bool weighted) {
  DTypeConfig config;
  config.input.dtype = config.output.dtype = ConfigDType::kQUInt8;
  if (weighted) {
    config.weight.dtype = ConfigDType::kQInt8;
    config.bias = ConfigDType::kFloat32;
  }
  return config;
}

DTypeConfig dynamic_dtypes(ConfigDType input, ConfigDType weight) {
  DTypeConfig config;
  config.input.dtype = input;
  config.weight.dtype = weight;
  config.output.dtype = config.bias = ConfigDType::kFloat32;
  config.is_dynamic = true;
  return config;
}

}  // namespace

DTypeConfig weighted_int8() {
  return int8_dtypes(true);
}

DTypeConfig plain_int8() {
  return int8_dtypes(false);
}

DTypeConfig dynamic_int8() {
  return dynamic_dtypes(ConfigDType::kQUInt8, ConfigDType::kQInt8);
}

DTypeConfig dynamic_float16() {
  return dynamic_dtypes(ConfigDType::kFloat16, ConfigDType::kFloat16);
}

DTypeConfig with_fixed_result(DTypeConfig base, double scale, int64_t zero_point) {
  for (DTypeWithConstraints* each : {&base.input, &base.output}) {
    each->quant_min_lower_bound = 0;
    each->quant_max_upper_bound = 255;
    each->scale_exact_match = scale;
    each->zero_point_exact_match = zero_point;
  }
  return base;
}

Configs binary_operations(const DTypes& dtypes) {
  const std::map<int64_t, ObservationType> by_tensors = {{0, ObservationType::kOutputUsesDifferentObserver},
                                                         {1, ObservationType::kOutputSharesInputObserver},
                                                         {2, ObservationType::kOutputUsesDifferentObserver}};
  Configs list;
  const auto add = [&](Pattern pattern) {
    list.push_back(BackendPatternConfig(std::move(pattern))
                       .set_dtype_configs(dtypes)
                       .set_num_tensor_args_to_observation_type(by_tensors));
  };
  for (const char* operation : {"operator.add", "torch.add", "operator.mul", "torch.mul"}) {
    for (const char* relu : {"torch.nn.ReLU", "torch.nn.functional.relu", "torch.relu"})
      add(Pattern::sequence({operation, relu}));
    add(operation);
  }
  return list;
}

Configs batch_norms(const DTypes& dtypes) {
  Configs list;
  for (const std::string dims : {"2d", "3d"}) {
    const std::string norm = "torch.nn.BatchNorm" + dims, joined = "torch.ao.nn.intrinsic.BNReLU" + dims;
    for (const char* relu : {"torch.nn.ReLU", "torch.nn.functional.relu"}) {
      list.push_back(BackendPatternConfig(Pattern::sequence({norm, relu}))
                         .set_dtype_configs(dtypes)
                         .set_fused_module(joined)
                         .set_fuser_method("sequential(" + joined + ")"));
    }
    for (const std::string& module : {norm, joined})
      list.push_back(BackendPatternConfig(module).set_dtype_configs(dtypes));
  }
  return list;
}

Configs operations_with_results_of_their_own(const DTypes& dtypes) {
  Configs list;
  add_operations(list, kOwnResults, ObservationType::kOutputUsesDifferentObserver, dtypes);
  list.push_back(BackendPatternConfig("torch.nn.functional.group_norm")
                     .set_dtype_configs(dtypes)
                     .set_input_type_to_index({{"weight", 2}, {"bias", 3}}));
  list.push_back(BackendPatternConfig("torch.nn.functional.instance_norm")
                     .set_dtype_configs(dtypes)
                     .set_input_type_to_index({{"weight", 3}, {"bias", 4}}));
  return list;
}

Configs operations_that_share(const DTypes& dtypes) {
  Configs list;
  add_operations(list, kShared, ObservationType::kOutputSharesInputObserver, dtypes);
  return list;
}

Configs operations_with_fixed_results(const DTypeConfig& dtype) {
  Configs list;
  add_operations(list, kUnit, ObservationType::kOutputUsesDifferentObserver,
                 {with_fixed_result(dtype, 1.0 / 256, 0)});
  add_operations(list, kSigned, ObservationType::kOutputUsesDifferentObserver,
                 {with_fixed_result(dtype, 2.0 / 256, 128)});
  return list;
}

Configs tensor_questions(const DTypes& dtypes) {
  Configs list;
  for (const char* name : {"Tensor.shape", "Tensor.size"})
    list.push_back(BackendPatternConfig(name)
                       .set_observation_type(ObservationType::kInputOutputNotObserved)
                       .set_dtype_configs(dtypes));
  return list;
}

Configs layer_norms() {
  DTypeConfig dtype = plain_int8();
  dtype.weight.dtype = dtype.bias = ConfigDType::kFloat32;
  return {BackendPatternConfig("torch.nn.LayerNorm").add_dtype_config(dtype),
          BackendPatternConfig("torch.nn.functional.layer_norm")
              .add_dtype_config(dtype)
              .set_input_type_to_index({{"weight", 2}, {"bias", 3}})};
}

}  // namespace halftone::backend_config
