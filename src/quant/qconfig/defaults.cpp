// torch.ao's qconfigs, by their names.
#include <algorithm>

#include "base/errors.h"
#include "base/nearest.h"
#include "halftone/ptq/qconfig.h"

namespace halftone {
namespace {

constexpr double kSymmetricEps = 0x1p-12;

ObserverConfig symmetric_weight(ObserverKind kind) {
  ObserverConfig config(kind);
  config.dtype = ConfigDType::kQInt8;
  config.qscheme =
      kind == ObserverKind::kMinMax ? QScheme::kPerTensorSymmetric : QScheme::kPerChannelSymmetric;
  return config;
}

/// Without -128.
ObserverConfig narrow_weight(ObserverKind kind) {
  ObserverConfig config = symmetric_weight(kind);
  config.quant_min = -127;
  config.quant_max = 127;
  config.eps = kSymmetricEps;
  return config;
}

ObserverConfig seven_bits(ObserverKind kind) {
  ObserverConfig config(kind);
  config.quant_min = 0;
  config.quant_max = 127;
  return config;
}

ObserverConfig at_run_time() {
  ObserverConfig config(ObserverKind::kPlaceholder);
  config.dtype = ConfigDType::kQUInt8;
  config.quant_min = 0;
  config.quant_max = 255;
  config.is_dynamic = true;
  return config;
}

ObserverConfig half_floats(bool dynamic) {
  ObserverConfig config(ObserverKind::kPlaceholder);
  config.dtype = ConfigDType::kFloat16;
  config.is_dynamic = dynamic;
  return config;
}

ObserverConfig float_zero_point(ConfigDType dtype) {
  ObserverConfig config(ObserverKind::kPerChannelMinMax);
  config.dtype = dtype;
  config.qscheme = QScheme::kPerChannelAffineFloatQParams;
  return config;
}

ObserverConfig signed_histogram() {
  ObserverConfig config(ObserverKind::kHistogram);
  config.dtype = ConfigDType::kQInt8;
  config.eps = kSymmetricEps;
  return config;
}

ObserverConfig fixed_result(double scale, int64_t zero_point) {
  ObserverConfig config(ObserverKind::kFixed);
  config.scale = scale;
  config.zero_point = zero_point;
  return config;
}

const std::vector<std::pair<std::string, QConfig>>& all_qconfigs() {
  using Kind = ObserverKind;
  static const std::vector<std::pair<std::string, QConfig>> list = {
      {"default", {seven_bits(Kind::kMinMax), symmetric_weight(Kind::kMinMax)}},
      {"default_per_channel", {seven_bits(Kind::kMinMax), symmetric_weight(Kind::kPerChannelMinMax)}},
      {"default_dynamic", {at_run_time(), symmetric_weight(Kind::kMinMax)}},
      {"per_channel_dynamic", {at_run_time(), symmetric_weight(Kind::kPerChannelMinMax)}},
      {"float16_dynamic", {half_floats(true), half_floats(false)}},
      {"float16_static", {half_floats(false), half_floats(false)}},
      {"float_qparams_weight_only", {Kind::kPlaceholder, float_zero_point(ConfigDType::kQUInt8)}},
      {"float_qparams_weight_only_4bit", {Kind::kPlaceholder, float_zero_point(ConfigDType::kQUInt4x2)}},
      {"default_reuse_input", {Kind::kReuseInput, Kind::kNoop}},
      {"default_quint8_weight", {Kind::kHistogram, Kind::kMinMax}},
      {"default_symmetric_qnnpack", {signed_histogram(), narrow_weight(Kind::kMinMax)}},
      {"default_per_channel_symmetric_qnnpack",
       {signed_histogram(), narrow_weight(Kind::kPerChannelMinMax)}}};
  return list;
}

/// torch.ao's exceptions around what everything else gets.
QConfigMapping mapping_around(const QConfig& usual, const QConfig& transposed) {
  QConfigMapping mapping;
  mapping.set_global(usual).set_object_type("Tensor.reshape", qconfig_by_name("default_reuse_input"));
  for (const std::string dims : {"1d", "2d", "3d"}) {
    mapping.set_object_type("torch.nn.ConvTranspose" + dims, transposed);
    mapping.set_object_type("torch.nn.functional.conv_transpose" + dims, transposed);
  }
  const QConfig float_weight{usual.activation, ObserverKind::kPlaceholder};
  mapping.set_object_type("torch.nn.functional.layer_norm", float_weight);
  mapping.set_object_type("torch.nn.LayerNorm", float_weight);
  mapping.set_object_type("torch.nn.PReLU", qconfig_by_name("default_quint8_weight"));
  const QConfig unit{fixed_result(1.0 / 256, 0), symmetric_weight(ObserverKind::kMinMax)};
  for (const char* name : {"torch.nn.Hardsigmoid", "torch.nn.functional.hardsigmoid", "Tensor.hardsigmoid",
                           "Tensor.hardsigmoid_", "torch.nn.Sigmoid", "torch.sigmoid", "Tensor.sigmoid",
                           "Tensor.sigmoid_", "torch.nn.Softmax"})
    mapping.set_object_type(name, unit);
  const QConfig both_signs{fixed_result(2.0 / 256, 128), symmetric_weight(ObserverKind::kMinMax)};
  for (const char* name : {"torch.nn.Tanh", "torch.tanh", "Tensor.tanh", "Tensor.tanh_"})
    mapping.set_object_type(name, both_signs);
  return mapping;
}

const std::vector<std::string> kQuantBackends = {"x86", "fbgemm", "qnnpack", "onednn"};

}  // namespace

std::vector<std::string> qconfig_names() {
  std::vector<std::string> names;
  for (const auto& [name, qconfig] : all_qconfigs()) names.push_back(name);
  return names;
}

QConfig qconfig_by_name(std::string_view name) {
  for (const auto& [each, qconfig] : all_qconfigs()) {
    if (each == name) return qconfig;
  }
  fail(ErrorCode::kInvalidArgument, "there is no qconfig \"{}\"{}", name,
       did_you_mean(name, qconfig_names()));
}

QConfig default_qconfig(std::string_view backend) {
  if (std::find(kQuantBackends.begin(), kQuantBackends.end(), backend) == kQuantBackends.end())
    fail(ErrorCode::kInvalidArgument,
         "there is no backend \"{}\"{}: x86, fbgemm, qnnpack and onednn have qconfigs", backend,
         did_you_mean(backend, kQuantBackends));
  ObserverConfig activation(ObserverKind::kHistogram);
  activation.reduce_range = backend == "x86" || backend == "fbgemm";
  return {activation,
          symmetric_weight(backend == "qnnpack" ? ObserverKind::kMinMax : ObserverKind::kPerChannelMinMax)};
}

QConfigMapping default_qconfig_mapping(std::string_view backend) {
  const QConfig usual = default_qconfig(backend);
  QConfig transposed = usual;
  if (backend == "x86" || backend == "fbgemm") transposed.weight = symmetric_weight(ObserverKind::kMinMax);
  return mapping_around(usual, transposed);
}

QConfigMapping static_int8_mapping(StaticInt8Bits bits) {
  for (const int count : {bits.activation, bits.weight}) {
    if (count != 7 && count != 8)
      fail(ErrorCode::kInvalidArgument, "static int8 has 7 or 8 bits, not {}", count);
  }
  QConfig usual = default_qconfig("x86");
  usual.activation.reduce_range = bits.activation == 7;
  QConfig transposed = usual;
  transposed.weight = symmetric_weight(ObserverKind::kMinMax);
  if (bits.weight == 7) {
    for (ObserverConfig* weight : {&usual.weight, &transposed.weight}) {
      weight->quant_min = -64;
      weight->quant_max = 63;
    }
  }
  return mapping_around(usual, transposed);
}

}  // namespace halftone
