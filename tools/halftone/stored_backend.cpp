#include "stored_backend.h"

#include <fmt/format.h>

#include <filesystem>

#include "halftone/checkpoint.h"
#include "halftone/error.h"

namespace halftone::cli {

bool has_stored_backend(const std::string& path) {
  return std::filesystem::path(path).extension() == ".ht" &&
         !verify_checkpoint(path, VerifyDepth::kMetadata).backend.empty();
}

StoredBackend ready_stored_backend(const std::string& path,
                                   const std::shared_ptr<const GraphModule>& module) {
  const CheckpointInfo info = verify_checkpoint(path, VerifyDepth::kMetadata);
  if (info.backend.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: no backend was saved with it: give --backend eager or halftone", path));
  }
  const auto kind = make_backend_kind(info.backend.substr(0, info.backend.find('(')), info.backend_config);
  return {info.backend, kind->prepare(module, {}, {})};
}

}  // namespace halftone::cli
