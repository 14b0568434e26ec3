// Rows and folders for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "halftone/bench/results.h"

namespace halftone {

inline BenchRow full_row(const std::string& name = "encoder") {
  BenchRow row;
  row.name = name;
  row.batch_size = 8;
  row.scheme = "int8dynamic";
  row.accuracy = "pass";
  row.speedup = 1.75;
  row.abs_latency = 12.345678901234567;
  row.compilation_latency = 0.1;
  row.compression_ratio = 1.5;
  row.eager_peak_mem = 0.3;
  row.halftone_peak_mem = 0.2;
  row.cosine = 0.99987;
  row.bytes = 22'713'216;
  row.unsupported_ops = 3;
  row.spread = 0.02;
  row.speedup_low = 1.7;
  row.speedup_high = 1.8;
  row.rounds = 40;
  return row;
}

/// A folder of one test's own, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            (std::string("halftone_") + test->name() + "_" + std::to_string(::getpid()));
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// The message of the Error that `call` throws, or "no error".
template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace halftone
