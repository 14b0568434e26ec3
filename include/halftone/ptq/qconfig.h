// Qconfigs, which name the observers of activations and weights, and the mapping from operations and layers
// to them. As torch.ao.quantization's QConfig and QConfigMapping; no torch. docs/backend_config.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/ptq/backend_config.h"

namespace halftone {

enum class QScheme {
  kPerTensorAffine,
  kPerTensorSymmetric,
  kPerChannelAffine,
  kPerChannelSymmetric,
  kPerChannelAffineFloatQParams,  ///< the zero point is a float: embeddings
};
HALFTONE_API std::string_view to_string(QScheme scheme);  ///< "per_tensor_affine", …

enum class ObserverKind {
  kMinMax,
  kMovingAverageMinMax,
  kPerChannelMinMax,
  kMovingAveragePerChannelMinMax,
  kHistogram,    ///< leaves out outliers that cost more than they gain
  kFixed,        ///< scale and zero point are given
  kPlaceholder,  ///< watches nothing: floats, and activations that are quantized at run time
  kNoop,         ///< as kPlaceholder, and nothing is quantized
  kReuseInput,   ///< takes the input's
};
HALFTONE_API std::string_view to_string(ObserverKind kind);  ///< "MinMaxObserver", …

/// The observer of one value. Fields that a kind does not know are refused in JSON.
struct HALFTONE_API ObserverConfig {
  ObserverConfig(
      ObserverKind kind = ObserverKind::kMinMax);  // NOLINT(google-explicit-constructor): with its defaults
  ObserverKind kind;
  ConfigDType dtype = ConfigDType::kQUInt8;
  QScheme qscheme = QScheme::kPerTensorAffine;
  bool reduce_range = false;  ///< one bit less: exact on machines whose 16-bit sums saturate
  std::optional<int64_t> quant_min, quant_max;  ///< both or none
  double eps = 0x1p-23;                         ///< the least scale
  double averaging_constant = 0.01;             ///< of moving averages
  int64_t ch_axis = 0;
  int64_t bins = 2048;
  bool is_dynamic = false;
  double scale = 1;  ///< of kFixed
  int64_t zero_point = 0;
  bool operator==(const ObserverConfig&) const = default;

  /// [least, largest] of quantized values: the given ones, else the dtype's, halved by reduce_range.
  std::pair<int64_t, int64_t> range() const;
  /// {"type": "HistogramObserver", …}: what differs from the kind's defaults.
  std::string to_dict() const;
  /// kCorruptFile with the path to the key.
  static ObserverConfig from_dict(std::string_view json);
};

struct QConfig {
  ObserverConfig activation;
  ObserverConfig weight;
  bool operator==(const QConfig&) const = default;
};

/// "default", "default_per_channel", "default_dynamic", "float16_dynamic", "float16_static",
/// "per_channel_dynamic", "float_qparams_weight_only", "float_qparams_weight_only_4bit",
/// "default_reuse_input", "default_quint8_weight", "default_symmetric_qnnpack",
/// "default_per_channel_symmetric_qnnpack". kInvalidArgument with the nearest name.
HALFTONE_API QConfig qconfig_by_name(std::string_view name);
HALFTONE_API std::vector<std::string> qconfig_names();
/// Of a backend: "x86", "fbgemm", "qnnpack", "onednn".
HALFTONE_API QConfig default_qconfig(std::string_view backend);

/// From the weakest to the strongest: global, operation, name pattern, name, name and operation and order.
/// Nothing instead of a QConfig: not quantized.
class HALFTONE_API QConfigMapping {
 public:
  using Value = std::optional<QConfig>;

  QConfigMapping& set_global(Value qconfig);
  /// A name of backend_config_names(), or an operator.
  QConfigMapping& set_object_type(std::string type, Value qconfig);
  /// An ECMAScript regular expression that the layer's name must begin with; the first that was set counts.
  QConfigMapping& set_module_name_regex(std::string pattern, Value qconfig);
  /// A layer, and those inside it.
  QConfigMapping& set_module_name(std::string name, Value qconfig);
  /// The index-th operation of a type inside a layer, from 0.
  QConfigMapping& set_module_name_object_type_order(std::string name, std::string type, int64_t index,
                                                    Value qconfig);

  /// For an operation: its layer, the names it goes by (the most exact first), and how many of each name came
  /// before it in the layer.
  Value find(std::string_view layer, const std::vector<std::string>& types, int64_t index) const;
  bool operator==(const QConfigMapping&) const = default;

  /// Python's keys: "" (the global one), "object_type", "module_name_regex", "module_name",
  /// "module_name_object_type_order".
  std::string to_dict() const;
  static QConfigMapping from_dict(std::string_view json, std::string_view file = "qconfig mapping");

 private:
  struct Order {
    std::string name, type;
    int64_t index = 0;
    bool operator==(const Order&) const = default;
  };
  Value global_;
  std::vector<std::pair<std::string, Value>> types_, patterns_, names_;
  std::vector<std::pair<Order, Value>> orders_;
};

/// torch.ao's defaults for post-training quantization: "x86", "fbgemm", "qnnpack", "onednn".
/// kInvalidArgument.
HALFTONE_API QConfigMapping default_qconfig_mapping(std::string_view backend = "x86");

/// 7 or 8. Machines without 8-bit dot products (AVX2) are fastest if both are 7, slowest if both are 8;
/// with VNNI the widths make no difference, so take 8 and 8 there.
struct StaticInt8Bits {
  int activation = 7;  ///< 7: reduce_range
  int weight = 8;      ///< 7: from -64 to 63
};
/// The x86 defaults in these widths; {7, 8} are torch.ao's own. Others are kInvalidArgument.
HALFTONE_API QConfigMapping static_int8_mapping(StaticInt8Bits bits = {});

}  // namespace halftone
