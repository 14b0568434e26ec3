// The backend that a .ht file was saved with, for halftone run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "halftone/backend_kind.h"

namespace halftone::cli {

struct StoredBackend {
  std::string describe;  ///< "QuantBackend(quantization_config=…)"
  ReadyModel ready;      ///< what a deployed backend would run
};

/// Nothing where the file is no .ht, or where no backend was saved with it.
bool has_stored_backend(const std::string& path);
/// Makes the model ready as load() and deploy() would. kInvalidArgument where there is none in the file.
StoredBackend ready_stored_backend(const std::string& path, const std::shared_ptr<const GraphModule>& module);

}  // namespace halftone::cli
