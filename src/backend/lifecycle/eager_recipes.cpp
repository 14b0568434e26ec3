// The recipes that take a graph as it is: the interpreter, and TorchScript.
#include <nlohmann/json.hpp>

#include "backend/lifecycle/recipe_config.h"
#include "backend/torch_script.h"

namespace halftone {
namespace {

constexpr const char* kEager = "EagerBackend";
constexpr const char* kTorchScript = "TorchScriptBackend";

class PlainRecipe final : public BackendRecipe {
 public:
  using Prepare = ReadyModel (*)(std::shared_ptr<GraphModule>);
  PlainRecipe(const char* type, Prepare prepare) : type_(type), prepare_(prepare) {}
  std::string type() const override { return type_; }
  std::string config() const override { return "{}"; }
  std::string describe_config() const override { return {}; }
  ReadyModel prepare(const std::shared_ptr<const GraphModule>& original, const std::vector<Sample>&,
                     const std::string&) const override {
    return prepare_(original->clone());
  }

 private:
  const char* type_;
  Prepare prepare_;
};

template <typename Make>
BackendType without_fields(const char* type, const char* what, Make make) {
  return {type, what, [type, make](std::string_view json) {
            lifecycle::parse_config(type, json, {});
            return make();
          }};
}

}  // namespace

std::shared_ptr<const BackendRecipe> eager_backend_recipe() {
  return std::make_shared<const PlainRecipe>(kEager, [](std::shared_ptr<GraphModule> module) {
    return ReadyModel{std::move(module), nullptr};
  });
}

std::shared_ptr<const BackendRecipe> torch_script_backend_recipe() {
  return std::make_shared<const PlainRecipe>(kTorchScript, [](std::shared_ptr<GraphModule> module) {
    auto executor = torch_script_executor(module->graph().clone());
    return ReadyModel{std::move(module), std::move(executor)};
  });
}

std::vector<BackendType> lifecycle::eager_backend_types() {
  return {without_fields(kEager, "operator by operator, as PyTorch would", eager_backend_recipe),
          without_fields(kTorchScript, "TorchScript, run by its own executor", torch_script_backend_recipe)};
}

}  // namespace halftone
