// Backends that run a graph as it is, operator by operator, so that autograd sees each of them.
#include "backend/builtin_compilers.h"
#include "backend/module_function.h"
#include "base/errors.h"
#include "graph/run/interpreter.h"

namespace halftone {
namespace {

/// The interpreter, for graphs that are known to run: an exception is a broken promise, and says so.
class NoexceptGraph final : public GraphExecutor {
 public:
  explicit NoexceptGraph(std::shared_ptr<const Graph> graph) : interpreted_(std::move(graph)) {}

  std::vector<c10::IValue> run(const ExecutorCall& call) const override {
    try {
      return interpreted_.run(call);
    } catch (const std::exception& error) {
      // The interpreter's message names the node.
      fail(ErrorCode::kInternal, "eager_noexcept promised that nothing would be thrown, but: {}",
           error.what());
    }
  }
  const Graph& graph() const override { return interpreted_.graph(); }

 private:
  InterpretedGraph interpreted_;
};

template <typename Executor>
GraphCompiler compiler_of(std::string name) {
  return [name](const std::shared_ptr<GraphModule>& module, const std::vector<c10::IValue>&,
                const CompilerOptions& options) {
    warn_of_unknown_options(name, options);
    required(module, "the module for backend " + name);
    return function_of(module, std::make_shared<const Executor>(copy_of_graph(*module)));
  };
}

}  // namespace

std::vector<NamedCompiler> eager_compilers() {
  return {
      {{"eager", {}, "the graph as it is, operator by operator"}, compiler_of<InterpretedGraph>("eager")},
      {{"eager_noexcept", {"debug"}, "eager, for graphs that must not throw: says so where one does"},
       compiler_of<NoexceptGraph>("eager_noexcept")},
  };
}

}  // namespace halftone
