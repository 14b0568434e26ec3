// The halftone compiler as a lifecycle backend: fp32, or with bf16 weights.
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "backend/lifecycle/recipe_config.h"
#include "base/errors.h"

namespace halftone {
namespace {

using Precision = HalftoneBackendConfig::Precision;
constexpr const char* kType = "HalftoneBackend";

const char* name_of(Precision precision) {
  return precision == Precision::kFloat32 ? "float32" : "bfloat16";
}

class HalftoneRecipe final : public BackendRecipe {
 public:
  explicit HalftoneRecipe(const HalftoneBackendConfig& config) : config_(config) {
    if (config.threads < 0)
      fail(ErrorCode::kInvalidArgument, "config of {}: threads must be 0 or more, not {}", kType,
           config.threads);
    if (config.precision == Precision::kBFloat16) weights_ = QuantConfig("bf16wo");
  }
  std::string type() const override { return kType; }
  std::string config() const override {
    return nlohmann::json{{"precision", name_of(config_.precision)}, {"threads", config_.threads}}.dump();
  }
  std::string describe_config() const override {
    std::vector<std::string> changed;
    if (config_.precision != Precision::kFloat32)
      changed.push_back(fmt::format("precision={}", name_of(config_.precision)));
    if (config_.threads != 0) changed.push_back(fmt::format("threads={}", config_.threads));
    return fmt::format("{}", fmt::join(changed, ", "));
  }
  ReadyModel prepare(const std::shared_ptr<const GraphModule>& original, const std::vector<Sample>& samples,
                     const std::string&) const override {
    auto module = weights_ ? lifecycle::quantized_copy(*original, *weights_) : original->clone();
    return lifecycle::compiled(std::move(module), samples, config_.threads);
  }

 private:
  HalftoneBackendConfig config_;
  std::optional<QuantConfig> weights_;
};

HalftoneBackendConfig parse(std::string_view json) {
  const nlohmann::json fields = lifecycle::parse_config(kType, json, {"precision", "threads"});
  HalftoneBackendConfig config;
  if (fields.contains("precision")) {
    const nlohmann::json& precision = fields["precision"];
    if (precision != "float32" && precision != "bfloat16")
      fail(ErrorCode::kInvalidArgument, "config of {}: precision must be \"float32\" or \"bfloat16\", not {}",
           kType, precision.dump());
    if (precision == "bfloat16") config.precision = Precision::kBFloat16;
  }
  if (fields.contains("threads")) {
    constexpr int64_t kMax = 1 << 16;
    const nlohmann::json& threads = fields["threads"];
    if (!threads.is_number_integer() || threads < 0 || threads > kMax)
      fail(ErrorCode::kInvalidArgument, "config of {}: threads must be a number from 0 to {}, not {}", kType,
           kMax, threads.dump());
    config.threads = threads.get<int>();
  }
  return config;
}

}  // namespace

std::shared_ptr<const BackendRecipe> halftone_backend_recipe(const HalftoneBackendConfig& config) {
  return std::make_shared<const HalftoneRecipe>(config);
}

std::vector<BackendType> lifecycle::halftone_backend_types() {
  return {{kType, "native kernels and planned memory; fp32 or bf16 weights",
           [](std::string_view json) { return halftone_backend_recipe(parse(json)); }}};
}

}  // namespace halftone
