// find_failure(): runs a case on a backend and on the interpreter, and compares results, inputs and
// buffers.
#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "backend/compare.h"
#include "backend/graph_case.h"
#include "backend/module_function.h"
#include "base/errors.h"
#include "graph/interpreter.h"
#include "graph/mutation.h"

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

/// Results, inputs after the call (a backend may have written if the graph does not), buffers after it.
std::vector<Observed> observe(const GraphCase& graph_case, const CompiledFunction& function) {
  std::vector<Observed> all;
  for (const c10::IValue& result : function(graph_case.inputs))
    all.push_back({fmt::format("output {}", all.size()), result});
  const std::vector<std::string> names = graph_case.module->input_names();
  for (size_t i = 0; i < names.size(); ++i)
    all.push_back({fmt::format("input \"{}\" after the call", names[i]), graph_case.inputs[i]});
  for (const std::string& name : mutated_tensor_names(graph_case.module->graph()))
    all.push_back({fmt::format("\"{}\" after the call", name), graph_case.module->tensor(name)});
  return all;
}

std::vector<Observed> interpret(const GraphCase& graph_case) {
  const GraphCase own = copy_of(graph_case);
  return observe(
      own, function_of(own.module, std::make_shared<const InterpretedGraph>(copy_of_graph(*own.module))));
}

/// Empty if some operator does not know float64.
std::vector<Observed> interpret_in_float64(const GraphCase& graph_case) {
  try {
    return interpret(in_float64(graph_case));
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
  const std::vector<Observed> expected = interpret(graph_case);
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
    results = observe(own, function);
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
