// Configs of quantized weights: the built-in ones, their names, and the type-erased config that
// everything takes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"

namespace halftone {

/// int8wo: 8-bit weights, one scale for each output channel; activations stay as they are.
struct Int8WeightOnlyConfig {
  bool operator==(const Int8WeightOnlyConfig&) const = default;
};

/// int8dq: 8-bit weights as above; activations are quantized to 8 bits at run time, row by row.
struct Int8DynamicActivationInt8WeightConfig {
  bool symmetric_activations = false;  ///< false: u8 with a zero point, which loses less
  int weight_bits = 8;  ///< 8, or 7: weights in [-64, 64], for which the fastest AVX2 sequence is exact
  bool operator==(const Int8DynamicActivationInt8WeightConfig&) const = default;
};

enum class Int4Activations {
  kFloat,  ///< kept in floating point
  kInt8,   ///< quantized to 8 bits at run time, group by group: faster, a little less exact
};

enum class Int4Rounding {
  kNearest,  ///< the scale is that of the group's range, as in torchao
  kSearch,   ///< the scale (and zero point) with the least squared error of the weights; slower to quantize
};

/// int4wo: 4-bit weights in groups of neighbouring inputs, a scale (and a zero point) for each group.
struct Int4WeightOnlyConfig {
  int group_size = 32;    ///< 32, 64, 128 or 256; the last group may be shorter
  bool symmetric = true;  ///< false: with zero points
  Int4Activations activations = Int4Activations::kFloat;
  /// Only quantizing differs: a graph has the same operators for both and does not remember which it was.
  Int4Rounding rounding = Int4Rounding::kNearest;
  bool operator==(const Int4WeightOnlyConfig&) const = default;
};

enum class Granularity { kPerRow, kPerTensor };

/// fp8wo: float8 (e4m3) weights, one scale for each output channel or one for the layer.
struct Float8WeightOnlyConfig {
  Granularity granularity = Granularity::kPerRow;
  bool operator==(const Float8WeightOnlyConfig&) const = default;
};

/// fp8dq: as fp8wo, and the activations are rounded to float8 at run time, with a scale for each row or one
/// for all.
struct Float8DynamicActivationFloat8WeightConfig {
  Granularity granularity = Granularity::kPerRow;
  bool operator==(const Float8DynamicActivationFloat8WeightConfig&) const = default;
};

/// Any width from 2 to 8 bits, stored densely packed, run by the nearest kernel.
struct IntxWeightOnlyConfig {
  int bits = 4;
  int group_size = 32;  ///< 0: one scale for each output channel
  bool symmetric = true;
  bool operator==(const IntxWeightOnlyConfig&) const = default;
};

/// bf16wo: weights rounded to bfloat16, no scales; activations stay as they are, sums are in float32.
struct Bf16WeightOnlyConfig {
  bool operator==(const Bf16WeightOnlyConfig&) const = default;
};

/// noquant: the layer is not quantized. Useful in overrides.
struct NoQuantConfig {
  bool operator==(const NoQuantConfig&) const = default;
};

/// A config of any type, built in or the user's own: a type name and its fields. A value; equal configs have
/// equal keys, whether they were made from a struct, from a scheme's name or from JSON.
class HALFTONE_API QuantConfig {
 public:
  QuantConfig(const Int8WeightOnlyConfig& config);                   // NOLINT(google-explicit-constructor)
  QuantConfig(const Int8DynamicActivationInt8WeightConfig& config);  // NOLINT(google-explicit-constructor)
  QuantConfig(const Int4WeightOnlyConfig& config);                   // NOLINT(google-explicit-constructor)
  QuantConfig(const Float8WeightOnlyConfig& config);                 // NOLINT(google-explicit-constructor)
  QuantConfig(
      const Float8DynamicActivationFloat8WeightConfig& config);  // NOLINT(google-explicit-constructor)
  QuantConfig(const IntxWeightOnlyConfig& config);               // NOLINT(google-explicit-constructor)
  QuantConfig(const Bf16WeightOnlyConfig& config);               // NOLINT(google-explicit-constructor)
  QuantConfig(const NoQuantConfig& config);                      // NOLINT(google-explicit-constructor)
  /// A scheme by one of its names: "int8wo", "int4weightonly", "int4wo:64" (groups of 64), …
  /// kInvalidArgument, listing the names and the nearest; kUnsupported, with the command that does it, for
  /// one of schemes_without_config().
  QuantConfig(std::string_view scheme);  // NOLINT(google-explicit-constructor)
  QuantConfig(const char* scheme)
      : QuantConfig(std::string_view(scheme)) {}  // NOLINT(google-explicit-constructor)

  /// A registered type by its name, with fields as a JSON object; those left out have their defaults.
  /// kInvalidArgument for an unknown type or field, and for a value that the type refuses.
  static QuantConfig of_type(std::string_view type, std::string_view fields_json = "{}");
  /// What to_json() gave: {"type": …, field: …}.
  static QuantConfig from_json(std::string_view json);

  const std::string& type() const { return type_; }  ///< "Int8WeightOnlyConfig"; stands in files
  const std::string& fields() const {
    return fields_;
  }  ///< canonical JSON, keys sorted, no spaces: all fields but "rounding" where it is "nearest"
  std::string to_json() const;  ///< canonical: type and fields()
  /// The type and those fields that differ from the default: "Int4WeightOnlyConfig(group_size=64)".
  std::string describe() const;
  /// The type and 16 hexadecimal digits of the SHA-256 of to_json(); stable across versions and machines.
  std::string key() const;
  bool is_noquant() const;
  bool operator==(const QuantConfig&) const = default;

  /// The struct that this config was made from, or nothing if it is of another type.
  template <typename Config>
  std::optional<Config> as() const;

 private:
  QuantConfig(std::string type, std::string fields) : type_(std::move(type)), fields_(std::move(fields)) {}
  std::string type_;
  std::string fields_;
};

/// A name of a config.
struct Scheme {
  std::vector<std::string> names;  ///< the short one first: "int8wo", "int8weightonly"
  QuantConfig config;
  std::string weights;      ///< description, for display
  std::string activations;  ///< of activations, for display
  double bits_per_weight;   ///< stored, scales included, for a layer of 4096 inputs
};

/// The built-in schemes, in the order in which they are listed.
HALFTONE_API const std::vector<Scheme>& schemes();

/// A scheme that is no config of weights. Every command knows its name; where it cannot be done, the refusal
/// says how it is.
struct SchemeWithoutConfig {
  std::string name;         ///< "int8static"
  bool needs_data = false;  ///< to calibrate with; else it measures
  std::string weights;      ///< as in Scheme
  std::string activations;  ///< likewise
  double bits_per_weight;   ///< likewise; 0: that depends
  std::string how;          ///< "needs data …: call quantize_static() of …, or run: halftone ptq …"
};
HALFTONE_API const std::vector<SchemeWithoutConfig>& schemes_without_config();

/// The short name of the config's scheme; describe() of one that has none.
HALFTONE_API std::string scheme_name(const QuantConfig& config);

}  // namespace halftone
