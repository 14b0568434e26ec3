#include "backend/lifecycle/backend_access.h"

#include "backend/lifecycle/shared.h"
#include "base/errors.h"

namespace halftone {

BackendContent BackendAccess::content(const Backend& backend) {
  const Backend::Shared& shared = *backend.shared_;
  const std::lock_guard lock(shared.mutex);
  BackendContent content;
  content.recipe = shared.recipe;
  content.state = shared.gate.state();
  content.original = shared.origin.graph;
  content.ready = shared.ready ? shared.ready->module() : shared.stored;
  content.samples = shared.samples;
  content.device = shared.device;
  content.tuning = shared.tuning;
  return content;
}

Backend BackendAccess::loaded(BackendContent content) {
  if (!content.recipe) fail(ErrorCode::kInternal, "a loaded backend has no kind");
  if (!content.original && !content.ready)
    fail(ErrorCode::kInternal, "a loaded backend {} has no model", content.recipe->type());
  auto shared = std::make_shared<Backend::Shared>(std::move(content.recipe), BackendState::kCheckpointLoaded);
  shared->origin.graph = std::move(content.original);
  shared->stored = std::move(content.ready);
  shared->samples = std::move(content.samples);
  shared->device = content.device;
  shared->tuning = std::move(content.tuning);
  return Backend(std::move(shared));
}

Backend BackendAccess::built_like(const Backend& source, std::shared_ptr<const BackendRecipe> recipe,
                                  std::optional<ReadyModel> made, const std::string& cache_dir) {
  Backend backend(std::move(recipe));
  const Backend::Shared& shared = *source.shared_;
  const std::lock_guard lock(shared.mutex);
  backend.shared_->build(shared.origin, shared.samples, shared.device, cache_dir, std::move(made));
  return backend;
}

void BackendAccess::set_tuning(const Backend& backend, std::string json) {
  const std::lock_guard lock(backend.shared_->mutex);
  backend.shared_->tuning = std::move(json);
}

}  // namespace halftone
