// Backends as plain data, and back.
#include "backend/lifecycle/shared.h"
#include "base/errors.h"

namespace halftone {

BackendDict Backend::Shared::to_dict() const {
  const std::lock_guard lock(mutex);
  require(LifecycleCall::kToDict);
  if (const std::string why = recipe->refuse_to_save(); !why.empty())
    fail(ErrorCode::kUnsupported, "backend {} cannot be saved: {}", type, why);
  if (!origin.graph) {
    fail(ErrorCode::kUnsupported,
         "backend {}: the original module is not there any more, only its converted weights", type);
  }
  BackendDict dict;
  dict.type = type;
  dict.config = recipe->config();
  dict.module = state_of(origin);
  dict.data = samples;
  dict.device = device;
  dict.spec = origin.spec;
  return dict;
}

BackendDict Backend::to_dict() const {
  return shared_->to_dict();
}

Backend Backend::from_dict(const std::optional<ModelSource>& module, const BackendDict& dict,
                           std::string_view type, DictReport* report) {
  if (dict.type != type)
    fail(ErrorCode::kInvalidArgument, "invalid dict type: \"{}\", expected \"{}\"", dict.type, type);
  std::shared_ptr<const BackendRecipe> recipe;
  try {
    recipe = make_backend_recipe(dict.type, dict.config);
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidArgument, error.what());
  }
  if (const std::string why = recipe->refuse_to_save(); !why.empty())
    fail(ErrorCode::kUnsupported, "backend {} cannot be loaded: {}", dict.type, why);
  if (!module || (!module->graph && !module->module))
    fail(ErrorCode::kInvalidArgument, "a module is required to create backend {} from a dict", dict.type);
  try {
    DictReport found = lifecycle::load_state(*module, dict.module);
    auto shared = std::make_shared<Shared>(std::move(recipe), BackendState::kCheckpointLoaded);
    shared->origin = lifecycle::take_origin(*module, dict.spec, dict.data);
    shared->samples = dict.data;
    shared->device = dict.device;
    if (report) *report = std::move(found);
    return Backend(std::move(shared));
  } catch (const Error& error) {
    throw error.with_context(dict.type);
  }
}

}  // namespace halftone
