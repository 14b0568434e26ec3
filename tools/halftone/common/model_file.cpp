#include "common/model_file.h"

#include "halftone/capture/capture.h"
#include "halftone/graph/limits.h"

namespace halftone::cli {

ModelFileKind prepare_to_open(const ModelOptions& options) {
  const ModelFileKind kind = model_file_kind(options.path);
  for (const std::string& library : options.libraries) load_operator_library(library);
  if (options.max_steps > 0) set_max_steps(options.max_steps);
  return kind;
}

std::shared_ptr<GraphModule> open_model(const ModelOptions& options) {
  prepare_to_open(options);
  return halftone::open_model(options.path, {.map = options.map});
}

}  // namespace halftone::cli
