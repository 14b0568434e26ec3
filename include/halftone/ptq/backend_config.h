// The capabilities of a low-bit backend: patterns of operations, the dtypes of each, and how each is
// observed, fused and replaced. As torch.ao.quantization.backend_config; no torch. docs/backend_config.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"

namespace halftone {

/// Dtypes as configs name them: "quint8" is an activation with scale and zero point in unsigned bytes.
enum class ConfigDType {
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat64,
  kQUInt8,
  kQInt8,
  kQInt32,
  kQUInt4x2,
  kUInt8,
  kInt8,
  kInt16,
  kInt32
};
HALFTONE_API std::string_view to_string(ConfigDType dtype);  ///< "float32", "quint8", …
HALFTONE_API std::optional<ConfigDType> config_dtype_by_name(
    std::string_view name);  ///< also "float", "torch.quint8"

enum class ObservationType {
  kOutputUsesDifferentObserver,  ///< input and output have observers of their own: conv, linear
  kOutputSharesInputObserver,    ///< the output keeps the input's scale and zero point: cat, max_pool
  kInputOutputNotObserved,       ///< neither is a quantized value: size
};
/// Python's names: "OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT", "OUTPUT_SHARE_OBSERVER_WITH_INPUT",
/// "INPUT_OUTPUT_NOT_OBSERVED".
HALFTONE_API std::string_view to_string(ObservationType type);

/// A dtype, and what a backend wants of its numbers. A qconfig that breaks a bound is ignored for the
/// pattern.
struct DTypeWithConstraints {
  std::optional<ConfigDType> dtype;
  std::optional<double> quant_min_lower_bound;  ///< of quantized values
  std::optional<double> quant_max_upper_bound;
  std::optional<double> scale_min_lower_bound;
  std::optional<double> scale_max_upper_bound;
  std::optional<double> scale_exact_match;  ///< of operators with fixed results: sigmoid
  std::optional<int64_t> zero_point_exact_match;
  bool operator==(const DTypeWithConstraints&) const = default;
};

struct HALFTONE_API DTypeConfig {
  DTypeWithConstraints input;
  DTypeWithConstraints output;
  DTypeWithConstraints weight;
  std::optional<ConfigDType> bias;
  std::optional<bool> is_dynamic;
  bool operator==(const DTypeConfig&) const = default;

  /// {"input_dtype": "quint8" or {"dtype": …, "quant_min_lower_bound": …}, …, "bias_dtype", "is_dynamic"}.
  std::string to_dict() const;
  static DTypeConfig from_dict(std::string_view json);
};

/// One operation of a pattern. Its inputs are nodes before it; those that it has beside these may be
/// anything.
struct PatternNode {
  std::string op;  ///< a name of backend_config_names(), an operator ("aten::linear"), or "*": anything
  std::vector<size_t> inputs;
  bool operator==(const PatternNode&) const = default;
};

/// Operations, as a directed graph without cycles. Written as
///   "torch.nn.Linear"                                    one operation
///   ["torch.nn.Conv2d", "torch.nn.ReLU"]                 a sequence, in the order of execution
/// or, in the complex format, from the result backwards
///   ["torch.nn.ReLU", ["torch.add", ["torch.nn.BatchNorm2d", "torch.nn.Conv2d"], "*"]]
///   {"op": "torch.add", "inputs": ["x", …], "id": "sum"} and {"ref": "sum"} where one result is used twice.
class HALFTONE_API Pattern {
 public:
  Pattern(std::string op);                               // NOLINT(google-explicit-constructor)
  Pattern(const char* op) : Pattern(std::string(op)) {}  // NOLINT(google-explicit-constructor)
  static Pattern sequence(const std::vector<std::string>& ops);
  /// kCorruptFile, with the place, for unknown names, unknown references, cycles and wrong forms.
  static Pattern from_json(std::string_view json);
  static Pattern from_complex_json(std::string_view json);

  const std::vector<PatternNode>& nodes() const { return nodes_; }  ///< the last one is the result
  bool is_complex() const { return complex_; }                      ///< neither an operation nor a sequence
  std::string to_json() const;          ///< the short form; of a complex one the complex form
  std::string to_complex_json() const;  ///< always the complex form
  std::string to_text() const;          ///< for display: "relu(add(batch_norm(conv2d), *))" in full names
  bool operator==(const Pattern& other) const { return nodes_ == other.nodes_; }

 private:
  Pattern() = default;
  std::vector<PatternNode> nodes_;
  bool complex_ = false;
};

/// What a backend does with one pattern. Module types, fuser methods and getters are names of
/// backend_config_names(); others are kInvalidArgument with the nearest name.
class HALFTONE_API BackendPatternConfig {
 public:
  explicit BackendPatternConfig(Pattern pattern);

  BackendPatternConfig& set_observation_type(ObservationType type);
  BackendPatternConfig& add_dtype_config(const DTypeConfig& config);
  BackendPatternConfig& set_dtype_configs(std::vector<DTypeConfig> configs);
  BackendPatternConfig& set_root_module(std::string name);
  BackendPatternConfig& set_qat_module(std::string name);
  BackendPatternConfig& set_reference_quantized_module(std::string name);
  BackendPatternConfig& set_fused_module(std::string name);
  BackendPatternConfig& set_fuser_method(std::string name);
  BackendPatternConfig& set_root_node_getter(std::string name);
  BackendPatternConfig& set_extra_inputs_getter(std::string name);
  /// For operators whose operands may be numbers: by how many of them are tensors.
  BackendPatternConfig& set_num_tensor_args_to_observation_type(std::map<int64_t, ObservationType> types);
  /// Which argument of a functional is the "weight", "bias" or "input".
  BackendPatternConfig& set_input_type_to_index(std::map<std::string, int64_t> indices);

  const Pattern& pattern() const { return pattern_; }
  ObservationType observation_type() const { return observation_type_; }
  const std::vector<DTypeConfig>& dtype_configs() const { return dtype_configs_; }
  const std::optional<std::string>& root_module() const { return root_module_; }
  const std::optional<std::string>& qat_module() const { return qat_module_; }
  const std::optional<std::string>& reference_quantized_module() const { return reference_quantized_module_; }
  const std::optional<std::string>& fused_module() const { return fused_module_; }
  const std::optional<std::string>& fuser_method() const { return fuser_method_; }
  const std::optional<std::string>& root_node_getter() const { return root_node_getter_; }
  const std::optional<std::string>& extra_inputs_getter() const { return extra_inputs_getter_; }
  const std::map<int64_t, ObservationType>& num_tensor_args_to_observation_type() const {
    return by_tensor_args_;
  }
  const std::map<std::string, int64_t>& input_type_to_index() const { return input_indices_; }
  bool operator==(const BackendPatternConfig&) const = default;

  /// Python's keys: "pattern" or "pattern_complex_format", "observation_type", "dtype_configs",
  /// "root_module", ….
  std::string to_dict() const;
  /// kCorruptFile with the path to the key: "dtype_configs[0].input_dtype: …".
  static BackendPatternConfig from_dict(std::string_view json);

 private:
  Pattern pattern_;
  ObservationType observation_type_ = ObservationType::kOutputUsesDifferentObserver;
  std::vector<DTypeConfig> dtype_configs_;
  std::optional<std::string> root_module_, qat_module_, reference_quantized_module_, fused_module_,
      fuser_method_, root_node_getter_, extra_inputs_getter_;
  std::map<int64_t, ObservationType> by_tensor_args_;
  std::map<std::string, int64_t> input_indices_;
};

class HALFTONE_API BackendConfig {
 public:
  explicit BackendConfig(std::string name = {}) : name_(std::move(name)) {}

  BackendConfig& set_name(std::string name);
  /// In the place of the config of the same pattern, else at the end.
  BackendConfig& set_backend_pattern_config(BackendPatternConfig config);
  BackendConfig& set_backend_pattern_configs(const std::vector<BackendPatternConfig>& configs);

  const std::string& name() const { return name_; }
  std::vector<BackendPatternConfig> configs() const { return configs_; }
  const BackendPatternConfig* find(const Pattern& pattern) const;  ///< or nullptr
  bool operator==(const BackendConfig&) const = default;

  std::string to_dict() const;  ///< {"name": …, "configs": […]}, indented
  /// kCorruptFile with the path to the key: "configs[3].observation_type: …". `file` is for messages.
  static BackendConfig from_dict(std::string_view json, std::string_view file = "backend config");
  /// Pattern, observation and dtypes: a table of at most 100 columns.
  std::string to_text() const;

 private:
  std::string name_;
  std::vector<BackendPatternConfig> configs_;
};

/// "native", "reference", "x86": torch.ao's configs of these names (reference: what the interpreter can run),
/// and the sums after products beside them. kInvalidArgument with the nearest name.
HALFTONE_API BackendConfig builtin_backend_config(std::string_view name);
HALFTONE_API std::vector<std::string> builtin_backend_configs();

/// What a name stands for.
enum class ConfigNameKind { kModule, kFunction, kMethod, kFuserMethod, kRootNodeGetter, kExtraInputsGetter };
HALFTONE_API std::string_view to_string(ConfigNameKind kind);

/// Adds a name of the user's own; the same one twice is fine. kInvalidArgument if it is empty, or stands
/// for something else already. Thread-safe.
HALFTONE_API void register_backend_config_name(ConfigNameKind kind, std::string name);
HALFTONE_API std::vector<std::string> backend_config_names(ConfigNameKind kind);  ///< sorted

}  // namespace halftone
