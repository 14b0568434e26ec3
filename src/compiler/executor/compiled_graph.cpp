// compile(): rewrites a copy of the graph, and makes a plan for each shape at its first call.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "base/errors.h"
#include "compiler/executor/plan_cache.h"
#include "compiler/executor/planner.h"
#include "compiler/executor/run_plan.h"
#include "compiler/passes/passes.h"
#include "graph/aten/autocast_state.h"
#include "graph/checks/check_shapes.h"
#include "graph/run/input_check.h"
#include "graph/run/interpreter.h"
#include "graph/run/mutation.h"
#include "halftone/compile/compile.h"

namespace halftone {

using compiler::CallInputs;
using compiler::InputSource;
using compiler::PlanEntry;
using compiler::PlanKey;

namespace {

/// The runs of this process that are under way: they share the threads, so that eight callers on two cores do
/// not start sixteen.
class ActiveRun {
 public:
  ActiveRun() : now_(++count_) {}
  ~ActiveRun() { --count_; }
  ActiveRun(const ActiveRun&) = delete;
  ActiveRun& operator=(const ActiveRun&) = delete;
  int share_of(int threads) const { return std::max(1, threads / now_); }

 private:
  static inline std::atomic<int> count_{0};
  int now_;
};

/// Lazy conjugates and negatives: ATen knows them, kernels do not.
bool has_lazy_input(const std::vector<c10::IValue>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const c10::IValue& value) {
    return value.isTensor() && value.toTensor().defined() &&
           (value.toTensor().is_conj() || value.toTensor().is_neg());
  });
}

const TensorMap& no_state() {
  static const TensorMap none;
  return none;
}

}  // namespace

struct CompiledGraph::State {
  std::shared_ptr<const GraphModule> module;
  std::shared_ptr<Graph> graph;  ///< rewritten
  std::unique_ptr<const InputCheck> check;
  std::vector<InputSource> sources;  ///< one for each input of the rewritten graph
  size_t user_inputs = 0;
  std::string needs_session;  ///< why; empty if it does not
  int threads = 0;
  ConvChoice convolutions = ConvChoice::kHalftone;
  std::vector<std::string> log;
  std::unique_ptr<compiler::PlanCache> plans;

  int threads_now() const {
    const int all = at::in_parallel_region() ? 1 : at::get_num_threads();
    return threads > 0 ? std::min(threads, all) : all;
  }
  void refuse_without_session() const {
    if (!needs_session.empty()) fail(ErrorCode::kState, "{}: {}", module->name, needs_session);
  }
  /// `user`: one for each user input.
  std::shared_ptr<const PlanEntry> make(const CallInputs& inputs, const std::vector<c10::IValue>& user,
                                        PlanKey key, const SymbolBindings& bindings) const;
  /// For calls without a session: checks the inputs where they are new.
  std::shared_ptr<const PlanEntry> entry(const std::vector<c10::IValue>& inputs) const;
  std::vector<c10::IValue> interpret(const CallInputs& inputs, const NodeHook* hook) const {
    return Interpreter(graph).run(inputs.collect(), hook);
  }
  void add_source(const GraphInput& input, const TensorMap& tensors, bool changes);
};

std::shared_ptr<const PlanEntry> CompiledGraph::State::make(const CallInputs& inputs,
                                                            const std::vector<c10::IValue>& user, PlanKey key,
                                                            const SymbolBindings& bindings) const {
  // Passes took nodes out where the graph declares that they change nothing: it must be true for these sizes.
  check_shapes(*module, user, bindings);
  auto made = std::make_shared<PlanEntry>();
  try {
    compiler::PlanInputs plan_inputs{inputs.collect(), {}, bindings, threads_now(), convolutions};
    for (size_t i = 0; i < inputs.size(); ++i) plan_inputs.is_constant.push_back(inputs.is_constant(i));
    made->plan = compiler::Planner(*graph, plan_inputs).make();
  } catch (const compiler::NotPlannable& reason) {
    made->interpreter = std::make_unique<Interpreter>(graph);
    made->why_interpreted = reason.what();
  }
  return plans->insert(std::move(key), std::move(made));
}

std::shared_ptr<const PlanEntry> CompiledGraph::State::entry(const std::vector<c10::IValue>& inputs) const {
  thread_local PlanKey key;  // its memory serves all calls of this thread
  const CallInputs call(sources, inputs, no_state());
  // Inputs like others before need no check: they have passed it then.
  const bool plain = inputs.size() == user_inputs && compiler::make_key(call, threads_now(), key);
  if (plain) {
    if (auto found = plans->find(key)) return found;
  }
  const SymbolBindings bindings = check->check(inputs);
  if (!plain)
    fail(ErrorCode::kUnsupported, "{}: an input is neither a dense tensor on the CPU nor a number",
         module->name);
  return make(call, inputs, key, bindings);
}

CompiledGraph::CompiledGraph(std::unique_ptr<State> state) : state_(std::move(state)) {}
CompiledGraph::~CompiledGraph() = default;

std::vector<c10::IValue> CompiledGraph::run(const ExecutorCall& call) const {
  const CallInputs inputs(state_->sources, call.inputs, call.state);
  if (has_lazy_input(call.inputs)) return state_->interpret(inputs, call.hook);
  PlanKey key;
  if (!compiler::make_key(inputs, state_->threads_now(), key)) return state_->interpret(inputs, call.hook);
  auto ready = state_->plans->find(key);
  if (!ready) ready = state_->make(inputs, call.inputs, std::move(key), call.bindings);
  if (!ready->plan) return ready->interpreter->run(inputs.collect(), call.hook);
  const auto& written = ready->plan->written_states;
  const bool may_write = std::all_of(written.begin(), written.end(), [&](int buffer) {
    return inputs.is_own_state(ready->plan->buffers[static_cast<size_t>(buffer)].index);
  });
  if (!may_write) return state_->interpret(inputs, call.hook);
  const ActiveRun active;
  return run_plan(*ready->plan, inputs, active.share_of(ready->plan->threads), call.hook);
}

std::vector<c10::IValue> CompiledGraph::run(const std::vector<c10::IValue>& inputs) const {
  state_->refuse_without_session();
  const at::NoGradGuard no_grad;
  const WithoutAutocast no_autocast;
  const CallInputs call(state_->sources, inputs, no_state());
  if (has_lazy_input(inputs)) {
    state_->check->check(inputs);
    return state_->interpret(call, nullptr);
  }
  const std::shared_ptr<const PlanEntry> ready = state_->entry(inputs);
  if (!ready->plan) return ready->interpreter->run(call.collect(), nullptr);
  const ActiveRun active;
  return run_plan(*ready->plan, call, active.share_of(ready->plan->threads), nullptr);
}

void CompiledGraph::run_into(const std::vector<c10::IValue>& inputs,
                             const std::vector<at::Tensor>& outputs) const {
  state_->refuse_without_session();
  const at::NoGradGuard no_grad;
  const WithoutAutocast no_autocast;
  const std::shared_ptr<const PlanEntry> ready = has_lazy_input(inputs) ? nullptr : state_->entry(inputs);
  if (ready && ready->plan) {
    const ActiveRun active;
    run_plan_into(*ready->plan, CallInputs(state_->sources, inputs, no_state()),
                  active.share_of(ready->plan->threads), outputs);
    return;
  }
  compiler::copy_results(run(inputs), outputs);
}

void CompiledGraph::warm_up(const std::vector<c10::IValue>& inputs) const {
  state_->entry(inputs);
}

PlanReport CompiledGraph::report(const std::vector<c10::IValue>& inputs) const {
  const auto ready = state_->entry(inputs);
  PlanReport report;
  report.threads = state_->threads_now();
  report.interpreted = ready->why_interpreted;
  if (!ready->plan) return report;
  for (const auto& step : ready->plan->steps) {
    report.steps.push_back({step->node->target(), step->node->source().layer, step->kernel(),
                            step->work.bytes, step->work.operations, step->work.arithmetic});
  }
  report.left_to_aten = ready->plan->left_to_aten;
  report.choices = ready->plan->choices;
  report.arena_bytes = ready->plan->arena_bytes;
  return report;
}

const std::vector<std::string>& CompiledGraph::log() const {
  return state_->log;
}
size_t CompiledGraph::plan_count() const {
  return state_->plans->size();
}
const Graph& CompiledGraph::graph() const {
  return *state_->graph;
}

void CompiledGraph::State::add_source(const GraphInput& input, const TensorMap& tensors, bool changes) {
  InputSource source{.user = input.kind == InputKind::kUser, .target = input.target};
  if (source.user) {
    source.user_index = user_inputs++;
  } else {
    const auto found = tensors.find(input.target);
    if (found == tensors.end()) fail(ErrorCode::kNotFound, "the model has no tensor \"{}\"", input.target);
    source.own = found->second;
    source.constant = !changes;
    if (changes) needs_session = "the model has state: run it in a Session";
  }
  sources.push_back(std::move(source));
}

std::shared_ptr<const CompiledGraph> compile(std::shared_ptr<const GraphModule> module,
                                             const CompileOptions& options) {
  required(module, "compile: the module");
  if (options.threads < 0)
    fail(ErrorCode::kInvalidArgument, "CompileOptions::threads is {}: 0 means as many as ATen has",
         options.threads);
  if (options.max_plans == 0)
    fail(ErrorCode::kInvalidArgument, "CompileOptions::max_plans is 0: a model needs one plan at least");
  auto state = std::make_unique<CompiledGraph::State>();
  state->graph = module->graph().clone();
  TensorMap tensors = *module->tensors();
  compiler::run_passes(*state->graph, tensors, module->ranges, options.disabled_passes, state->log);
  state->check = std::make_unique<const InputCheck>(*module);
  state->threads = options.threads;
  state->convolutions = options.convolutions;
  const std::vector<bool> written = inputs_written_in_place(*state->graph);
  std::set<std::string> mutated;
  for (const GraphOutput& output : state->graph->outputs()) {
    if (output.kind == OutputKind::kBufferMutation) mutated.insert(output.target);
    if (output.kind == OutputKind::kInputMutation)
      state->needs_session = "the model writes to its inputs: run it in a Session";
  }
  for (size_t i = 0; i < state->graph->inputs().size(); ++i) {
    const GraphInput& input = state->graph->inputs()[i];
    state->add_source(input, tensors, written[i] || mutated.contains(input.target));
  }
  state->plans = std::make_unique<compiler::PlanCache>(options.max_plans);
  state->module = std::move(module);
  return std::shared_ptr<const CompiledGraph>(new CompiledGraph(std::move(state)));
}

std::vector<PassInfo> compile_passes() {
  std::vector<PassInfo> passes;
  for (const compiler::Pass& pass : compiler::all_passes()) passes.push_back({pass.name, pass.what});
  return passes;
}

}  // namespace halftone
