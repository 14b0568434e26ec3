// The configs that come with Halftone, by name.
#include "quant/backend_config/builtin.h"

#include <fmt/ranges.h>

#include "base/errors.h"

namespace halftone {
namespace backend_config {
namespace {

/// `operation`: what operations without a weight of their own declare.
BackendConfig with_everything(std::string name, const DTypeConfig& operation) {
  const DTypes dynamic = {dynamic_int8(), dynamic_float16()};
  BackendConfig config(std::move(name));
  for (const Configs& family :
       {convolutions({weighted_int8()}), linears({weighted_int8(), dynamic_int8(), dynamic_float16()}),
        sums_after_products({weighted_int8()}), binary_operations({operation}),
        operations_with_results_of_their_own({plain_int8()}), operations_that_share({plain_int8()}),
        operations_with_fixed_results(operation), tensor_questions({plain_int8()}),
        batch_norms({plain_int8()}), layer_norms(), recurrent_layers(dynamic), embeddings()})
    config.set_backend_pattern_configs(family);
  return config;
}

/// torch.ao's config for x86 gives matmul a weight's dtype too.
BackendConfig x86_config() {
  BackendConfig config = with_everything("x86", weighted_int8());
  config.set_backend_pattern_config(BackendPatternConfig("torch.matmul").add_dtype_config(weighted_int8()));
  return config;
}

/// What the interpreter runs as quantize, dequantize and float operations: signed activations as well.
BackendConfig reference_config() {
  BackendConfig config = with_everything("reference", plain_int8());
  for (BackendPatternConfig each : config.configs()) {
    for (DTypeConfig dtype : std::vector<DTypeConfig>(each.dtype_configs())) {
      if (dtype.input.dtype != ConfigDType::kQUInt8 || dtype.input.scale_exact_match) continue;
      dtype.input.dtype = ConfigDType::kQInt8;
      if (dtype.output.dtype == ConfigDType::kQUInt8) dtype.output.dtype = ConfigDType::kQInt8;
      each.add_dtype_config(dtype);
    }
    config.set_backend_pattern_config(std::move(each));
  }
  return config;
}

}  // namespace
}  // namespace backend_config

std::vector<std::string> builtin_backend_configs() {
  return {"native", "reference", "x86"};
}

BackendConfig builtin_backend_config(std::string_view name) {
  if (name == "native") return backend_config::with_everything("native", backend_config::plain_int8());
  if (name == "x86") return backend_config::x86_config();
  if (name == "reference") return backend_config::reference_config();
  fail(ErrorCode::kInvalidArgument, "there is no backend config \"{}\": there are {}", name,
       fmt::join(builtin_backend_configs(), ", "));
}

}  // namespace halftone
