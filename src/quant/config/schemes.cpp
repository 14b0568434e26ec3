// The built-in schemes.
#include <fmt/ranges.h>

#include "base/errors.h"
#include "base/nearest.h"
#include "halftone/quant_config.h"

namespace halftone {

namespace {

/// Bits of one scale (32) spread over the weights that share it.
constexpr double shared_by(int weights) {
  return 32.0 / weights;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Scheme& scheme : schemes()) names.insert(names.end(), scheme.names.begin(), scheme.names.end());
  return names;
}

const QuantConfig& config_named(std::string_view name) {
  for (const Scheme& scheme : schemes()) {
    for (const std::string& each : scheme.names) {
      if (each == name) return scheme.config;
    }
  }
  const std::vector<std::string> known = all_names();
  // It is a scheme's name in torchao's world; here it measures, so it cannot be a config.
  if (name == "autoquant") {
    fail(ErrorCode::kUnsupported,
         "\"autoquant\" chooses a scheme for each layer by measuring and is no config: call autoquant() of "
         "halftone/autoquant.h, or run: halftone autoquant MODEL -o OUT.ht; known configs: {}",
         fmt::join(known, ", "));
  }
  fail(ErrorCode::kInvalidArgument, "unknown scheme \"{}\"{}; known: {}", name, did_you_mean(name, known),
       fmt::join(nearest_first(name, known), ", "));
}

}  // namespace

const std::vector<Scheme>& schemes() {
  constexpr int kInputs = 4096;
  static const std::vector<Scheme> table = {
      {{"int8wo", "int8weightonly"},
       Int8WeightOnlyConfig{},
       "int8, a scale per output",
       "kept",
       8 + shared_by(kInputs)},
      {{"int8dq", "int8dynamic"},
       Int8DynamicActivationInt8WeightConfig{},
       "int8, a scale per output",
       "uint8 per row, at run time",
       8 + shared_by(kInputs)},
      {{"int4wo", "int4weightonly"},
       Int4WeightOnlyConfig{},
       "int4, a scale per 32 inputs",
       "kept",
       4 + shared_by(32)},
      {{"fp8wo", "float8weightonly"},
       Float8WeightOnlyConfig{},
       "float8 e4m3, a scale per output",
       "kept",
       8 + shared_by(kInputs)},
      {{"fp8dq", "float8dynamic"},
       Float8DynamicActivationFloat8WeightConfig{},
       "float8 e4m3, a scale per output",
       "float8 e4m3 per row, at run time",
       8 + shared_by(kInputs)},
      {{"bf16wo", "bf16weightonly"}, Bf16WeightOnlyConfig{}, "bfloat16, no scales", "kept", 16},
      {{"noquant", "none"}, NoQuantConfig{}, "kept", "kept", 32},
  };
  return table;
}

QuantConfig::QuantConfig(std::string_view scheme) : QuantConfig(config_named(scheme)) {}

}  // namespace halftone
