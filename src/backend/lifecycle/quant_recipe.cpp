// Quantized models as a lifecycle backend: quantize_, then the halftone compiler.
#include <nlohmann/json.hpp>

#include "backend/lifecycle/recipe_config.h"
#include "base/errors.h"

namespace halftone {
namespace {

constexpr const char* kType = "QuantBackend";
constexpr const char* kDefaultQuantization = "fp8wo";

class QuantRecipe final : public BackendRecipe {
 public:
  explicit QuantRecipe(QuantConfig config) : config_(std::move(config)) {}
  std::string type() const override { return kType; }
  std::string config() const override {
    return nlohmann::json{{"quantization_config", nlohmann::json::parse(config_.to_json())}}.dump();
  }
  std::string describe_config() const override {
    return fmt::format("quantization_config={}", config_.describe());
  }
  ReadyModel prepare(const std::shared_ptr<const GraphModule>& original, const std::vector<Sample>& samples,
                     const std::string&) const override {
    return lifecycle::compiled(lifecycle::quantized_copy(*original, config_), samples);
  }

 private:
  QuantConfig config_;
};

QuantBackendConfig parse(std::string_view json) {
  const nlohmann::json fields = lifecycle::parse_config(kType, json, {"quantization", "quantization_config"});
  QuantBackendConfig config;
  if (fields.contains("quantization")) {
    if (!fields["quantization"].is_string())
      fail(ErrorCode::kInvalidArgument, "config of {}: quantization must be the name of a scheme, not {}",
           kType, fields["quantization"].dump());
    config.quantization = fields["quantization"].get<std::string>();
  }
  if (fields.contains("quantization_config"))
    config.quantization_config = QuantConfig::from_json(fields["quantization_config"].dump());
  return config;
}

}  // namespace

std::shared_ptr<const BackendRecipe> quant_backend_recipe() {
  return quant_backend_recipe({.quantization = kDefaultQuantization, .quantization_config = {}});
}

std::shared_ptr<const BackendRecipe> quant_backend_recipe(const QuantBackendConfig& config) {
  if (config.quantization && config.quantization_config)
    fail(ErrorCode::kInvalidArgument,
         "config of {}: Only one of quantization or quantization_config should be provided", kType);
  if (!config.quantization && !config.quantization_config)
    fail(ErrorCode::kInvalidArgument,
         "config of {}: Either quantization or quantization_config should be provided", kType);
  return std::make_shared<const QuantRecipe>(config.quantization_config
                                                 ? *config.quantization_config
                                                 : QuantConfig(std::string_view(*config.quantization)));
}

std::vector<BackendType> lifecycle::quant_backend_types() {
  // Without any field the default is used.
  return {
      {kType, "quantized weights (int8, int4, float8, or a config of your own)", [](std::string_view json) {
         const QuantBackendConfig config = parse(json);
         return config.quantization || config.quantization_config ? quant_backend_recipe(config)
                                                                  : quant_backend_recipe();
       }}};
}

}  // namespace halftone
