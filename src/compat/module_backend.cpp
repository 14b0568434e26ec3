// compile(module) under the options: a backend that takes them by name.
#include <mutex>

#include "backend/module_function.h"
#include "backend/refuse_gradients.h"
#include "base/errors.h"
#include "halftone/compat/baseline_compile.h"
#include "halftone/compile/compilers.h"

namespace halftone {
namespace {

constexpr const char* kBaselineBackend = "halftone_baseline";

BaselineOptions options_by_name(const CompilerOptions& given) {
  BaselineOptions options;
  for (const auto& [name, value] : given) {
    const std::string text = value.isBool()  ? (value.toBool() ? "true" : "false")
                             : value.isInt() ? std::to_string(value.toInt())
                                             : value.tagKind();
    set_baseline_option(options, name + "=" + text);
  }
  return options;
}

CompilerOptions names_of(const BaselineOptions& options) {
  CompilerOptions given;
  for (const BaselineOption& option : list_baseline_options(options)) {
    const bool flag = option.value == "true" || option.value == "false";
    given[option.name] =
        flag ? c10::IValue(option.value == "true") : c10::IValue(int64_t{std::stoll(option.value)});
  }
  return given;
}

/// At the first use: a backend that was not requested would appear in all lists.
void register_baseline_backend() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_compiler(
        {kBaselineBackend, {"freezes", "debug"}, "halftone under baseline options; for inference"},
        [](const std::shared_ptr<GraphModule>& module, const std::vector<c10::IValue>&,
           const CompilerOptions& options) {
          required(module, "the module for the baseline's backend");
          return function_of(module,
                             refuse_gradients(*module, baseline_compile(module, options_by_name(options))));
        });
  });
}

}  // namespace

CompileModuleOptions baseline_module_options(const BaselineOptions& options) {
  register_baseline_backend();
  CompileModuleOptions module;
  module.backend = kBaselineBackend;
  module.options = names_of(options);
  module.automatic_dynamic = options.automatic_dynamic_shapes;
  module.static_parameters = options.force_parameter_static_shapes;
  module.cache_limit = static_cast<size_t>(options.recompile_limit);
  return module;
}

}  // namespace halftone
