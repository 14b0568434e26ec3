#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <atomic>
#include <chrono>
#include <set>

#include "base/errors.h"
#include "compiler/executor/aten_step.h"
#include "compiler/executor/plan_cache.h"
#include "compiler/executor/planner.h"
#include "compiler/passes/passes.h"
#include "graph/aten_splitter.h"
#include "graph/input_check.h"
#include "graph/interpreter.h"
#include "graph/mutation.h"
#include "halftone/compile.h"

namespace halftone {

using compiler::Buffer;
using compiler::Frame;
using compiler::Plan;
using compiler::PlanEntry;
using compiler::ResultPlan;

namespace {

/// Hands the instance back however the run ends.
class Lease {
 public:
  explicit Lease(const Plan& plan) : plan_(plan), frame_(plan.take_instance()) {}
  ~Lease() {
    // What ATen or the caller made must not outlive the run in here.
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      if (plan_.buffers[i].kind != Buffer::Kind::kConstant) frame_->tensors[i] = c10::IValue();
    }
    plan_.give_back(std::move(frame_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Frame& frame() { return *frame_; }

 private:
  const Plan& plan_;
  std::unique_ptr<Frame> frame_;
};

void put(Frame& frame, size_t buffer, const at::Tensor& tensor) {
  frame.pointers[buffer] = static_cast<std::byte*>(tensor.data_ptr());
  frame.tensors[buffer] = tensor;
}

void bind_tensors(const Plan& plan, const std::vector<c10::IValue>& inputs, Frame& frame) {
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].kind == Buffer::Kind::kInput) put(frame, i, inputs[plan.buffers[i].index].toTensor());
  }
  for (const int output : plan.outputs) {
    const auto index = static_cast<size_t>(output);
    const auto elements =
        static_cast<int64_t>(plan.buffers[index].bytes / c10::elementSize(plan.buffers[index].dtype));
    put(frame, index, at::empty_strided({elements}, {1}, at::TensorOptions(plan.buffers[index].dtype)));
  }
}

std::vector<c10::IValue> results_of(const Plan& plan, const Frame& frame) {
  std::vector<c10::IValue> results;
  results.reserve(plan.results.size());
  for (const ResultPlan& result : plan.results) {
    switch (result.kind) {
      case ResultPlan::Kind::kValue:
        results.push_back(result.value);
        break;
      case ResultPlan::Kind::kCopy:
        results.emplace_back(compiler::tensor_at(result.slot, frame).clone());
        break;
      case ResultPlan::Kind::kViewOfTensor:
        results.emplace_back(compiler::tensor_at(result.slot, frame));
        break;
    }
  }
  return results;
}

[[noreturn]] void rethrow_at(const Node& node, std::string_view message, ErrorCode code) {
  fail(code, "{} in layer \"{}\": {}", node.target(), node.source().layer, message);
}

void run_step(const compiler::Step& step, Frame& frame, const NodeHook* hook) {
  try {
    if (!hook) {
      step.run(frame);
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    step.run(frame);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    (*hook)(*step.node, {}, elapsed.count());
  } catch (const c10::Error& error) {
    rethrow_at(*step.node, error.what_without_backtrace(), ErrorCode::kInvalidArgument);
  } catch (const Error& error) {
    rethrow_at(*step.node, error.what(), error.code());
  }
}

}  // namespace

struct CompiledModel::State {
  std::shared_ptr<const GraphModule> module;
  std::shared_ptr<Graph> graph;  ///< rewritten
  TensorMap tensors;             ///< of the rewritten graph
  std::unique_ptr<const InputCheck> check;
  std::vector<bool> is_constant;  ///< by input of the graph: a tensor that no run writes
  bool has_state = false;
  std::vector<std::string> log;
  std::unique_ptr<compiler::PlanCache> plans;

  std::shared_ptr<const PlanEntry> entry(const std::vector<c10::IValue>& inputs,
                                         const SymbolBindings& bindings) const;
  std::vector<c10::IValue> execute(const ExecutorCall& call) const;
  ExecutorCall call_of(const std::vector<c10::IValue>& inputs, const SymbolBindings& bindings) const {
    static const TensorMap no_state;
    return {inputs, tensors, no_state, bindings, nullptr};
  }
};

std::shared_ptr<const PlanEntry> CompiledModel::State::entry(const std::vector<c10::IValue>& inputs,
                                                             const SymbolBindings& bindings) const {
  const int threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  compiler::PlanKey key = compiler::make_key(inputs, is_constant, threads);
  if (auto found = plans->find(key)) return found;
  auto made = std::make_shared<PlanEntry>();
  try {
    const compiler::PlanInputs plan_inputs{inputs, is_constant, bindings, threads};
    made->plan = compiler::Planner(*graph, plan_inputs).make();
  } catch (const compiler::NotPlannable& reason) {
    made->interpreter = std::make_unique<Interpreter>(graph);
    made->why_interpreted = reason.what();
  }
  return plans->insert(std::move(key), std::move(made));
}

std::vector<c10::IValue> CompiledModel::State::execute(const ExecutorCall& call) const {
  std::vector<c10::IValue> inputs =
      collect_graph_inputs(*graph, {call.inputs, tensors, call.state, call.bindings});
  const std::shared_ptr<const PlanEntry> ready = entry(inputs, call.bindings);
  if (!ready->plan) return ready->interpreter->run(std::move(inputs), call.hook);
  const Plan& plan = *ready->plan;
  Lease lease(plan);
  Frame& frame = lease.frame();
  AtenSplitter splitter;
  frame.splitter = &splitter;
  bind_tensors(plan, inputs, frame);
  for (const auto& step : plan.steps) run_step(*step, frame, call.hook);
  return results_of(plan, frame);
}

CompiledModel::CompiledModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
CompiledModel::~CompiledModel() = default;

std::vector<c10::IValue> CompiledModel::run(const ExecutorCall& call) const {
  return state_->execute(call);
}

std::vector<c10::IValue> CompiledModel::run(const std::vector<c10::IValue>& inputs) const {
  if (state_->has_state)
    fail(ErrorCode::kState, "{}: the model has state: run it in a Session", state_->module->name);
  const at::NoGradGuard no_grad;
  const SymbolBindings bindings = state_->check->check(inputs);
  return state_->execute(state_->call_of(inputs, bindings));
}

void CompiledModel::warm_up(const std::vector<c10::IValue>& inputs) const {
  const SymbolBindings bindings = state_->check->check(inputs);
  state_->entry(collect_graph_inputs(*state_->graph, state_->call_of(inputs, bindings)), bindings);
}

PlanReport CompiledModel::report(const std::vector<c10::IValue>& inputs) const {
  const SymbolBindings bindings = state_->check->check(inputs);
  const auto ready =
      state_->entry(collect_graph_inputs(*state_->graph, state_->call_of(inputs, bindings)), bindings);
  PlanReport report;
  report.interpreted = ready->why_interpreted;
  if (!ready->plan) return report;
  for (const auto& step : ready->plan->steps) {
    report.steps.push_back({step->node->target(), step->node->source().layer, step->kernel()});
  }
  report.left_to_aten = ready->plan->left_to_aten;
  report.arena_bytes = ready->plan->arena_bytes;
  return report;
}

const std::vector<std::string>& CompiledModel::log() const {
  return state_->log;
}
size_t CompiledModel::plan_count() const {
  return state_->plans->size();
}
const Graph& CompiledModel::graph() const {
  return *state_->graph;
}

std::shared_ptr<const CompiledModel> compile(std::shared_ptr<const GraphModule> module,
                                             const CompileOptions& options) {
  auto state = std::make_unique<CompiledModel::State>();
  state->graph = module->graph().clone();
  state->tensors = *module->tensors();
  compiler::run_passes(*state->graph, state->tensors, module->ranges, options.disabled_passes, state->log);
  state->check = std::make_unique<const InputCheck>(*module);
  const std::vector<bool> written = inputs_written_in_place(*state->graph);
  std::set<std::string> mutated;
  for (const GraphOutput& output : state->graph->outputs()) {
    if (output.kind == OutputKind::kBufferMutation) mutated.insert(output.target);
  }
  for (size_t i = 0; i < state->graph->inputs().size(); ++i) {
    const GraphInput& input = state->graph->inputs()[i];
    const bool own = input.kind != InputKind::kUser;
    const bool changes = written[i] || mutated.contains(input.target);
    state->is_constant.push_back(own && !changes);
    state->has_state = state->has_state || (own && changes);
  }
  state->plans = std::make_unique<compiler::PlanCache>(options.max_plans);
  state->module = std::move(module);
  return std::shared_ptr<const CompiledModel>(new CompiledModel(std::move(state)));
}

std::vector<PassInfo> compile_passes() {
  std::vector<PassInfo> passes;
  for (const compiler::Pass& pass : compiler::all_passes()) passes.push_back({pass.name, pass.what});
  return passes;
}

}  // namespace halftone
