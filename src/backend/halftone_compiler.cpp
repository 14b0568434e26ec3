// The halftone backend by name: CompiledGraph, for inference with the weights that the module has now.
#include "backend/builtin_compilers.h"
#include "backend/module_function.h"
#include "backend/refuse_gradients.h"
#include "base/errors.h"
#include "halftone/compile/compile.h"

namespace halftone {
namespace {

ConvChoice conv_choice(const c10::IValue& value) {
  const std::string name = value.isString() ? value.toStringRef() : "";
  if (name == "halftone") return ConvChoice::kHalftone;
  if (name == "mkldnn") return ConvChoice::kMkldnn;
  if (name == "fastest") return ConvChoice::kFastest;
  fail(ErrorCode::kInvalidArgument,
       "backend halftone: option convolutions must be \"halftone\", \"mkldnn\" or \"fastest\"");
}

CompileOptions compile_options(const CompilerOptions& given) {
  CompileOptions options;
  const auto number = [&given](const char* name, int64_t otherwise, int64_t least) {
    const auto found = given.find(name);
    if (found == given.end()) return otherwise;
    if (!found->second.isInt() || found->second.toInt() < least)
      fail(ErrorCode::kInvalidArgument, "backend halftone: option {} must be an integer from {} on", name,
           least);
    return found->second.toInt();
  };
  options.threads = static_cast<int>(number("threads", options.threads, 0));
  options.max_plans = static_cast<size_t>(number("max_plans", static_cast<int64_t>(options.max_plans), 1));
  if (const auto found = given.find("convolutions"); found != given.end())
    options.convolutions = conv_choice(found->second);
  if (const auto found = given.find("disabled_passes"); found != given.end()) {
    if (!found->second.isList())
      fail(ErrorCode::kInvalidArgument, "backend halftone: option disabled_passes must be a list of names");
    for (const c10::IValue& pass : found->second.toListRef())
      options.disabled_passes.push_back(pass.toStringRef());
  }
  return options;
}

}  // namespace

std::vector<NamedCompiler> halftone_compilers() {
  const GraphCompiler compiler = [](const std::shared_ptr<GraphModule>& module,
                                    const std::vector<c10::IValue>&, const CompilerOptions& options) {
    warn_of_unknown_options("halftone", options, {"threads", "max_plans", "disabled_passes", "convolutions"});
    required(module, "the module for backend halftone");
    return function_of(module, refuse_gradients(*module, compile(module, compile_options(options))));
  };
  return {
      {{"halftone", {"freezes"}, "native kernels, planned memory, frozen weights; for inference"}, compiler}};
}

}  // namespace halftone
