// Compilers of graphs by name. dynamo calls them backends: its names stay as aliases.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/compile/graph_compiler.h"

namespace halftone {

struct CompilerInfo {
  std::string name;
  /// "debug", "experimental", "legacy", …; "freezes": the weights' content is compiled in.
  std::vector<std::string> tags;
  std::string what;  ///< one-line description
};

/// kInvalidArgument if the name is taken or empty. Thread-safe, as everything here.
HALFTONE_API void register_compiler(CompilerInfo info, GraphCompiler compiler);
/// kNotFound with the known names, the nearest first.
HALFTONE_API GraphCompiler lookup_compiler(std::string_view name);
/// By name; without those that have one of the tags.
HALFTONE_API std::vector<CompilerInfo> list_compilers(const std::vector<std::string>& exclude_tags = {
                                                          "debug", "experimental"});

/// dynamo's names for the three.
inline void register_backend(CompilerInfo info, GraphCompiler compiler) {
  register_compiler(std::move(info), std::move(compiler));
}
inline GraphCompiler lookup_backend(std::string_view name) {
  return lookup_compiler(name);
}
inline std::vector<CompilerInfo> list_backends(const std::vector<std::string>& exclude_tags = {
                                                   "debug", "experimental"}) {
  return list_compilers(exclude_tags);
}

/// The graph as TorchScript, run by its executor.
HALFTONE_API GraphCompiler ts_compiler();

}  // namespace halftone
