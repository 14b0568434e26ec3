// The ts backend: a graph as TorchScript, run by TorchScript's executor.
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "backend/builtin_compilers.h"
#include "backend/module_function.h"
#include "backend/torch_script.h"
#include "base/errors.h"
#include "graph/aten/torch_errors.h"
#include "graph/run/interpreter.h"

namespace halftone {
namespace {

/// TorchScript's traceback ends with the node's place and "RuntimeError: " before what went wrong.
std::string without_traceback(std::string text) {
  constexpr std::string_view kMark = "RuntimeError: ";
  text.erase(text.find_last_not_of(" \n") + 1);
  const size_t mark = text.find(kMark);
  if (mark == std::string::npos) return text;
  const size_t line_end = text.rfind('\n', mark);
  const size_t begin = line_end == std::string::npos ? 0 : line_end + 1;
  return fmt::format("{}: {}", text.substr(begin, mark - begin), text.substr(mark + kMark.size()));
}

class ScriptedGraph final : public GraphExecutor {
 public:
  explicit ScriptedGraph(std::shared_ptr<const Graph> graph)
      : graph_(std::move(graph)),
        script_(to_torch_script(*graph_)),
        executor_(script_.graph, "halftone_graph") {}

  std::vector<c10::IValue> run(const ExecutorCall& call) const override {
    std::vector<c10::IValue> stack = collect_graph_inputs(*graph_, call);
    stack.insert(stack.end(), script_.numbers.begin(), script_.numbers.end());
    try {
      executor_.run(stack);
    } catch (const std::exception& error) {  // of torch's with a traceback, too, in torch 2.15
      fail(ErrorCode::kInvalidArgument, "TorchScript: {}", without_traceback(error_text(error)));
    }
    return stack;
  }
  const Graph& graph() const override { return *graph_; }

 private:
  std::shared_ptr<const Graph> graph_;
  TorchScript script_;
  mutable torch::jit::GraphExecutor executor_;  // thread-safe, but for its signatures
};

}  // namespace

std::shared_ptr<const GraphExecutor> torch_script_executor(std::shared_ptr<const Graph> graph) {
  return std::make_shared<const ScriptedGraph>(std::move(graph));
}

GraphCompiler ts_compiler() {
  return [](const std::shared_ptr<GraphModule>& module, const std::vector<c10::IValue>&,
            const CompilerOptions& options) {
    warn_of_unknown_options("ts", options);
    required(module, "the module for backend ts");
    return function_of(module, torch_script_executor(copy_of_graph(*module)));
  };
}

std::vector<NamedCompiler> torch_script_compilers() {
  return {{{"ts", {"legacy"}, "TorchScript, run by its own executor"}, ts_compiler()}};
}

}  // namespace halftone
