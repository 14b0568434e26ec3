// Shared by the tests of this folder: what the interpreter gives, and what a backend gives beside it.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/test_support.h"
#include "halftone/compile/compilers.h"

namespace halftone {

inline CompiledFunction compile_with(std::string_view backend, const std::shared_ptr<GraphModule>& module,
                                     const std::vector<c10::IValue>& examples = {},
                                     const CompilerOptions& options = {}) {
  return lookup_compiler(backend)(module, examples, options);
}

inline void expect_same(const std::vector<c10::IValue>& results, const std::vector<c10::IValue>& expected,
                        const std::string& what) {
  ASSERT_EQ(results.size(), expected.size()) << what;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!expected[i].isTensor()) {
      ASSERT_EQ(results[i].isNone(), expected[i].isNone()) << what;
      if (expected[i].isNone()) continue;
      EXPECT_EQ(results[i], expected[i]) << what;
      continue;
    }
    const at::Tensor& a = results[i].toTensor();
    const at::Tensor& b = expected[i].toTensor();
    ASSERT_EQ(a.scalar_type(), b.scalar_type()) << what << ", output " << i;
    ASSERT_EQ(a.sizes(), b.sizes()) << what << ", output " << i;
    EXPECT_TRUE(at::allclose(a, b, 1e-5, 1e-6, /*equal_nan=*/true)) << what << ", output " << i;
  }
}

}  // namespace halftone
