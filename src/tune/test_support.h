// Shared by the tests of this folder: a model that takes a known time, and recipes that do to it what they are
// named for.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/errors.h"
#include "graph/test_support.h"
#include "halftone/tune/tune.h"

namespace halftone {

/// y = x·w after a nap of `ms` (wall time, whatever else the machine does).
inline std::shared_ptr<GraphModule> napping_model(double ms = 4) {
  auto module = module_from_text(fmt::format(R"(
graph(%w: parameter "fc.weight" f32[8, 8], %x: user "x" f32[s0, 8]) {{
  %n: f32[s0, 8] = halftone_tune_test::nap(%x, {:.3f})  @ "rest" "Nap"
  %y: f32[s0, 8] = aten::linear(%n, %w)  @ "fc" "Linear"
  return %y
}})",
                                             ms),
                                 {{"fc.weight", at::eye(8) + 0.1 * at::randn({8, 8})}});
  module->ranges["s0"] = {1, 64};
  return module;
}

inline Sample call_of(int64_t rows) {
  return {{at::randn({rows, 8})}, {}};
}

/// The answer of a graph from text, whose results are a flat tuple.
inline at::Tensor only_tensor(const c10::IValue& answer) {
  return answer.toTupleRef().elements().at(0).toTensor();
}

/// A recipe that changes a copy of the model, and counts how often it was asked to.
class ChangingRecipe final : public BackendRecipe {
 public:
  using Change = std::function<void(GraphModule&)>;
  ChangingRecipe(std::string name, Change change) : name_(std::move(name)), change_(std::move(change)) {}
  std::string type() const override { return "Test" + name_; }
  std::string config() const override { return "{}"; }
  std::string describe_config() const override { return ""; }
  ReadyModel prepare(const std::shared_ptr<const GraphModule>& original, const std::vector<Sample>&,
                     const std::string&) const override {
    ++prepared;
    auto copy = original->clone();
    change_(*copy);
    return {copy, nullptr};
  }
  mutable std::atomic<int> prepared = 0;

 private:
  std::string name_;
  Change change_;
};

inline void set_nap(GraphModule& module, double ms) {
  for (const auto& node : module.mutable_graph().nodes()) {
    if (node->is("halftone_tune_test::nap")) node->set_input(1, Argument(ms));
  }
}

inline std::shared_ptr<const ChangingRecipe> napping_recipe(std::string name, double ms) {
  return std::make_shared<const ChangingRecipe>(std::move(name),
                                                [ms](GraphModule& module) { set_nap(module, ms); });
}
/// Fast, and wrong.
inline std::shared_ptr<const ChangingRecipe> garbage_recipe() {
  return std::make_shared<const ChangingRecipe>("Garbage", [](GraphModule& module) {
    set_nap(module, 0.5);
    module.set_tensor("fc.weight", at::eye(8).flip(0));
  });
}
inline std::shared_ptr<const ChangingRecipe> nan_recipe() {
  return std::make_shared<const ChangingRecipe>("Nan", [](GraphModule& module) {
    set_nap(module, 0.5);
    module.set_tensor("fc.weight", at::full({8, 8}, NAN));
  });
}
inline std::shared_ptr<const ChangingRecipe> throwing_recipe() {
  return std::make_shared<const ChangingRecipe>(
      "Throwing", [](GraphModule&) { fail(ErrorCode::kUnsupported, "no kernel for this"); });
}
inline std::shared_ptr<const ChangingRecipe> crashing_recipe() {
  return std::make_shared<const ChangingRecipe>("Crashing", [](GraphModule&) { std::raise(SIGSEGV); });
}
inline std::shared_ptr<const ChangingRecipe> hanging_recipe() {
  return std::make_shared<const ChangingRecipe>(
      "Hanging", [](GraphModule&) { std::this_thread::sleep_for(std::chrono::seconds(100)); });
}

/// A folder that is gone at the end of the test.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "halftone-tune-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) fail(ErrorCode::kIo, "no folder for the test");
    path = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

}  // namespace halftone
