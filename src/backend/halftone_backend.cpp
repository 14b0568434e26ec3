// The halftone backend by name: CompiledModel, for inference with the weights that the module has now.
#include <c10/core/GradMode.h>

#include "backend/builtin_backends.h"
#include "backend/module_function.h"
#include "base/errors.h"
#include "halftone/compile.h"

namespace halftone {
namespace {

bool requires_grad(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().requires_grad();
}

/// Native kernels have no gradients: where some are asked for, cutting them off silently would be worse than
/// failing.
void refuse_gradients(const Graph& graph, const ExecutorCall& call) {
  if (!c10::GradMode::is_enabled()) return;
  size_t user = 0;
  for (const GraphInput& input : graph.inputs()) {
    c10::IValue value;
    if (input.kind == InputKind::kUser) {
      value = call.inputs[user++];
    } else if (const auto found = call.tensors.find(input.target); found != call.tensors.end()) {
      value = found->second;
    }
    if (requires_grad(value)) {
      fail(ErrorCode::kUnsupported,
           "backend halftone: {} \"{}\" requires gradients, which this backend does not give: give the "
           "backend to AotAutograd, or call without gradients (at::NoGradGuard)",
           to_string(input.kind), input.target);
    }
  }
}

class InferenceModel final : public GraphExecutor {
 public:
  InferenceModel(const std::shared_ptr<const GraphModule>& module, const CompileOptions& options)
      : original_(copy_of_graph(*module)), model_(compile(module, options)) {}

  std::vector<c10::IValue> run(const ExecutorCall& call) const override {
    refuse_gradients(*original_, call);
    return model_->run(
        call);  // in the caller's grad mode: some operators keep more for backward where it is on
  }
  const Graph& graph() const override { return model_->graph(); }

 private:
  std::shared_ptr<const Graph> original_;
  std::shared_ptr<const CompiledModel> model_;
};

CompileOptions compile_options(const CompilerOptions& given) {
  CompileOptions options;
  const auto number = [&given](const char* name, int64_t otherwise) {
    const auto found = given.find(name);
    if (found == given.end()) return otherwise;
    if (!found->second.isInt() || found->second.toInt() < 0)
      fail(ErrorCode::kInvalidArgument, "backend halftone: option {} must be an integer from 0 on", name);
    return found->second.toInt();
  };
  options.threads = static_cast<int>(number("threads", options.threads));
  options.max_plans = static_cast<size_t>(number("max_plans", static_cast<int64_t>(options.max_plans)));
  if (const auto found = given.find("disabled_passes"); found != given.end()) {
    if (!found->second.isList())
      fail(ErrorCode::kInvalidArgument, "backend halftone: option disabled_passes must be a list of names");
    for (const c10::IValue& pass : found->second.toListRef())
      options.disabled_passes.push_back(pass.toStringRef());
  }
  return options;
}

}  // namespace

std::vector<NamedCompiler> halftone_backends() {
  const GraphCompiler compiler = [](const std::shared_ptr<GraphModule>& module,
                                    const std::vector<c10::IValue>&, const CompilerOptions& options) {
    warn_of_unknown_options("halftone", options, {"threads", "max_plans", "disabled_passes"});
    return function_of(module, std::make_shared<const InferenceModel>(module, compile_options(options)));
  };
  return {
      {{"halftone", {"freezes"}, "native kernels, planned memory, frozen weights; for inference"}, compiler}};
}

}  // namespace halftone
