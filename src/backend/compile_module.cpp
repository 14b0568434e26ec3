// compile(module): finds or makes the graph for each call, by sizes, types, modes and the tensors of the
// module.
#include "halftone/compile/compile_module.h"

#include <ATen/core/grad_mode.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "base/errors.h"
#include "base/log.h"
#include "capture/module/trace_run.h"
#include "graph/aten/autocast_state.h"
#include "graph/checks/result_check.h"
#include "halftone/autograd/aot_autograd.h"
#include "halftone/compile/compilers.h"
#include "halftone/graph/tree.h"

namespace halftone {
// Not unnamed: CompiledModule::State, which other files may name, holds them.
namespace module_calls {

/// What decides which graph a call needs, as numbers: cheap to make and to compare.
class CallKey {
 public:
  /// `sizes` false: for a graph of dynamic sizes, which checks them itself.
  CallKey(const std::vector<c10::IValue>& leaves, const TreeSpec& nesting, torch::nn::Module* module,
          bool sizes)
      : sizes_(sizes) {
    add(at::GradMode::is_enabled());
    add(static_cast<int64_t>(autocast_dtype().value_or(c10::ScalarType::Undefined)));
    add_nesting(nesting);
    for (size_t i = 0; i < leaves.size(); ++i) add_leaf(leaves, i);
    if (module) add_module(*module);
  }
  bool has_sizes() const { return sizes_; }
  bool operator<(const CallKey& other) const {
    return std::tie(numbers_, texts_) < std::tie(other.numbers_, other.texts_);
  }

 private:
  void add(int64_t number) { numbers_.push_back(number); }
  void add_nesting(const TreeSpec& spec) {
    add(static_cast<int64_t>(spec.kind));
    add(static_cast<int64_t>(spec.children.size()));
    for (const std::string& key : spec.keys) texts_.push_back(key);
    for (const TreeSpec& child : spec.children) add_nesting(child);
  }
  void add_leaf(const std::vector<c10::IValue>& leaves, size_t index) {
    const c10::IValue& leaf = leaves[index];
    add(static_cast<int64_t>(is_defined_tensor(leaf)));
    if (!is_defined_tensor(leaf)) return texts_.push_back(c10::str(leaf));
    const at::Tensor& tensor = leaf.toTensor();
    add(static_cast<int64_t>(tensor.scalar_type()));
    add(static_cast<int64_t>(tensor.device().type()));
    add(tensor.requires_grad());
    add(tensor.dim());
    for (int64_t i = 0; sizes_ && i < tensor.dim(); ++i) add(tensor.size(i)), add(tensor.stride(i));
    for (size_t i = 0; i < index; ++i) {
      if (!is_defined_tensor(leaves[i]) || !leaves[i].toTensor().is_same(tensor)) continue;
      return add(static_cast<int64_t>(i));
    }
    add(-1);
  }
  void add_module(torch::nn::Module& module) {
    add(module.is_training());
    for (const auto& child : module.named_children())
      if (child.value()) add_module(*child.value());
    for (const auto& item : module.named_parameters(/*recurse=*/false)) add_tensor(item.value());
    for (const auto& item : module.named_buffers(/*recurse=*/false)) add_tensor(item.value());
  }
  void add_tensor(const at::Tensor& tensor) {
    add(static_cast<int64_t>(reinterpret_cast<intptr_t>(tensor.unsafeGetTensorImpl())));
    add(tensor.defined() && tensor.requires_grad());
    for (int64_t i = 0; tensor.defined() && i < tensor.dim(); ++i) add(tensor.size(i));
    const bool dense = tensor.defined() && tensor.has_storage();
    add(dense ? static_cast<int64_t>(reinterpret_cast<intptr_t>(tensor.const_data_ptr())) : 0);
  }
  const bool sizes_;
  std::vector<int64_t> numbers_;
  std::vector<std::string> texts_;
};

/// Tensors whose content is in a compiled graph, each with its version then.
struct FrozenTensors {
  std::vector<std::pair<at::Tensor, uint32_t>> tensors;
  bool unchanged() const {
    return std::all_of(tensors.begin(), tensors.end(),
                       [](const auto& entry) { return entry.first._version() == entry.second; });
  }
};

struct Compiled {
  ForwardFunction run;
  FrozenTensors frozen;
};

bool freezes(std::string_view backend) {
  for (const CompilerInfo& info : list_compilers({}))
    if (info.name == backend)
      return std::find(info.tags.begin(), info.tags.end(), "freezes") != info.tags.end();
  return false;
}

}  // namespace module_calls

struct CompiledModule::State {
  using CallKey = module_calls::CallKey;
  using Compiled = module_calls::Compiled;
  using FrozenTensors = module_calls::FrozenTensors;

  std::shared_ptr<torch::nn::Module> module;
  ForwardFunction forward;
  CompileModuleOptions options;
  GraphCompiler compiler;
  bool freezes = false;

  std::shared_mutex mutex;
  std::map<CallKey, std::shared_ptr<const Compiled>> graphs;
  std::map<CallKey, CallKey> first_sizes;  ///< of calls that are alike but for their sizes
  std::mutex compiling;
  std::map<std::string, std::vector<int64_t>> parameter_sizes;  ///< at the first compilation
  std::atomic<int64_t> calls{0}, compilations{0}, eager_calls{0};

  std::shared_ptr<const Compiled> find(const CallKey& key) {
    const std::shared_lock lock(mutex);
    const auto found = graphs.find(key);
    if (found == graphs.end() || !found->second->frozen.unchanged()) return nullptr;
    return found->second;
  }

  bool has_room_for(const CallKey& key) {
    const std::shared_lock lock(mutex);
    return graphs.contains(key) || graphs.size() < options.cache_limit;
  }

  std::shared_ptr<const Compiled> make(const CallKey& key, const std::vector<c10::IValue>& args,
                                       bool gradients) {
    if (options.static_parameters && module) check_parameter_sizes();
    auto made = std::make_shared<const Compiled>(
        gradients ? compile_training(args) : compile_inference(args, options.dynamic || !key.has_sizes()));
    ++compilations;
    const std::unique_lock lock(mutex);
    graphs[key] = made;
    return made;
  }

  void check_parameter_sizes() {
    const bool first = parameter_sizes.empty();
    for (const auto& item : module->named_parameters()) {
      if (!item.value().defined()) continue;
      const std::vector<int64_t> now = item.value().sizes().vec();
      const auto [known, fresh] = parameter_sizes.emplace(item.key(), now);
      if (!first && fresh)
        fail(ErrorCode::kState, "compile: parameter \"{}\" was not there at the first compilation",
             item.key());
      if (known->second != now) {
        fail(ErrorCode::kState,
             "compile: parameter \"{}\" is [{}] now and was [{}] when the module was compiled "
             "(CompileModuleOptions::static_parameters)",
             item.key(), fmt::join(now, ", "), fmt::join(known->second, ", "));
      }
    }
  }

  /// Whether a call like this one has been seen with other sizes.
  bool is_second_size(const CallKey& any_size, const CallKey& sized) {
    const std::unique_lock lock(mutex);
    const CallKey& first = first_sizes.emplace(any_size, sized).first->second;
    return first < sized || sized < first;
  }

  /// The backend's own AotAutograd, or one around its compiler.
  AotAutograd aot() const {
    if (const auto* known = compiler.target<AotAutograd>()) return *known;
    AotOptions aot;
    aot.name = module ? module->name() : "function";
    aot.fw_compiler = [inner = compiler, given = options.options](const auto& graph, const auto& examples,
                                                                  const auto&) {
      return inner(graph, examples, given);
    };
    aot.partition_fn = [](const JointGraph& joint) { return min_cut_rematerialization_partition(joint); };
    return AotAutograd(std::move(aot));
  }

  Compiled compile_training(const std::vector<c10::IValue>& args) const {
    return {trace_from(aot(), args), {}};
  }

  ForwardFunction trace_from(const AotAutograd& compile, const std::vector<c10::IValue>& args) const {
    // An AotAutograd of its own warns of options that it ignores; another compiler was given them by aot().
    const CompilerOptions given = compiler.target<AotAutograd>() ? options.options : CompilerOptions();
    if (module) return compile(*module, forward, args, given);
    torch::nn::Module nothing;
    return compile(nothing, forward, args, given);
  }

  Compiled compile_inference(const std::vector<c10::IValue>& args, bool dynamic) const {
    // Below autograd, where autocast's conversions are operators like others.
    if (compiler.target<AotAutograd>() || autocast_dtype()) return {trace_from(aot(), args), {}};
    CaptureOptions capture_options;
    capture_options.keep_random = true;
    capture_options.find_dynamic = dynamic;
    const auto graph =
        module ? capture(*module, forward, args, capture_options) : capture(forward, args, capture_options);
    for (const std::string& note : graph->notes) log(LogLevel::kInfo, "compile: {}", note);
    const CompiledFunction function =
        checked(*graph, compiler(graph, flatten_args(args).leaves, options.options));
    const TreeSpec result = graph->call_spec().result;
    Compiled compiled;
    compiled.run = [function, result](const std::vector<c10::IValue>& given) {
      std::vector<c10::IValue> inputs = flatten_args(given).leaves;
      const WithoutAutocast no_autocast;
      return unflatten(result, function(std::move(inputs)));
    };
    if (freezes) compiled.frozen = frozen_tensors(*graph);
    return compiled;
  }

  /// Backends are anybody's: what they give is looked at before it is taken apart.
  CompiledFunction checked(const GraphModule& graph, CompiledFunction function) const {
    ResultCheck check(fmt::format("backend \"{}\"", options.backend));
    for (size_t i = 0; i < graph.graph().outputs().size(); ++i) {
      if (graph.graph().outputs()[i].kind == OutputKind::kUser) check.expect(graph.graph().output_value(i));
    }
    required(function, check.who() + ": the function that it made");
    return [check = std::move(check), function = std::move(function)](std::vector<c10::IValue> inputs) {
      std::vector<c10::IValue> results = function(std::move(inputs));
      check(results);
      return results;
    };
  }

  static FrozenTensors frozen_tensors(const GraphModule& graph) {
    FrozenTensors frozen;
    const auto tensors = graph.tensors();
    for (const auto& [name, tensor] : *tensors) {
      const auto& outputs = graph.graph().outputs();
      const bool written =
          std::any_of(outputs.begin(), outputs.end(), [&name = name](const GraphOutput& output) {
            return output.kind == OutputKind::kBufferMutation && output.target == name;
          });
      if (!written && !tensor.is_inference()) frozen.tensors.emplace_back(tensor, tensor._version());
    }
    return frozen;
  }

  bool needs_gradients(const std::vector<c10::IValue>& leaves) const {
    if (!at::GradMode::is_enabled()) return false;
    for (const c10::IValue& leaf : leaves)
      if (is_defined_tensor(leaf) && leaf.toTensor().requires_grad()) return true;
    if (!module) return true;  // it may use tensors that are not registered
    for (const at::Tensor& parameter : module->parameters())
      if (parameter.requires_grad()) return true;
    return false;
  }

  c10::IValue past_limit(const std::vector<c10::IValue>& args) {
    if (options.past_limit == CompileModuleOptions::PastLimit::kError) {
      fail(ErrorCode::kState,
           "compile: {} graphs were made, and this call needs another one: CompileModuleOptions::cache_limit",
           options.cache_limit);
    }
    if (eager_calls++ == 0) {
      log(LogLevel::kWarning,
          "compile: more than {} graphs would be needed (CompileModuleOptions::cache_limit); such calls run "
          "uncompiled",
          options.cache_limit);
    }
    return forward(args);
  }

  c10::IValue call(const std::vector<c10::IValue>& args) {
    ++calls;
    const FlatArgs flat = flatten_args(args);
    const bool gradients = needs_gradients(flat.leaves);
    const auto key = [&](bool sizes) { return CallKey(flat.leaves, flat.spec, module.get(), sizes); };
    if (!gradients &&
        (options.dynamic || (options.automatic_dynamic && is_second_size(key(false), key(true))))) {
      try {
        return run_graph(key(false), args, gradients);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kGuard) throw;  // of other sizes: a graph of their own
      }
    }
    return run_graph(key(true), args, gradients);
  }

  c10::IValue run_graph(const CallKey& key, const std::vector<c10::IValue>& args, bool gradients) {
    if (const auto found = find(key)) return found->run(args);
    if (!has_room_for(key)) return past_limit(args);
    std::shared_ptr<const Compiled> made;
    {
      const std::lock_guard lock(compiling);
      made = find(key);  // another thread may have been first
      if (!made) made = make(key, args, gradients);
    }
    return made->run(args);
  }
};

CompiledModule::CompiledModule(std::shared_ptr<State> state) : state_(std::move(state)) {}

c10::IValue CompiledModule::operator()(const std::vector<c10::IValue>& args) const {
  return state_->call(args);
}

CompileModuleCounters CompiledModule::counters() const {
  return {state_->calls, state_->compilations, state_->eager_calls};
}

void CompiledModule::reset() const {
  const std::unique_lock lock(state_->mutex);
  state_->graphs.clear();
}

CompiledModule CompiledModule::make(std::shared_ptr<torch::nn::Module> module, ForwardFunction forward,
                                    CompileModuleOptions options) {
  required(forward, "compile: the function that calls the model");
  auto state = std::make_shared<CompiledModule::State>();
  state->compiler = lookup_compiler(options.backend);
  state->freezes = module_calls::freezes(options.backend);
  state->module = std::move(module);
  state->forward = std::move(forward);
  state->options = std::move(options);
  return CompiledModule(std::move(state));
}

CompiledModule compile(std::shared_ptr<torch::nn::Module> module, ForwardFunction forward,
                       CompileModuleOptions options) {
  return CompiledModule::make(required(std::move(module), "compile: the module"), std::move(forward),
                              std::move(options));
}

CompiledModule compile(ForwardFunction function, CompileModuleOptions options) {
  return CompiledModule::make(nullptr, std::move(function), std::move(options));
}

}  // namespace halftone
