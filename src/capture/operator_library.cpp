#include <dlfcn.h>

#include <filesystem>

#include "base/errors.h"
#include "halftone/capture.h"

namespace halftone {

void load_operator_library(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) fail(ErrorCode::kNotFound, "{}: no such operator library", path);
  // An absolute path, or dlopen would look for a bare name in the system's folders.
  const std::string absolute = std::filesystem::absolute(path, error).string();
  // Never closed: its operators stay registered, and graphs keep handles to them.
  try {
    if (!dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      const char* reason = dlerror();
      fail(ErrorCode::kInvalidArgument, "{}: cannot be loaded: {}", path, reason ? reason : "unknown reason");
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& exception) {
    // Registration runs while the library is opened; torch throws where an operator is already there.
    fail(ErrorCode::kInvalidArgument, "{}: its registration failed: {}", path, exception.what());
  }
}

}  // namespace halftone
