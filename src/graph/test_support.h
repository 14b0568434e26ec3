// Shared by the tests of this folder: modules from text, and the message of an expected error.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/expect_error.h"
#include "graph/flat_call.h"

namespace halftone {

inline std::shared_ptr<GraphModule> module_from_text(std::string_view text, TensorMap tensors = {}) {
  return flat_module(parse_graph(text), std::move(tensors), "test model");
}

}  // namespace halftone
