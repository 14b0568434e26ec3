// The calls of Backend: each asks the table of states, then works under the gate.
#include <fstream>
#include <nlohmann/json.hpp>

#include "backend/lifecycle/shared.h"
#include "base/errors.h"
#include "base/sha256.h"

namespace halftone {
Backend::Backend(std::shared_ptr<const BackendRecipe> recipe)
    : shared_(
          std::make_shared<Shared>(required(std::move(recipe), "Backend: the kind"), BackendState::kInit)) {}
Backend::Backend(std::string_view type, std::string_view config_json)
    : Backend(make_backend_recipe(type, config_json)) {}
Backend::Backend(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

Backend Backend::build(const ModelSource& model, const GraphSpec& spec, const std::vector<Sample>& samples,
                       c10::Device device, const std::string& cache_dir) {
  shared_->build(model, spec, samples, device, cache_dir);
  return *this;
}
void Backend::activate() {
  shared_->activate();
}
void Backend::deactivate() {
  shared_->deactivate();
}
void Backend::deploy(std::optional<c10::Device> device) {
  shared_->deploy(device);
}
c10::IValue Backend::infer(std::vector<c10::IValue> args, std::map<std::string, c10::IValue> kwargs) const {
  return shared_->infer(std::move(args), std::move(kwargs));
}
Session Backend::session() const {
  return shared_->session();
}

BackendState Backend::state() const {
  return shared_->gate.state();
}
bool Backend::is_active() const {
  return state() == BackendState::kActive;
}
std::string Backend::name() const {
  return shared_->type;
}
c10::Device Backend::device() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->device;
}
std::string Backend::tuning() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->tuning;
}

std::string Backend::config() const {
  return shared_->recipe->config();
}
std::string Backend::describe() const {
  return fmt::format("{}({})", shared_->type, shared_->recipe->describe_config());
}
std::string Backend::key() const {
  const std::string json = config();
  return fmt::format("{}_{}", shared_->type, to_hex(sha256(std::as_bytes(std::span(json)))).substr(0, 16));
}

void Backend::config_to_json(const std::string& path) const {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << nlohmann::json::parse(config()).dump(2) << '\n';
  file.close();
  if (!file) fail(ErrorCode::kIo, "{}: the config of backend {} could not be written", path, shared_->type);
}

}  // namespace halftone
