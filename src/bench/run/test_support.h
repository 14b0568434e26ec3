// Shared by the tests of this folder.
#pragma once

#include <filesystem>
#include <string>

#include "base/errors.h"
#include "halftone/bench/bench.h"

namespace halftone {

/// Measured for a moment only.
inline BenchJob short_job(const std::string& model) {
  BenchJob job;
  job.model = model;
  job.seconds = 0.2;
  return job;
}

/// A folder that is gone at the end of the test.
class BenchFolder {
 public:
  BenchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "halftone-bench-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) fail(ErrorCode::kIo, "no folder for the test");
    path = name;
  }
  ~BenchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
  std::filesystem::path path;
};

}  // namespace halftone
