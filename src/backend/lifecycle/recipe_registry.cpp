// The registry of backend types by name.
#include <fmt/ranges.h>

#include <map>
#include <mutex>
#include <shared_mutex>

#include "backend/lifecycle/recipe_config.h"
#include "base/errors.h"
#include "base/nearest.h"

namespace halftone {
namespace {

class RecipeRegistry {
 public:
  /// Made at the first use and never destroyed, as the registry of compilers.
  static RecipeRegistry& instance() {
    static RecipeRegistry& registry = *new RecipeRegistry();
    return registry;
  }

  void add(BackendType type) {
    if (type.type.empty()) fail(ErrorCode::kInvalidArgument, "a backend type needs a name");
    if (!type.make) fail(ErrorCode::kInvalidArgument, "backend type \"{}\" has no function", type.type);
    const std::unique_lock lock(mutex_);
    const std::string name = type.type;
    if (!types_.emplace(name, std::move(type)).second)
      fail(ErrorCode::kInvalidArgument, "there is a backend type \"{}\" already", name);
  }

  BackendType find(std::string_view name) const {
    const std::shared_lock lock(mutex_);
    const auto found = types_.find(name);
    if (found != types_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [other, type] : types_) known.push_back(other);
    fail(ErrorCode::kNotFound, "there is no backend type \"{}\"{}; there are {}", name,
         did_you_mean(name, known), fmt::join(nearest_first(name, known), ", "));
  }

  std::vector<BackendType> list() const {
    const std::shared_lock lock(mutex_);
    std::vector<BackendType> all;
    for (const auto& [name, type] : types_) all.push_back(type);
    return all;
  }

 private:
  RecipeRegistry() {
    for (const auto& some : {lifecycle::eager_backend_types, lifecycle::halftone_backend_types,
                             lifecycle::quant_backend_types, lifecycle::aot_inductor_backend_types}) {
      for (BackendType& type : some()) add(std::move(type));
    }
  }

  mutable std::shared_mutex mutex_;
  std::map<std::string, BackendType, std::less<>> types_;
};

}  // namespace

void register_backend_type(BackendType type) {
  RecipeRegistry::instance().add(std::move(type));
}

std::shared_ptr<const BackendRecipe> make_backend_recipe(std::string_view type,
                                                         std::string_view config_json) {
  auto recipe = RecipeRegistry::instance().find(type).make(config_json);
  if (!recipe) fail(ErrorCode::kInternal, "backend type \"{}\" made nothing", type);
  return recipe;
}

std::vector<BackendType> backend_types() {
  return RecipeRegistry::instance().list();
}

}  // namespace halftone
