// Shared by the tests of this folder: modules from text, and the message of an expected error.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/expect_error.h"
#include "graph/flat_call.h"

namespace halftone {

inline std::shared_ptr<GraphModule> module_from_text(std::string_view text, TensorMap tensors = {}) {
  auto graph = parse_graph(text);
  CallSpec call = flat_call(*graph);
  auto module = std::make_shared<GraphModule>(std::move(graph), std::move(tensors), std::move(call));
  module->name = "test model";
  return module;
}

}  // namespace halftone
