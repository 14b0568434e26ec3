#include "stored_backend.h"

#include <filesystem>

#include "halftone/checkpoint.h"
#include "model_file.h"

namespace halftone::cli {

std::optional<Backend> try_stored_backend(const ModelOptions& options) {
  prepare_to_open(options);
  if (std::filesystem::path(options.path).extension() != ".ht") return std::nullopt;
  if (verify_checkpoint(options.path, VerifyDepth::kMetadata).backend.empty()) return std::nullopt;
  Backend backend = load(options.path, {.map = options.map});
  backend.deploy();
  return backend;
}

}  // namespace halftone::cli
