// Static int8 as a lifecycle backend: calibrates with the samples that it is built with.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/lifecycle/recipe_config.h"
#include "base/errors.h"
#include "halftone/ptq/static_int8.h"
#include "halftone/tune/samples.h"
#include "tune/samples/sample_layout.h"
#include "tune/static_int8/not_made_for.h"

namespace halftone {
namespace {

constexpr const char* kStaticInt8Type = "StaticInt8Backend";
constexpr const char* kStaticInt8Note = "static int8: calibrated";

bool is_calibrated(const GraphModule& module) {
  return std::find(module.notes.begin(), module.notes.end(), kStaticInt8Note) != module.notes.end();
}

bool has_convolution(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const auto& node) { return node->target().find("conv") != std::string::npos; });
}

class StaticInt8Recipe final : public BackendRecipe {
 public:
  explicit StaticInt8Recipe(StaticInt8BackendConfig config) : config_(std::move(config)) {
    static_int8_mapping(config_.bits);               // widths that there are not
    builtin_backend_config(config_.backend_config);  // unknown names
  }
  std::string type() const override { return kStaticInt8Type; }

  std::string config() const override {
    return nlohmann::json{{"activation_bits", config_.bits.activation},
                          {"weight_bits", config_.bits.weight},
                          {"backend_config", config_.backend_config},
                          {"only_convolutions", config_.only_convolutions}}
        .dump();
  }

  std::string describe_config() const override {
    std::string text =
        fmt::format("activation_bits={}, weight_bits={}", config_.bits.activation, config_.bits.weight);
    if (config_.backend_config != StaticInt8BackendConfig{}.backend_config)
      text += fmt::format(", backend_config={}", config_.backend_config);
    return text;
  }

  std::string refusal(const GraphModule& module) const {
    if (!config_.only_convolutions || has_convolution(module.graph())) return {};
    return "no convolution: int8dq serves it, and needs no calibration";
  }

  ReadyModel prepare(const std::shared_ptr<const GraphModule>& original, const std::vector<Sample>& samples,
                     const std::string&) const override {
    // From a file: converted when it was saved.
    if (is_calibrated(*original)) return lifecycle::compiled(original->clone(), samples);
    if (const std::string reason = refusal(*original); !reason.empty())
      fail(ErrorCode::kUnsupported, "{}: {}", original->name, reason);
    std::vector<std::vector<c10::IValue>> calls;
    for (const Sample& sample : samples) calls.push_back(flat_inputs(*original, sample));
    const bool without_data = std::any_of(calls.begin(), calls.end(), [](const auto& call) {
      return std::any_of(call.begin(), call.end(), [](const c10::IValue& value) {
        return value.isTensor() && value.toTensor().defined() && value.toTensor().is_meta();
      });
    });
    if (without_data)
      fail(ErrorCode::kInvalidArgument,
           "{}: {} has samples without data; nothing can be calibrated with them", kStaticInt8Type,
           original->name);
    StaticInt8Options options;
    options.mapping = static_int8_mapping(config_.bits);
    options.backend_config = builtin_backend_config(config_.backend_config);
    options.error_calls = 0;
    auto module = quantize_static(*original, calls, options).module;
    module->notes.emplace_back(kStaticInt8Note);
    return lifecycle::compiled(std::move(module), samples);
  }

 private:
  StaticInt8BackendConfig config_;
};

int bits_field(const nlohmann::json& fields, const char* name, int otherwise) {
  if (!fields.contains(name)) return otherwise;
  if (!fields[name].is_number_integer())
    fail(ErrorCode::kInvalidArgument, "config of {}: {} must be 7 or 8, not {}", kStaticInt8Type, name,
         fields[name].dump());
  return fields[name].get<int>();
}

StaticInt8BackendConfig parse_static_int8_config(std::string_view json) {
  const nlohmann::json fields = lifecycle::parse_config(
      kStaticInt8Type, json, {"activation_bits", "weight_bits", "backend_config", "only_convolutions"});
  StaticInt8BackendConfig config;
  config.bits.activation = bits_field(fields, "activation_bits", config.bits.activation);
  config.bits.weight = bits_field(fields, "weight_bits", config.bits.weight);
  if (fields.contains("backend_config")) {
    if (!fields["backend_config"].is_string())
      fail(ErrorCode::kInvalidArgument, "config of {}: backend_config must be a name, not {}",
           kStaticInt8Type, fields["backend_config"].dump());
    config.backend_config = fields["backend_config"].get<std::string>();
  }
  if (fields.contains("only_convolutions")) {
    if (!fields["only_convolutions"].is_boolean())
      fail(ErrorCode::kInvalidArgument, "config of {}: only_convolutions must be true or false, not {}",
           kStaticInt8Type, fields["only_convolutions"].dump());
    config.only_convolutions = fields["only_convolutions"].get<bool>();
  }
  return config;
}

const bool kStaticInt8Registered = [] {
  register_backend_type(
      {kStaticInt8Type, "int8 weights and activations, calibrated",
       [](std::string_view json) { return static_int8_backend_recipe(parse_static_int8_config(json)); }});
  return true;
}();

}  // namespace

std::string not_made_for(const BackendRecipe& recipe, const GraphModule& module) {
  const auto* mine = dynamic_cast<const StaticInt8Recipe*>(&recipe);
  return mine != nullptr ? mine->refusal(module) : std::string();
}

std::shared_ptr<const BackendRecipe> static_int8_backend_recipe(const StaticInt8BackendConfig& config) {
  return std::make_shared<const StaticInt8Recipe>(config);
}

}  // namespace halftone
