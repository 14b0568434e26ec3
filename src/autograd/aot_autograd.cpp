// AotAutograd: traces forward and backward as one joint graph, splits it, compiles both parts, and makes
// one differentiable function of them.
#include "halftone/autograd/aot_autograd.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <atomic>

#include "autograd/aot_function.h"
#include "autograd/dependencies.h"
#include "autograd/flat_module.h"
#include "autograd/graph_log.h"
#include "base/errors.h"
#include "base/log.h"
#include "base/nearest.h"
#include "capture/module/trace.h"
#include "capture/module/trace_run.h"
#include "capture/module/tracing/geometry.h"
#include "capture/module/tracing/tracing_key.h"
#include "capture/module/tracing/tracing_scope.h"
#include "graph/aten/autocast_state.h"
#include "graph/flat_call.h"
#include "graph/run/interpreter.h"

namespace halftone {
namespace {

struct Counters {
  std::mutex mutex;
  AotCounters values;
};

Counters& counters() {
  static Counters all;
  return all;
}

void count(int64_t AotCounters::*which) {
  const std::lock_guard lock(counters().mutex);
  ++(counters().values.*which);
}

/// A type of its own, so that it is known again among compilers.
struct NopCompiler {
  CompiledFunction operator()(const std::shared_ptr<GraphModule>& module, const std::vector<c10::IValue>&,
                              const CompilerOptions&) const {
    required(module, "nop_compiler: the module");
    if (!module->tensors()->empty())
      fail(ErrorCode::kInvalidArgument, "{}: takes graphs without tensors of their own", module->name);
    const auto interpreter =
        std::make_shared<const Interpreter>(std::shared_ptr<const Graph>(module, &module->graph()));
    return [interpreter](std::vector<c10::IValue> inputs) { return interpreter->run(std::move(inputs)); };
  }
};

bool is_operator(const std::string& name) {
  const size_t dot = name.find('.');
  const c10::OperatorName op(name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1));
  return c10::Dispatcher::singleton().findOp(op).has_value();
}

void check_names(const DecompositionTable& table) {
  for (const auto& [name, decomposition] : table) {
    required(decomposition, fmt::format("AotOptions::decompositions: the function for \"{}\"", name));
    if (is_operator(name)) continue;
    std::vector<std::string> known;
    for (const c10::OperatorName& op : c10::Dispatcher::singleton().getAllOpNames())
      known.push_back(c10::toString(op));
    fail(ErrorCode::kInvalidArgument, "AotOptions::decompositions: there is no operator \"{}\"{}", name,
         did_you_mean(name, known));
  }
}

}  // namespace

struct AotAutograd::Shared {
  explicit Shared(AotOptions given) : options(std::move(given)) {
    required(options.fw_compiler, "AotOptions::fw_compiler");
    if (!options.bw_compiler) options.bw_compiler = options.fw_compiler;
    if (!options.inference_compiler) options.inference_compiler = options.fw_compiler;
    if (!options.partition_fn) options.partition_fn = default_partition;
    debug_assert = options.debug_assert.value_or(options.fw_compiler.target<NopCompiler>() != nullptr);
  }

  const DecompositionTable& decompositions() const {
    std::call_once(evaluated, [this] {
      if (const auto* table = std::get_if<DecompositionTable>(&options.decompositions)) {
        table_ = *table;
      } else if (const auto& function = std::get<1>(options.decompositions)) {
        table_ = function();
      }
      check_names(table_);
    });
    return table_;
  }

  AotOptions options;
  bool debug_assert = false;

 private:
  mutable std::once_flag evaluated;
  mutable DecompositionTable table_;
};

namespace {

void warn_of_options(const CompilerOptions& options) {
  if (options.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : options) names.push_back(name);
  log(LogLevel::kWarning, "AotAutograd ignores options that it does not know: {}", fmt::join(names, ", "));
}

bool any_requires_grad(const std::vector<c10::IValue>& leaves) {
  return std::any_of(leaves.begin(), leaves.end(), [](const c10::IValue& leaf) {
    return is_defined_tensor(leaf) && leaf.toTensor().requires_grad();
  });
}

/// One compilation.
class Compilation {
 public:
  Compilation(const AotOptions& options, bool debug_assert, const DecompositionTable& table)
      : options_(options), table_(table), log_(graph_log_of(options.log)) {
    static std::atomic<int64_t> compilations{0};
    number_ = compilations++;
    program_->debug_assert = debug_assert;
    program_->name = options.name;
    program_->autocast = autocast_dtype();
  }

  std::shared_ptr<const AotProgram> compile(JointRequest request, const std::vector<c10::IValue>& examples) {
    request.decompositions = &table_;
    remember_inputs(examples);
    {
      const CaptureLock lock;
      program_->trace = trace_joint(request, examples);
    }
    // The compilers and what they make are never traced.
    const PauseTracing pause;
    if (program_->trace.differentiable.empty()) {
      compile_inference();
    } else {
      compile_parts();
    }
    return program_;
  }

 private:
  void remember_inputs(const std::vector<c10::IValue>& examples) {
    given_ = flatten_args(examples).leaves;
    program_->leaves.resize(given_.size());
    program_->fixed = given_;
    for (size_t i = 0; i < given_.size(); ++i) {
      program_->same_as.push_back(i);
      if (!is_defined_tensor(given_[i])) continue;
      program_->leaves[i] = tensor_meta(given_[i].toTensor());
      program_->fixed[i] = c10::IValue();
      const auto first = std::find_if(given_.begin(), given_.end(), [&](const c10::IValue& other) {
        return is_defined_tensor(other) && other.toTensor().is_same(given_[i].toTensor());
      });
      program_->same_as[i] = static_cast<size_t>(first - given_.begin());
    }
  }

  void log(const char* part, const Graph& graph) const {
    log_graph(log_, options_.name, number_, part, graph);
  }

  std::vector<c10::IValue> example_primals() const {
    std::vector<c10::IValue> examples;
    for (const Primal& primal : program_->trace.primals)
      examples.emplace_back((primal.leaf ? given_[*primal.leaf].toTensor() : primal.tensor).detach());
    return examples;
  }

  void compile_inference() {
    std::unique_ptr<Graph> graph = std::move(program_->trace.joint.graph);
    log("inference", *graph);
    program_->check_forward = results_of(*graph, "AotOptions::inference_compiler");
    program_->forward =
        made(program_->check_forward,
             options_.inference_compiler(flat_module(std::move(graph), {}, options_.name + " (inference)"),
                                         example_primals(), {}));
  }

  void compile_parts() {
    const JointGraph& joint = program_->trace.joint;
    log("joint", *joint.graph);
    for (size_t i = 0; i < joint.tangents; ++i)
      program_->tangents.push_back(*joint.graph->inputs()[joint.primals + i].value->meta());
    program_->depends = tangents_behind_gradients(joint);
    for (const auto& node : joint.graph->nodes())
      program_->grad_mode = program_->grad_mode || node->is("aten::mkldnn_rnn_layer");
    PartitionedGraphs parts = options_.partition_fn(joint);
    check_parts(parts);
    program_->trace.joint.graph.reset();
    log("forward", *parts.forward);
    log("backward", *parts.backward);
    program_->saved = parts.saved;
    program_->check_forward = results_of(*parts.forward, "AotOptions::fw_compiler");
    program_->check_backward = results_of(*parts.backward, "AotOptions::bw_compiler");
    program_->backward_graph = flat_module(std::move(parts.backward), {}, options_.name + " (backward)");
    program_->backward_compiler = [compiler = options_.bw_compiler](const auto& module, const auto& examples,
                                                                    const auto& options) {
      const PauseTracing pause;
      return compiler(module, examples, options);
    };
    program_->forward =
        made(program_->check_forward,
             options_.fw_compiler(flat_module(std::move(parts.forward), {}, options_.name + " (forward)"),
                                  example_primals(), {}));
  }

  /// Of a function that a compiler is to make of the graph.
  ResultCheck results_of(const Graph& graph, const char* compiler) const {
    ResultCheck check(fmt::format("{}: {}", options_.name, compiler));
    for (size_t i = 0; i < graph.outputs().size(); ++i) check.expect(graph.output_value(i));
    return check;
  }

  static CompiledFunction made(const ResultCheck& check, CompiledFunction function) {
    return required(std::move(function), check.who() + ": the function that it made");
  }

  void check_parts(const PartitionedGraphs& parts) const {
    const JointGraph& joint = program_->trace.joint;
    if (!parts.forward || !parts.backward)
      fail(ErrorCode::kInvalidArgument, "{}: the partitioner gave no graph", options_.name);
    lint_or_throw(*parts.forward, "the forward graph");
    lint_or_throw(*parts.backward, "the backward graph");
    const bool fits = parts.forward->inputs().size() == joint.primals &&
                      parts.forward->outputs().size() == joint.results + parts.saved &&
                      parts.backward->inputs().size() == parts.saved + joint.tangents &&
                      parts.backward->outputs().size() == joint.primals;
    if (!fits)
      fail(ErrorCode::kInvalidArgument, "{}: the partitioner's graphs do not fit together", options_.name);
  }

  const AotOptions& options_;
  const DecompositionTable& table_;
  const GraphLog log_;
  int64_t number_ = 0;
  std::vector<c10::IValue> given_;
  std::shared_ptr<AotProgram> program_ = std::make_shared<AotProgram>();
};

template <typename Compile>
auto counted(const Compile& compile) {
  count(&AotCounters::total);
  try {
    auto result = compile();
    count(&AotCounters::ok);
    return result;
  } catch (const RestartAnalysis&) {
    throw;
  } catch (...) {
    count(&AotCounters::not_ok);
    throw;
  }
}

/// The graph as a function whose writes are really made, so that the trace sees them.
ForwardFunction graph_function(const std::shared_ptr<GraphModule>& module) {
  const auto interpreter =
      std::make_shared<const Interpreter>(std::shared_ptr<const Graph>(module, &module->graph()));
  return [module, interpreter](const std::vector<c10::IValue>& args) -> c10::IValue {
    const std::vector<c10::IValue> leaves = flatten_args(args).leaves;
    const auto tensors = module->tensors();
    const Graph& graph = module->graph();
    std::vector<c10::IValue> inputs =
        collect_graph_inputs(graph, {leaves, *tensors, TensorMap(), SymbolBindings()});
    const std::vector<c10::IValue> originals = inputs;
    // The graph's nodes read what was there before the writes, also in backward.
    for (const GraphOutput& output : graph.outputs()) {
      for (size_t k = 0; output.kind != OutputKind::kUser && k < inputs.size(); ++k)
        if (graph.inputs()[k].target == output.target) inputs[k] = inputs[k].toTensor().clone();
    }
    std::vector<c10::IValue> outputs = interpreter->run(std::move(inputs)), results;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const GraphOutput& output = graph.outputs()[i];
      if (output.kind == OutputKind::kUser) {
        results.push_back(outputs[i]);
        continue;
      }
      for (size_t k = 0; k < graph.inputs().size(); ++k) {
        if (graph.inputs()[k].target == output.target) originals[k].toTensor().copy_(outputs[i].toTensor());
      }
    }
    return c10::ivalue::Tuple::create(std::move(results));
  };
}

size_t user_inputs(const Graph& graph) {
  return static_cast<size_t>(
      std::count_if(graph.inputs().begin(), graph.inputs().end(),
                    [](const GraphInput& input) { return input.kind == InputKind::kUser; }));
}

bool is_nested(const std::vector<c10::IValue>& examples) {
  return std::any_of(examples.begin(), examples.end(), [](const c10::IValue& example) {
    return example.isList() || example.isTuple() || example.isGenericDict();
  });
}

/// The arguments' leaves; their nesting must be the one that was compiled.
std::vector<c10::IValue> leaves_of(const AotProgram& program, const std::vector<c10::IValue>& args) {
  FlatArgs flat = flatten_args(args);
  if (flat.spec != program.trace.call.args)
    fail(ErrorCode::kGuard, "{}: the arguments are nested otherwise than when it was compiled", program.name);
  return std::move(flat.leaves);
}

}  // namespace

AotAutograd::AotAutograd(AotOptions options) : shared_(std::make_shared<const Shared>(std::move(options))) {}

CompiledFunction AotAutograd::operator()(const std::shared_ptr<GraphModule>& module,
                                         const std::vector<c10::IValue>& examples,
                                         const CompilerOptions& options) const {
  required(module, shared_->options.name + ": the module");
  warn_of_options(options);
  const DecompositionTable& table = shared_->decompositions();
  const auto program = counted([&] {
    std::vector<c10::IValue> leaves = flatten_args(examples).leaves;
    if (leaves.size() != user_inputs(module->graph())) {
      fail(ErrorCode::kInvalidArgument, "{}: takes {} inputs, {} were given", module->name,
           user_inputs(module->graph()), leaves.size());
    }
    const auto tensors = module->tensors();
    for (const auto& [name, tensor] : *tensors) leaves.emplace_back(tensor);
    const bool gradients = at::GradMode::is_enabled() && any_requires_grad(leaves);
    const ForwardFunction forward = graph_function(module);
    return Compilation(shared_->options, shared_->debug_assert, table)
        .compile({.graph = module.get(), .forward = forward, .gradients = gradients}, examples);
  });
  if (!is_nested(examples))
    return [program, module](std::vector<c10::IValue> inputs) { return run_aot(program, std::move(inputs)); };
  return [program, module](std::vector<c10::IValue> args) {
    const c10::IValue result =
        unflatten(module->call_spec().result, run_aot(program, leaves_of(*program, args)));
    if (result.isTuple()) return result.toTupleRef().elements().vec();
    return result.isList() ? result.toListRef().vec() : std::vector<c10::IValue>{result};
  };
}

ForwardFunction AotAutograd::operator()(torch::nn::Module& module, const ForwardFunction& forward,
                                        const std::vector<c10::IValue>& examples,
                                        const CompilerOptions& options) const {
  required(forward, shared_->options.name + ": the function that calls the module");
  warn_of_options(options);
  const DecompositionTable& table = shared_->decompositions();
  const auto program = counted([&] {
    // The trace finds out whether anything requires grad, unregistered tensors included.
    const bool gradients = at::GradMode::is_enabled();
    return Compilation(shared_->options, shared_->debug_assert, table)
        .compile({.module = &module, .forward = forward, .gradients = gradients}, examples);
  });
  return [program](const std::vector<c10::IValue>& args) {
    return unflatten(program->trace.call.result, run_aot(program, leaves_of(*program, args)));
  };
}

GraphCompiler nop_compiler() {
  return NopCompiler();
}

AotCounters aot_counters() {
  const std::lock_guard lock(counters().mutex);
  return counters().values;
}

void reset_aot_counters() {
  const std::lock_guard lock(counters().mutex);
  counters().values = {};
}

GraphCompiler fake_tensor_unsupported(GraphCompiler compiler) {
  required(compiler, "fake_tensor_unsupported: the compiler");
  return [compiler = std::move(compiler)](const std::shared_ptr<GraphModule>& module,
                                          const std::vector<c10::IValue>& examples,
                                          const CompilerOptions& options) {
    std::vector<c10::IValue> real = examples;
    for (c10::IValue& example : real) {
      if (!is_defined_tensor(example) || !example.toTensor().is_meta()) continue;
      const at::Tensor& meta = example.toTensor();
      example = at::empty_strided(meta.sizes(), meta.strides(), meta.options().device(c10::kCPU)).zero_();
    }
    return compiler(module, real, options);
  };
}

c10::Device device_from_inputs(const std::vector<c10::IValue>& examples) {
  for (const c10::IValue& example : examples)
    if (is_defined_tensor(example)) return example.toTensor().device();
  return c10::Device(c10::kCPU);
}

c10::ScalarType dtype_from_inputs(const std::vector<c10::IValue>& examples) {
  for (const c10::IValue& example : examples)
    if (is_defined_tensor(example)) return example.toTensor().scalar_type();
  return c10::ScalarType::Float;
}

}  // namespace halftone
