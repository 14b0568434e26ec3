// Shared by the tests of models with convolutions: graphs written layer by layer, and compiled against
// interpreted.
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"
#include "halftone/compile/compile.h"

namespace halftone {

inline void expect_close(const std::vector<c10::IValue>& found, const std::vector<c10::IValue>& expected,
                         const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const at::Tensor f = found[i].toTensor(), e = expected[i].toTensor();
    ASSERT_EQ(f.sizes(), e.sizes()) << what;
    for (int64_t d = 0; d < e.dim(); ++d) {
      const bool same = e.size(d) <= 1 || f.stride(d) == e.stride(d);
      EXPECT_TRUE(same) << f.strides() << " for " << e.strides() << " in result " << i << ": " << what;
    }
    if (e.numel() == 0) continue;
    // Winograd's error counts against the largest value of a tile.
    const double scale = std::max(1.0, e.abs().max().item<double>());
    ASSERT_LE((f - e).abs().max().item<double>(), 1e-4 * scale) << "result " << i << ": " << what;
  }
}

/// Compiles, compares on each of the inputs, and gives the report for the last.
inline PlanReport expect_compiled(const std::shared_ptr<GraphModule>& module,
                                  const std::vector<at::Tensor>& inputs) {
  const auto compiled = compile(module);
  for (const at::Tensor& x : inputs)
    expect_close(compiled->run({x}), Session(module).run({x}), print_graph(compiled->graph()));
  return compiled->report({inputs.back()});
}

/// Steps whose kernel's name begins so.
inline size_t steps_of(const PlanReport& report, std::string_view kernel) {
  size_t count = 0;
  for (const StepReport& step : report.steps) count += step.kernel.starts_with(kernel) ? 1 : 0;
  return count;
}

/// Writes the text of a graph: weights become parameters as they are asked for.
class NetWriter {
 public:
  explicit NetWriter(std::string inputs) : inputs_(std::move(inputs)) {}

  std::string weight(const std::vector<int64_t>& sizes, double scale = 0.3) {
    return tensor(at::randn(sizes) * scale, sizes);
  }
  std::string positive(const std::vector<int64_t>& sizes) { return tensor(at::rand(sizes) + 0.5, sizes); }

  std::string add(const std::string& type, const std::string& call) {
    const std::string name = fmt::format("%v{}", next_++);
    body_ += fmt::format("  {}: {} = {}\n", name, type, call);
    return name;
  }
  std::string batch_norm(const std::string& type, const std::string& x, int64_t channels) {
    const std::string g = positive({channels}), b = weight({channels}), m = weight({channels}),
                      s = positive({channels});
    return add(type,
               fmt::format("aten::batch_norm({}, {}, {}, {}, {}, false, 0.1, 1e-05, true)", x, g, b, m, s));
  }
  std::shared_ptr<GraphModule> make(const std::string& results) {
    text_ = fmt::format("graph({}) {{\n{}  return {}\n}}", inputs_, body_, results);
    return module_from_text(text_, tensors_);
  }

 private:
  std::string tensor(at::Tensor value, const std::vector<int64_t>& sizes) {
    const std::string name = fmt::format("p{}", next_++);
    tensors_[name] = std::move(value);
    inputs_ += fmt::format(", %{}: parameter \"{}\" f32[{}]", name, name, fmt::join(sizes, ", "));
    return "%" + name;
  }
  std::string inputs_, body_, text_;
  TensorMap tensors_;
  int next_ = 0;
};

inline std::vector<at::Tensor> images(std::vector<int64_t> sizes, const std::vector<int64_t>& batches) {
  std::vector<at::Tensor> all;
  for (const int64_t batch : batches) {
    sizes[0] = batch;
    all.push_back(at::randn(sizes));
  }
  return all;
}

}  // namespace halftone
