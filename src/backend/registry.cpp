// The registry of graph compilers by name.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "backend/builtin_compilers.h"
#include "base/errors.h"
#include "base/nearest.h"

namespace halftone {
namespace {

class Registry {
 public:
  /// Made at the first use, so that no order of static initialisers matters; is never destroyed, so that
  /// threads may look up names while the process ends.
  static Registry& instance() {
    static Registry& registry = *new Registry();
    return registry;
  }

  void add(NamedCompiler backend) {
    if (backend.info.name.empty()) fail(ErrorCode::kInvalidArgument, "a backend needs a name");
    if (!backend.compiler)
      fail(ErrorCode::kInvalidArgument, "backend \"{}\" has no compiler", backend.info.name);
    const std::unique_lock lock(mutex_);
    std::string name = backend.info.name;
    if (backends_.contains(name))
      fail(ErrorCode::kInvalidArgument, "there is a backend \"{}\" already", name);
    backends_.emplace(std::move(name), std::move(backend));
  }

  GraphCompiler find(std::string_view name) const {
    const std::shared_lock lock(mutex_);
    const auto found = backends_.find(name);
    if (found != backends_.end()) return found->second.compiler;
    std::vector<std::string> known;
    for (const auto& [other, backend] : backends_) known.push_back(other);
    fail(ErrorCode::kNotFound, "there is no backend \"{}\"; there are {}", name,
         fmt::join(nearest_first(name, std::move(known)), ", "));
  }

  std::vector<CompilerInfo> list(const std::vector<std::string>& exclude_tags) const {
    const std::shared_lock lock(mutex_);
    std::vector<CompilerInfo> infos;
    for (const auto& [name, backend] : backends_) {
      const std::vector<std::string>& tags = backend.info.tags;
      if (std::find_first_of(tags.begin(), tags.end(), exclude_tags.begin(), exclude_tags.end()) ==
          tags.end())
        infos.push_back(backend.info);
    }
    return infos;
  }

 private:
  Registry() {
    for (const auto& some :
         {eager_compilers, aot_compilers, torch_script_compilers, halftone_compilers, failing_compilers}) {
      for (NamedCompiler& backend : some()) add(std::move(backend));
    }
  }

  mutable std::shared_mutex mutex_;
  std::map<std::string, NamedCompiler, std::less<>> backends_;
};

}  // namespace

void register_compiler(CompilerInfo info, GraphCompiler compiler) {
  Registry::instance().add({std::move(info), std::move(compiler)});
}

GraphCompiler lookup_compiler(std::string_view name) {
  return Registry::instance().find(name);
}

std::vector<CompilerInfo> list_compilers(const std::vector<std::string>& exclude_tags) {
  return Registry::instance().list(exclude_tags);
}

}  // namespace halftone
