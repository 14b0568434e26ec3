// For tests: the message of an expected error.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "halftone/base/error.h"

namespace halftone {

/// Runs `action`, expects a halftone::Error with that code, gives its message.
template <typename Action>
std::string message_of(ErrorCode code, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

/// Runs `call` and expects a halftone::Error whose message holds all of `parts`.
template <typename Call>
void expect_error(ErrorCode code, std::initializer_list<std::string> parts, Call&& call) {
  const std::string message = message_of(code, call);
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
}

}  // namespace halftone
