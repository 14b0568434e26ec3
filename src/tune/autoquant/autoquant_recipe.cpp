// Autoquant as a lifecycle backend: plans with the samples that it is built with.
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/lifecycle/recipe_config.h"
#include "base/errors.h"
#include "base/log.h"
#include "halftone/tune/autoquant.h"
#include "tune/autoquant/planner.h"
#include "tune/samples/sample_layout.h"
#include "tune/submodules.h"

namespace halftone {
namespace {

constexpr const char* kAutoquantType = "AutoquantBackend";
// Stands in the module's notes, which files keep: a plan of fp32 leaves no other trace.
constexpr const char* kPlannedNote = "autoquant: planned";

/// Samples that a file holds as shapes alone: nothing can be run with them.
bool has_meta_tensors(const std::vector<Sample>& samples) {
  return std::any_of(samples.begin(), samples.end(), [](const Sample& sample) {
    const std::vector<c10::IValue> leaves = leaves_of(sample);
    return std::any_of(leaves.begin(), leaves.end(), [](const c10::IValue& leaf) {
      return leaf.isTensor() && leaf.toTensor().defined() && leaf.toTensor().is_meta();
    });
  });
}

class AutoquantRecipe final : public BackendRecipe {
 public:
  explicit AutoquantRecipe(AutoquantBackendConfig config) : config_(std::move(config)) {
    AutoquantOptions options;
    options.schemes = config_.schemes;
    aq::schemes_to_try(options);  // unknown names
    if (!(config_.time_limit > 0))
      fail(ErrorCode::kInvalidArgument, "config of {}: time_limit must be above 0, not {}", kAutoquantType,
           config_.time_limit);
    if (!(config_.min_cosine >= 0 && config_.min_cosine <= 1))
      fail(ErrorCode::kInvalidArgument, "config of {}: least_cosine must be from 0 to 1, not {}",
           kAutoquantType, config_.min_cosine);
  }
  std::string type() const override { return kAutoquantType; }

  std::string config() const override {
    return nlohmann::json{{"schemes", config_.schemes},
                          {"least_cosine", config_.min_cosine},
                          {"time_limit", config_.time_limit},
                          {"race", config_.final_comparison}}
        .dump();
  }

  std::string describe_config() const override {
    const AutoquantBackendConfig usual;
    std::vector<std::string> changed;
    if (config_.schemes != usual.schemes)
      changed.push_back(fmt::format("schemes=[{}]", fmt::join(config_.schemes, ", ")));
    if (config_.min_cosine != usual.min_cosine)
      changed.push_back(fmt::format("least_cosine={}", config_.min_cosine));
    if (config_.time_limit != usual.time_limit)
      changed.push_back(fmt::format("time_limit={}", config_.time_limit));
    if (config_.final_comparison != usual.final_comparison)
      changed.push_back(fmt::format("race={}", config_.final_comparison));
    return fmt::format("{}", fmt::join(changed, ", "));
  }

  ReadyModel prepare(const std::shared_ptr<const GraphModule>& original, const std::vector<Sample>& samples,
                     const std::string& cache_dir) const override {
    auto module = original->clone();
    const auto& notes = module->notes;
    const bool planned = has_quantized_layers(module->graph()) ||
                         std::find(notes.begin(), notes.end(), kPlannedNote) != notes.end();
    if (!planned && has_meta_tensors(samples)) {
      log(LogLevel::kWarning, "{}: {} has no data in its samples to plan with; it stays in fp32",
          kAutoquantType, module->name);
    } else if (!planned) {
      const AutoquantPlan plan = plan_autoquant(module, samples, options(cache_dir));
      if (plan.quantizes()) apply_plan(*module, plan);
      module->notes.emplace_back(kPlannedNote);
    }
    return lifecycle::compiled(std::move(module), samples);
  }

 private:
  AutoquantOptions options(const std::string& cache_dir) const {
    AutoquantOptions options;
    options.schemes = config_.schemes;
    options.min_cosine = config_.min_cosine;
    options.time_limit = config_.time_limit;
    options.final_comparison = config_.final_comparison;
    options.error_on_unseen = false;
    options.cache_dir = cache_dir;
    return options;
  }

  AutoquantBackendConfig config_;
};

[[noreturn]] void refuse_field(std::string_view field, std::string_view expected,
                               const nlohmann::json& value) {
  fail(ErrorCode::kInvalidArgument, "config of {}: {} must be {}, not {}", kAutoquantType, field, expected,
       value.dump());
}

double number_field(const nlohmann::json& fields, const char* name, double otherwise) {
  if (!fields.contains(name)) return otherwise;
  if (!fields[name].is_number()) refuse_field(name, "a number", fields[name]);
  return fields[name].get<double>();
}

AutoquantBackendConfig parse_autoquant_config(std::string_view json) {
  const nlohmann::json fields =
      lifecycle::parse_config(kAutoquantType, json, {"schemes", "least_cosine", "time_limit", "race"});
  AutoquantBackendConfig config;
  if (fields.contains("schemes")) {
    const nlohmann::json& list = fields["schemes"];
    const bool sound =
        list.is_array() &&
        std::all_of(list.begin(), list.end(), [](const nlohmann::json& name) { return name.is_string(); });
    if (!sound) refuse_field("schemes", "a list of names", list);
    config.schemes = list.get<std::vector<std::string>>();
  }
  config.min_cosine = number_field(fields, "least_cosine", config.min_cosine);
  config.time_limit = number_field(fields, "time_limit", config.time_limit);
  if (fields.contains("race")) {
    if (!fields["race"].is_boolean()) refuse_field("race", "true or false", fields["race"]);
    config.final_comparison = fields["race"].get<bool>();
  }
  return config;
}

// Files name the type, and are loaded by programs that plan nothing.
const bool kAutoquantRegistered = [] {
  register_backend_type({kAutoquantType, "a measured scheme for each layer", [](std::string_view json) {
                           return autoquant_backend_recipe(parse_autoquant_config(json));
                         }});
  return true;
}();

}  // namespace

std::shared_ptr<const BackendRecipe> autoquant_backend_recipe(const AutoquantBackendConfig& config) {
  return std::make_shared<const AutoquantRecipe>(config);
}

}  // namespace halftone
