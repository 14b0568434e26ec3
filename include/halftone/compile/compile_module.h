// A drop-in for a C++ module or function: captured and compiled at its first call, and again when a call
// needs another graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/capture/capture_module.h"
#include "halftone/compile/graph_compiler.h"

namespace halftone {

struct CompileModuleOptions {
  std::string backend = "halftone";  ///< see list_compilers()
  CompilerOptions options;           ///< for the backend
  /// Make one graph for all sizes if that works (inference only; training is compiled for each size).
  bool dynamic = false;
  /// The same, but only from the second size on: the first one gets a graph of its own.
  bool automatic_dynamic = false;
  /// A parameter whose sizes are not those of the first compilation any more: true: kState, naming it; false:
  /// compiled again.
  bool static_parameters = false;
  size_t cache_limit = 8;  ///< graphs that are kept
  /// Policy when a call would need one more.
  enum class PastLimit {
    kEager,  ///< runs the model itself, with a warning in the log the first time
    kError,  ///< kState
  };
  PastLimit past_limit = PastLimit::kEager;
};

struct CompileModuleCounters {
  int64_t calls = 0;
  int64_t compilations = 0;  ///< graphs that were made, among them those made again
  int64_t eager_calls = 0;   ///< past the limit
};

/// Calls as the model would be called: nested arguments in, result out, gradients to parameters and inputs.
/// Copies share everything. Thread-safe as far as the model itself is.
///
/// A graph serves calls with the same sizes, strides, types, constants and need of gradients of the
/// arguments, the same grad mode, autocast, train mode of every submodule, and the module's same tensors.
/// If the backend freezes weights ("halftone", without gradients), a change of one in place, as an
/// optimizer makes it, is seen by its version and the graph is made again; writes past torch (data_ptr,
/// .data()) are not seen.
///
/// Calls that need gradients, or come under autocast, go through AotAutograd, traced from the C++ code
/// itself; others through capture().
class HALFTONE_API CompiledModule {
 public:
  c10::IValue operator()(const std::vector<c10::IValue>& args) const;
  CompileModuleCounters counters() const;
  /// Forgets all graphs.
  void reset() const;

 private:
  friend CompiledModule compile(std::shared_ptr<torch::nn::Module>, ForwardFunction, CompileModuleOptions);
  friend CompiledModule compile(ForwardFunction, CompileModuleOptions);
  struct State;
  static CompiledModule make(std::shared_ptr<torch::nn::Module> module, ForwardFunction forward,
                             CompileModuleOptions options);
  explicit CompiledModule(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// `forward` calls the module. kNotFound for an unknown backend, kInvalidArgument if a handle is null.
HALFTONE_API CompiledModule compile(std::shared_ptr<torch::nn::Module> module, ForwardFunction forward,
                                    CompileModuleOptions options = {});
/// A function on tensors.
HALFTONE_API CompiledModule compile(ForwardFunction function, CompileModuleOptions options = {});

/// Of a module whose forward takes one tensor and gives one: `auto fast = compile(model.ptr());`.
template <typename Model>
requires std::is_invocable_r_v<at::Tensor, decltype(&Model::forward), Model&, const at::Tensor&>
auto compile(std::shared_ptr<Model> model, CompileModuleOptions options = {}) {
  ForwardFunction forward = [model](const std::vector<c10::IValue>& args) -> c10::IValue {
    return model->forward(args.at(0).toTensor());
  };
  CompiledModule compiled = compile(std::static_pointer_cast<torch::nn::Module>(std::move(model)),
                                    std::move(forward), std::move(options));
  return [compiled](const at::Tensor& input) { return compiled({input}).toTensor(); };
}

}  // namespace halftone
