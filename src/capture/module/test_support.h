// Shared by the tests of this folder: a capture checked in every way that holds for all models.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <cstring>

#include "capture/module/tracing/tracing_key.h"
#include "graph/test_support.h"
#include "halftone/capture/capture_module.h"
#include "halftone/graph/tree.h"

namespace halftone {

inline at::Tensor seeded(at::IntArrayRef sizes, uint64_t seed = 1) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(sizes, generator, at::kFloat);
}

inline at::Tensor seeded_ids(at::IntArrayRef sizes, int64_t limit, uint64_t seed = 1) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randint(limit, sizes, generator, at::kLong);
}

/// Everything a capture must leave alone, byte for byte.
struct ModuleBytes {
  std::vector<std::string> memory;
  std::vector<const void*> grads;
  std::vector<bool> flags;
  bool operator==(const ModuleBytes&) const = default;

  static std::string bytes_of(const at::Tensor& tensor) {
    const at::Tensor plain = tensor.detach().contiguous();
    return {static_cast<const char*>(plain.data_ptr()), plain.nbytes()};
  }
  static ModuleBytes of(torch::nn::Module& module) {
    ModuleBytes all;
    all.memory.push_back(bytes_of(at::detail::getDefaultCPUGenerator().get_state()));
    for (const at::Tensor& tensor : module.buffers()) all.memory.push_back(bytes_of(tensor));
    for (const at::Tensor& tensor : module.parameters()) {
      if (tensor.has_storage()) all.memory.push_back(bytes_of(tensor));
      all.grads.push_back(tensor.grad().defined() ? tensor.grad().unsafeGetTensorImpl() : nullptr);
      all.flags.push_back(tensor.requires_grad());
    }
    for (const auto& part : module.modules(/*include_self=*/false)) all.flags.push_back(part->is_training());
    all.flags.push_back(module.is_training());
    return all;
  }
};

inline bool nothing_is_registered() {
  return !c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(
      tracing_key(TraceLevel::kAboveAutograd));
}

inline std::vector<c10::IValue> leaves_of(const c10::IValue& value) {
  std::vector<c10::IValue> leaves;
  tree_of(value, leaves);
  return leaves;
}

/// tolerance 0: the same bits.
inline void expect_same(const c10::IValue& found, const c10::IValue& expected, double tolerance,
                        const std::string& where = {}) {
  const auto a = leaves_of(found), b = leaves_of(expected);
  ASSERT_EQ(a.size(), b.size()) << where;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!b[i].isTensor()) continue;
    const at::Tensor x = a[i].toTensor(), y = b[i].toTensor();
    ASSERT_EQ(x.sizes(), y.sizes()) << where << " result " << i;
    ASSERT_EQ(x.scalar_type(), y.scalar_type()) << where << " result " << i;
    if (tolerance == 0) {
      EXPECT_TRUE(at::equal(x, y)) << where << " result " << i;
    } else {
      EXPECT_TRUE(at::allclose(x, y, tolerance, tolerance, true)) << where << " result " << i;
    }
  }
}

}  // namespace halftone
