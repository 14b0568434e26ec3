// Shared by the tests of this folder: one small model, the kinds of backends, and backends in each state.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "backend/lifecycle/backend_access.h"
#include "graph/test_support.h"
#include "halftone/backend/backend.h"
#include "halftone/quant/quantize.h"

namespace halftone {

/// Numbers that make_package.py makes in the same way, bit for bit.
inline at::Tensor test_weight(at::IntArrayRef sizes) {
  return at::arange(c10::multiply_integers(sizes), at::kLong)
      .mul(37)
      .remainder(101)
      .sub(50)
      .to(at::kFloat)
      .div(500)
      .reshape(sizes);
}

/// Two linears, of widths that every scheme takes.
inline std::shared_ptr<GraphModule> small_model() {
  auto module = module_from_text(R"(
graph(%w0: parameter "up.weight" f32[96, 64], %b0: parameter "up.bias" f32[96], %w1: parameter "down.weight" f32[64, 96], %b1: parameter "down.bias" f32[64], %x: user "x" f32[s0, 64]) {
  %u: f32[s0, 96] = aten::linear(%x, %w0, %b0)  @ "up" "Linear"
  %g: f32[s0, 96] = aten::gelu(%u)
  %d: f32[s0, 64] = aten::linear(%g, %w1, %b1)  @ "down" "Linear"
  return %d
})",
                                 {{"up.weight", test_weight({96, 64})},
                                  {"up.bias", test_weight({96})},
                                  {"down.weight", test_weight({64, 96})},
                                  {"down.bias", test_weight({64})}});
  return module;
}

/// Adds each x to a buffer and returns the sum so far: what a key-value cache is to a decoder.
inline std::shared_ptr<GraphModule> running_sum() {
  return module_from_text(R"(
graph(%s: buffer "sum" f32[4], %x: user "x" f32[4]) {
  %n: f32[4] = aten::add.Tensor(%s, %x)
  return %n, buffer_mutation "sum" %n
})",
                          {{"sum", at::zeros({4})}});
}

inline at::Tensor test_input(int64_t rows = 3) {
  return test_weight({rows, 64}).mul(5);
}

/// The result of a model that returns one tensor, in a tuple or alone.
inline at::Tensor tensor_of(const c10::IValue& result) {
  return result.isTuple() ? result.toTupleRef().elements().at(0).toTensor() : result.toTensor();
}

inline at::Tensor infer_one(const Backend& backend, const at::Tensor& x) {
  return tensor_of(backend.infer({x}));
}

struct RecipeCase {
  std::string name;
  std::function<std::shared_ptr<const BackendRecipe>()> make;
  std::string scheme = {};  ///< what small_model() is quantized with; empty: not at all
  /// Relative to the largest result, from the interpreter's run of that model. Activations that are rounded
  /// at run time may fall to the other side.
  double tolerance = 1e-5;
};

inline void PrintTo(const RecipeCase& recipe, std::ostream* out) {
  *out << recipe.name;
}

/// What the recipe must give.
inline at::Tensor expected_of(const RecipeCase& recipe, const at::Tensor& x) {
  const auto model = small_model();
  if (!recipe.scheme.empty()) quantize_(*model, std::string_view(recipe.scheme));
  return Session(model).run({x}).at(0).toTensor();
}

inline RecipeCase quant_case(const std::string& scheme, double tolerance = 1e-5) {
  return {"Quant_" + scheme,
          [scheme] { return quant_backend_recipe({.quantization = scheme, .quantization_config = {}}); },
          scheme, tolerance};
}

/// Those that need no compiler on the machine.
inline std::vector<RecipeCase> plain_recipes() {
  return {
      {"Eager", eager_backend_recipe, {}, 0},
      {"TorchScript", torch_script_backend_recipe},
      {"Halftone_fp32", [] { return halftone_backend_recipe(); }},
      {"Halftone_bf16",
       [] { return halftone_backend_recipe({.precision = HalftoneBackendConfig::Precision::kBFloat16}); },
       "bf16wo", 1e-3},
      quant_case("int8wo"),
      quant_case("int8dq", 0.01),
      quant_case("int4wo"),
      quant_case("fp8wo"),
      quant_case("fp8dq", 0.05),
  };
}

#ifdef AOTI_FOLDER
inline std::string aoti_package() {
  return AOTI_FOLDER "/small_model.pt2";
}

/// Why there is no package; empty if there is one, or if none was tried to make.
inline std::string aoti_refusal() {
  std::ifstream file(AOTI_FOLDER "/refused.txt");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The package is made by make_package.py, a fixture of ctest.
inline RecipeCase aot_inductor_case() {
  return {"AotInductor", [] {
            if (!std::filesystem::exists(aoti_package()))
              throw std::runtime_error("there is no package: ctest -R lifecycle makes one");
            return aot_inductor_backend_recipe({.package = aoti_package(), .allow_code = true});
          }};
}
#endif

inline std::vector<Sample> test_samples() {
  return {{{test_input(3)}, {}}, {{test_input(7)}, {}}};
}

inline Backend built(const std::shared_ptr<const BackendRecipe>& recipe) {
  return Backend(recipe).build(small_model(), {}, test_samples());
}

/// As a file would give it: by a dict, or by its content where the recipe cannot be saved.
inline Backend loaded(const std::shared_ptr<const BackendRecipe>& recipe) {
  if (recipe->refuse_to_save().empty())
    return Backend::from_dict(small_model(), built(recipe).to_dict(), recipe->type());
  BackendContent content;
  content.recipe = recipe;
  content.original = small_model();
  content.samples = test_samples();
  return BackendAccess::loaded(content);
}

inline Backend in_state(const std::shared_ptr<const BackendRecipe>& recipe, BackendState state) {
  switch (state) {
    case BackendState::kInit:
      return Backend(recipe);
    case BackendState::kActive:
      return built(recipe);
    case BackendState::kInactive: {
      Backend backend = built(recipe);
      backend.deactivate();
      return backend;
    }
    case BackendState::kCheckpointLoaded:
      return loaded(recipe);
    case BackendState::kDeployed: {
      Backend backend = loaded(recipe);
      backend.deploy();
      return backend;
    }
  }
  throw std::logic_error("no such state");
}

/// The call with arguments that are right for small_model().
inline void make_call(Backend& backend, LifecycleCall call) {
  switch (call) {
    case LifecycleCall::kBuild:
      backend.build(small_model(), {}, test_samples());
      return;
    case LifecycleCall::kActivate:
      backend.activate();
      return;
    case LifecycleCall::kDeactivate:
      backend.deactivate();
      return;
    case LifecycleCall::kDeploy:
      backend.deploy();
      return;
    case LifecycleCall::kInfer:
      backend.infer({test_input()});
      return;
    case LifecycleCall::kToDict:
      backend.to_dict();
      return;
  }
}

}  // namespace halftone
