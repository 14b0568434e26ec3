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
  // As load() does it: what a file may not hold is not run, whatever its config says.
  if (!info.findings.empty()) {
    throw Error(ErrorCode::kCorruptFile, fmt::format("{}: {}", path, fmt::join(info.findings, "; ")));
  }
  const auto kind = make_backend_kind(info.backend.substr(0, info.backend.find('(')), info.backend_config);
  const std::string refusal = kind->refuse_to_save();
  if (!refusal.empty()) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: a {} may not come from a file: {}", path, kind->type(), refusal));
  }
  return {info.backend, kind->prepare(module, {}, {})};
}

}  // namespace halftone::cli
