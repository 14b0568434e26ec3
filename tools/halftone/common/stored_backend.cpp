#include "common/stored_backend.h"

#include "common/model_file.h"
#include "halftone/checkpoint/checkpoint.h"

namespace halftone::cli {

std::optional<Backend> try_stored_backend(const ModelOptions& options) {
  if (prepare_to_open(options) != ModelFileKind::kHt) return std::nullopt;
  if (verify_checkpoint(options.path, VerifyDepth::kMetadata).backend.empty()) return std::nullopt;
  Backend backend = load(options.path, {.map = options.map});
  backend.deploy();
  return backend;
}

}  // namespace halftone::cli
