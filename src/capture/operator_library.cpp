// load_operator_library(): custom operators from a shared library.
#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "base/errors.h"
#include "graph/checks/allowed_operators.h"
#include "halftone/capture/capture.h"

namespace halftone {
namespace {

std::unordered_set<c10::OperatorName> operators_now() {
  const auto names = c10::Dispatcher::singleton().getAllOpNames();
  return {names.begin(), names.end()};
}

/// What was registered since `before` may be called by graphs from files: the caller named the library.
void allow_new_operators(const std::unordered_set<c10::OperatorName>& before) {
  std::vector<c10::OperatorName> added = c10::Dispatcher::singleton().getAllOpNames();
  std::erase_if(added, [&](const c10::OperatorName& name) { return before.contains(name); });
  allow_operators(added);
}

}  // namespace

void load_operator_library(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) fail(ErrorCode::kNotFound, "{}: no such operator library", path);
  // An absolute path, or dlopen would look for a bare name in the system's folders.
  const std::string absolute = std::filesystem::absolute(path, error).string();
  const auto before = operators_now();
  // Never closed: its operators stay registered, and graphs keep handles to them.
  try {
    if (!dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      const char* reason = dlerror();
      fail(ErrorCode::kInvalidArgument, "{}: cannot be loaded: {}", path, reason ? reason : "unknown reason");
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& exception) {
    // Registration runs while the library is opened; torch throws if an operator is already there.
    fail(ErrorCode::kInvalidArgument, "{}: its registration failed: {}", path, exception.what());
  }
  allow_new_operators(before);
}

}  // namespace halftone
