// One broken input of a reader, and what the reader must say about it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "halftone/base/error.h"

namespace halftone::testing {

struct BrokenCase {
  std::string name;
  std::string bytes;
  ErrorCode code;
  std::string message;  ///< a part of it

  friend std::ostream& operator<<(std::ostream& out, const BrokenCase& broken) { return out << broken.name; }
};

/// `read` must throw a halftone::Error with the code, the file's name and the message of the case; nothing
/// else may leave it.
inline void expect_refused(const BrokenCase& broken, std::string_view file,
                           const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(to_string(error.code()), to_string(broken.code)) << message;
    EXPECT_EQ(message.find(file), 0U) << message;
    EXPECT_NE(message.find(broken.message), std::string::npos) << message << "\nlacks: " << broken.message;
    return;
  } catch (const std::exception& other) {
    FAIL() << "not a halftone::Error: " << other.what();
  }
  FAIL() << "was accepted";
}

/// GoogleTest wants letters and digits.
inline std::string case_name(const ::testing::TestParamInfo<BrokenCase>& info) {
  return info.param.name;
}

}  // namespace halftone::testing
