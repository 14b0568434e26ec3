// Weight formats: how weights of a config are quantized, restored and multiplied. For programs with a config
// of their own.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/graph/graph.h"
#include "halftone/quant/config.h"

namespace halftone {

class WeightFormat;

/// A quantized weight [n, k]: plain tensors, by the names of the operator's arguments ("weight", "scale",
/// "zero_point"). Immutable once made; copies share the tensors. Everything that is computed from the parts
/// (packed panels) is a cache.
struct HALFTONE_API QuantizedWeight {
  QuantConfig config;
  std::shared_ptr<const WeightFormat> format;      ///< of that config
  std::vector<int64_t> sizes;                      ///< [n, k] of the weight that it stands for
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< of the weight that it stands for
  std::vector<std::pair<std::string, at::Tensor>> parts;

  const at::Tensor& part(std::string_view name) const;  ///< kNotFound
  bool has_part(std::string_view name) const;
  int64_t bytes() const;  ///< of all parts
};

/// A linear (or an embedding) with such a weight in a graph: an operator, and its constant
/// arguments. The parts are passed by name, x (or indices) and bias too.
struct FormatOp {
  std::string target;                    ///< "halftone::int8_linear"
  std::vector<NamedArgument> constants;  ///< {"weight_bits", 8}
};

/// Tensors by name.
using Parts = std::vector<std::pair<std::string, at::Tensor>>;

/// The behaviour behind one config. Thread-safe. Stateless but for its config.
class HALFTONE_API WeightFormat {
 public:
  virtual ~WeightFormat() = default;

  /// Why a weight of n outputs and k inputs cannot have this format, or "" if it can.
  virtual std::string refuse(int64_t n, int64_t k) const { return {}; }
  /// weight: [n, k] float32, contiguous, finite, not refused. The same weight gives the same bytes, on every
  /// machine.
  virtual Parts quantize(const at::Tensor& weight) const = 0;
  /// The same for a weight that was of `dtype` before it became float32. The built-in formats round their
  /// scales to it, as torchao does; the default ignores it.
  virtual Parts quantize_typed(const at::Tensor& weight, c10::ScalarType dtype) const {
    return quantize(weight);
  }
  /// float32 [n, k].
  virtual at::Tensor dequantize(const QuantizedWeight& weight) const = 0;
  /// x [..., k] in any floating type, bias [n] or none → [..., n] in x's type. Gradients reach x and bias.
  virtual at::Tensor linear(const at::Tensor& x, const QuantizedWeight& weight,
                            const std::optional<at::Tensor>& bias) const = 0;
  /// Rows [start, stop) as a weight of its own. The default narrows dimension 0 of each part.
  virtual QuantizedWeight rows(const QuantizedWeight& weight, int64_t start, int64_t stop) const;

  /// Rows by index, in the weight's dtype; kUnsupported if the format has no such kernel.
  virtual at::Tensor embedding(const at::Tensor& indices, const QuantizedWeight& weight) const;
  virtual bool has_embedding() const { return false; }

  /// Whether weights of convolutions may have this format too: [n, k] is then the weight [n, …] flattened.
  virtual bool has_convolution() const { return false; }

  /// Default: halftone::custom_linear, which finds the config again by its JSON.
  virtual FormatOp linear_op(const QuantizedWeight& weight) const;
  virtual FormatOp embedding_op(const QuantizedWeight& weight) const;  ///< only if has_embedding()
  /// What restores the floating-point weight of a convolution; only if has_convolution().
  virtual FormatOp convolution_op(const QuantizedWeight& weight) const;
};

/// A custom config type. Register it once, before configs of that type are made.
struct ConfigType {
  std::string type;  ///< "TernaryConfig"; kInvalidArgument if it is taken
  std::string default_fields =
      "{}";  ///< a JSON object: every field with its default; a value must keep its kind
  /// Throws kInvalidArgument if a value is not allowed. Gets all fields, canonical.
  std::function<void(std::string_view fields_json)> check;
  std::function<std::shared_ptr<const WeightFormat>(const QuantConfig& config)> make_format;
};
HALFTONE_API void register_config_type(ConfigType type);

/// The behaviour of a config; kUnsupported for NoQuantConfig.
HALFTONE_API std::shared_ptr<const WeightFormat> format_of(const QuantConfig& config);

/// Quantizes a two-dimensional floating-point weight of any strides. kInvalidArgument, naming `layer`, for
/// NaN and infinities, other dtypes or dimensions, and what the format refuses.
HALFTONE_API QuantizedWeight quantize_weight(const at::Tensor& weight, const QuantConfig& config,
                                             std::string_view layer);

}  // namespace halftone
