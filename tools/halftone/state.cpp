#include "state.h"

#include "halftone/error.h"

namespace halftone::cli {

std::vector<std::string> state_names(const Session& session) {
  std::vector<std::string> names;
  for (const GraphInput& input : session.module().graph().inputs()) {
    if (input.kind == InputKind::kUser) continue;
    try {
      session.state(input.target);
      names.push_back(input.target);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
    }
  }
  return names;
}

}  // namespace halftone::cli
