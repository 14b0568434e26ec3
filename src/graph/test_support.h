// Shared by the tests of this room: modules from text, and the message of an expected error.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "graph/flat_call.h"

namespace halftone {

inline std::shared_ptr<GraphModule> module_from_text(std::string_view text, TensorMap tensors = {}) {
  return flat_module(parse_graph(text), std::move(tensors), "test model");
}

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
