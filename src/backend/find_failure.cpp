// find_failure(): runs a case on a backend and on the interpreter, and compares results, inputs and
// buffers.
#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "backend/compare.h"
#include "backend/graph_case.h"
#include "base/errors.h"
#include "graph/run/mutation.h"

namespace halftone {
namespace {

/// The random state of the process as it is now: restored before each run, and at the end.
class RandomState {
 public:
  RandomState() : generator_(at::detail::getDefaultCPUGenerator()), state_(read()) {}
  ~RandomState() { restore(); }
  RandomState(const RandomState&) = delete;
  RandomState& operator=(const RandomState&) = delete;

  void restore() {
    const std::lock_guard lock(generator_.mutex());
    generator_.set_state(state_);
  }

 private:
  at::Tensor read() {
    const std::lock_guard lock(generator_.mutex());
    return generator_.get_state();
  }

  at::Generator generator_;
  at::Tensor state_;
};

/// Results, inputs after the call (a backend may have written where the graph does not), buffers after it.
std::vector<Observed> observe(const GraphModule& module, std::vector<c10::IValue> results,
                              const std::vector<c10::IValue>& inputs, const TensorMap& tensors) {
  std::vector<Observed> all;
  for (c10::IValue& result : results)
    all.push_back({fmt::format("output {}", all.size()), std::move(result)});
  const std::vector<std::string> names = module.input_names();
  for (size_t i = 0; i < names.size(); ++i)
    all.push_back({fmt::format("input \"{}\" after the call", names[i]), inputs[i]});
  for (const std::string& name : mutated_tensor_names(module.graph()))
    all.push_back({fmt::format("\"{}\" after the call", name), tensors.at(name)});
  return all;
}

std::vector<Observed> observe_interpreter(const GraphCase& graph_case) {
  const CaseMemory own = own_memory(graph_case);
  return observe(*graph_case.module, interpret(graph_case, own), own.inputs, own.tensors);
}

/// Empty if some operator does not know float64.
std::vector<Observed> interpret_in_float64(const GraphCase& graph_case) {
  try {
    return observe_interpreter(in_float64(graph_case));
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

std::string_view to_string(FailureKind kind) {
  switch (kind) {
    case FailureKind::kCompileError:
      return "compile error";
    case FailureKind::kRunError:
      return "run error";
    case FailureKind::kAccuracy:
      return "wrong numbers";
  }
  return "failure";
}

std::optional<BackendFailure> find_failure(const GraphCase& graph_case, const GraphCompiler& backend,
                                           const MinifyOptions& options) {
  required(graph_case.module, "find_failure: the module of the case");
  required(backend, "find_failure: the backend");
  RandomState random;
  const std::vector<Observed> expected = observe_interpreter(graph_case);
  const GraphCase own = copy_of(graph_case);
  CompiledFunction function;
  try {
    function = backend(own.module, own.inputs, options.compiler_options);
  } catch (const std::exception& error) {
    return BackendFailure{FailureKind::kCompileError, error.what()};
  }
  std::vector<Observed> results;
  try {
    random.restore();
    std::vector<c10::IValue> outputs = function(own.inputs);
    results = observe(*own.module, std::move(outputs), own.inputs, *own.module->tensors());
  } catch (const std::exception& error) {
    return BackendFailure{FailureKind::kRunError, error.what()};
  }
  auto difference = find_difference(results, expected, {}, options.tolerance);
  if (difference) {
    random.restore();
    difference = find_difference(results, expected, interpret_in_float64(graph_case), options.tolerance);
  }
  if (!difference) return std::nullopt;
  return BackendFailure{FailureKind::kAccuracy, *difference};
}

}  // namespace halftone
