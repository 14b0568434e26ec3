// Compilers by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "halftone/graph_compiler.h"

namespace halftone {

struct BackendInfo {
  std::string name;
  /// "debug", "experimental", "legacy", …; "freezes": the weights' content is compiled in.
  std::vector<std::string> tags;
  std::string what;  ///< one-line description
};

/// kInvalidArgument if the name is taken or empty. Thread-safe, as everything here.
void register_backend(BackendInfo info, GraphCompiler compiler);
/// kNotFound with the known names, the nearest first.
GraphCompiler lookup_backend(std::string_view name);
/// By name; without those that have one of the tags.
std::vector<BackendInfo> list_backends(const std::vector<std::string>& exclude_tags = {"debug",
                                                                                       "experimental"});

/// The graph as TorchScript, run by its executor.
GraphCompiler ts_compiler();

}  // namespace halftone
