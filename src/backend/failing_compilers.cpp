// Backends that fail on purpose if a graph has a relu: at compile time, at run time, in their numbers. For
// tests of what looks for failures.
#include "backend/builtin_compilers.h"
#include "backend/module_function.h"
#include "base/errors.h"
#include "graph/run/interpreter.h"

namespace halftone {
namespace {

bool is_relu(const Node& node) {
  return node.is("aten::relu") || node.is("aten::relu_");
}

class FailingAtRelu final : public GraphExecutor {
 public:
  explicit FailingAtRelu(std::shared_ptr<const Graph> graph) : interpreted_(std::move(graph)) {}

  std::vector<c10::IValue> run(const ExecutorCall& call) const override {
    const NodeHook hook = [&call](const Node& node, const std::vector<c10::IValue>& outputs, double seconds) {
      if (is_relu(node)) fail(ErrorCode::kUnsupported, "relu_runtime_error: a relu was run");
      if (call.hook) (*call.hook)(node, outputs, seconds);
    };
    return interpreted_.run({call.inputs, call.tensors, call.state, call.bindings, &hook});
  }
  const Graph& graph() const override { return interpreted_.graph(); }

 private:
  InterpretedGraph interpreted_;
};

CompiledFunction refuse_relu(const std::shared_ptr<GraphModule>& module, const std::vector<c10::IValue>&,
                             const CompilerOptions& options) {
  required(module, "the module for backend relu_compile_error");
  warn_of_unknown_options("relu_compile_error", options);
  for (const auto& node : module->graph().nodes()) {
    if (is_relu(*node))
      fail(ErrorCode::kUnsupported, "relu_compile_error: {} (%{})", node->target(), node->output()->name());
  }
  return function_of(module, std::make_shared<const InterpretedGraph>(copy_of_graph(*module)));
}

CompiledFunction throw_at_relu(const std::shared_ptr<GraphModule>& module, const std::vector<c10::IValue>&,
                               const CompilerOptions& options) {
  required(module, "the module for backend relu_runtime_error");
  warn_of_unknown_options("relu_runtime_error", options);
  return function_of(module, std::make_shared<const FailingAtRelu>(copy_of_graph(*module)));
}

CompiledFunction add_one_to_relu(const std::shared_ptr<GraphModule>& module, const std::vector<c10::IValue>&,
                                 const CompilerOptions& options) {
  required(module, "the module for backend relu_accuracy_error");
  warn_of_unknown_options("relu_accuracy_error", options);
  std::shared_ptr<Graph> graph = module->graph().clone();
  for (auto it = graph->nodes().begin(); it != graph->nodes().end();) {
    Node* relu = (it++)->get();
    if (!is_relu(*relu)) continue;
    // Its uses are taken over first, so that the addition is not among them.
    const std::vector<Node*> users = relu->output()->users();
    const char* target = relu->is("aten::relu") ? "aten::add.Scalar" : "aten::add_.Scalar";
    Node* wrong = graph->insert(it == graph->nodes().end() ? nullptr : it->get(), target,
                                {{"self", relu->output()}, {"other", 1}}, {{.name = "wrong"}});
    for (Node* user : users) user->replace_uses_of(relu->output(), wrong->output());
  }
  return function_of(module, std::make_shared<const InterpretedGraph>(std::move(graph)));
}

}  // namespace

std::vector<NamedCompiler> failing_compilers() {
  return {
      {{"relu_compile_error", {"debug"}, "eager, but fails to compile a relu"}, refuse_relu},
      {{"relu_runtime_error", {"debug"}, "eager, but fails when a relu runs"}, throw_at_relu},
      {{"relu_accuracy_error", {"debug"}, "eager, but adds one to each relu"}, add_one_to_relu},
  };
}

}  // namespace halftone
