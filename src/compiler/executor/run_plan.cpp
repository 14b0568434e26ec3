#include "compiler/executor/run_plan.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <chrono>

#include "base/errors.h"
#include "compiler/executor/aten_step.h"
#include "compiler/executor/memory/guarded_memory.h"
#include "compiler/executor/planner.h"
#include "compiler/executor/worker_pools.h"
#include "graph/aten/aten_parallel_for.h"
#include "graph/aten/dtype_text.h"
#include "graph/aten/torch_errors.h"

namespace halftone::compiler {

namespace {

/// Hands the instance back however the run ends.
class Lease {
 public:
  explicit Lease(const Plan& plan) : plan_(plan), frame_(plan.take_instance()) {}
  ~Lease() {
    // What ATen or the caller made must not outlive the run in here.
    for (const int buffer : plan_.tensors_of_a_run) frame_->tensors[static_cast<size_t>(buffer)] = {};
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

void bind_inputs(const Plan& plan, const CallInputs& inputs, Frame& frame) {
  for (const int input : plan.inputs) {
    const auto index = static_cast<size_t>(input);
    put(frame, index, inputs.tensor(plan.buffers[index].index));
  }
}

void bind_new_output(const Plan& plan, const PlannedOutput& output, Frame& frame) {
  const auto index = static_cast<size_t>(output.buffer);
  const Buffer& buffer = plan.buffers[index];
  const size_t element = c10::elementSize(buffer.dtype);
  const auto elements = static_cast<int64_t>(buffer.bytes / element);
  if (guarded_plan_memory()) {
    at::DataPtr memory = guarded_allocate(buffer.bytes, element);
    void* data = memory.get();
    const auto keep = std::make_shared<at::DataPtr>(std::move(memory));
    return put(frame, index,
               at::from_blob(
                   data, {elements}, [keep](void*) {}, at::TensorOptions(buffer.dtype)));
  }
  put(frame, index, at::empty_strided({elements}, {1}, at::TensorOptions(buffer.dtype)));
}

void run_step(const Step& step, Frame& frame, const NodeHook* hook) {
  try {
    if (!hook) {
      step.run(frame);
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    step.run(frame);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    (*hook)(*step.node, {}, elapsed.count());
  } catch (const std::exception&) {
    rethrow_at(describe(*step.node), ErrorCode::kInvalidArgument);
  }
}

void run_steps_on(const Plan& plan, Frame& frame, ParallelFor& parallel_for, const NodeHook* hook) {
  frame.parallel_for = &parallel_for;
  // Drops are sorted by step. They free tensors that ATen made as soon as their last reader has run, as
  // eager does: a frame is kept between runs and would keep them otherwise.
  auto drop = plan.drops.begin();
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    run_step(*plan.steps[i], frame, hook);
    for (; drop != plan.drops.end() && drop->step == static_cast<int>(i); ++drop)
      frame.tensors[static_cast<size_t>(drop->buffer)] = {};
  }
}

/// Steps of ATen's and ours share ATen's threads: two sets of threads that spin would get into each other's
/// way. A plan without the former needs no barriers.
void run_steps(const Plan& plan, Frame& frame, int threads, const NodeHook* hook) {
  if (threads == 1) {
    SerialFor serial;
    run_steps_on(plan, frame, serial, hook);
  } else if (plan.left_to_aten.empty()) {
    PoolLease pool(threads);
    run_steps_on(plan, frame, pool.parallel_for(), hook);
  } else {
    AtenParallelFor parallel_for(threads);
    run_steps_on(plan, frame, parallel_for, hook);
  }
}

c10::IValue result_of(const ResultPlan& result, const Frame& frame) {
  switch (result.kind) {
    case ResultPlan::Kind::kValue:
      return result.value;
    case ResultPlan::Kind::kCopy:
      return tensor_at(result.slot, frame).clone();
    case ResultPlan::Kind::kViewOfTensor:
      break;
  }
  return tensor_at(result.slot, frame);
}

void check_count(size_t given, size_t wanted) {
  if (given == wanted) return;
  fail(ErrorCode::kInvalidArgument, "{} outputs were given, the model has {}", given, wanted);
}

/// `wanted`: with the sizes and the dtype of the result; undefined if that is not a tensor.
void check_output(const at::Tensor& wanted, const at::Tensor& given, size_t index) {
  if (wanted.defined() != given.defined()) {
    fail(ErrorCode::kInvalidArgument, "output {}: {}", index,
         wanted.defined() ? "a tensor is wanted, none was given" : "the result is no tensor, one was given");
  }
  if (!wanted.defined()) return;
  if (given.scalar_type() != wanted.scalar_type() || given.sizes() != wanted.sizes() ||
      !given.device().is_cpu() || given.layout() != at::kStrided) {
    fail(ErrorCode::kInvalidArgument, "output {}: {} {} on the CPU is wanted, {} {} was given", index,
         dtype_text(wanted.scalar_type()), c10::str(wanted.sizes()), dtype_text(given.scalar_type()),
         c10::str(given.sizes()));
  }
  if (at::has_internal_overlap(given) == at::MemOverlap::Yes) {
    fail(ErrorCode::kInvalidArgument,
         "output {}: some of its elements share one place in memory (strides {}): nothing can be written "
         "there",
         index, c10::str(given.strides()));
  }
}

/// Whether two tensors may have memory in common; their storages decide.
bool may_overlap(const at::Tensor& a, const at::Tensor& b) {
  const auto* first = static_cast<const std::byte*>(a.storage().data());
  const auto* second = static_cast<const std::byte*>(b.storage().data());
  return first < second + b.storage().nbytes() && second < first + a.storage().nbytes();
}

/// Whether steps may write to the caller's tensor itself.
bool is_free(const Plan& plan, const CallInputs& inputs, const std::vector<at::Tensor>& outputs,
             size_t index) {
  const at::Tensor& given = outputs[index];
  if (!given.is_contiguous() || given.is_conj() || given.is_neg()) return false;
  for (const int input : plan.inputs) {
    if (may_overlap(given, inputs.tensor(plan.buffers[static_cast<size_t>(input)].index))) return false;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i != index && outputs[i].defined() && may_overlap(given, outputs[i])) return false;
  }
  return true;
}

void copy_what_is_not_there(const Plan& plan, const Frame& frame, const std::vector<at::Tensor>& outputs) {
  std::vector<std::pair<size_t, at::Tensor>> left;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ResultPlan& result = plan.results[i];
    if (result.kind == ResultPlan::Kind::kValue) continue;
    const c10::IValue& bound = frame.tensors[static_cast<size_t>(result.slot.buffer)];
    if (bound.isTensor() && bound.toTensor().is_same(outputs[i])) continue;
    left.emplace_back(i, tensor_at(result.slot, frame));
  }
  // Results that are views of inputs must be read before another output overwrites that input.
  if (left.size() > 1) {
    for (auto& [index, tensor] : left) tensor = tensor.clone();
  }
  for (const auto& [index, tensor] : left) outputs[index].copy_(tensor);
}

}  // namespace

const c10::IValue* CallInputs::number(size_t index) const {
  const InputSource& source = sources_[index];
  if (!source.user || user_[source.user_index].isTensor()) return nullptr;
  return &user_[source.user_index];
}

const at::Tensor& CallInputs::tensor(size_t index) const {
  const InputSource& source = sources_[index];
  if (source.user) return user_[source.user_index].toTensor();
  if (source.constant) return source.own;
  const auto state = state_.find(source.target);
  return state == state_.end() ? source.own : state->second;
}

bool CallInputs::is_own_state(size_t index) const {
  const InputSource& source = sources_[index];
  const auto state = source.user ? state_.end() : state_.find(source.target);
  if (state == state_.end()) return false;
  return std::none_of(user_.begin(), user_.end(), [&](const c10::IValue& given) {
    if (!given.isTensor() || !given.toTensor().defined() || !given.toTensor().has_storage()) return false;
    return given.toTensor().is_alias_of(state->second);
  });
}

std::vector<c10::IValue> CallInputs::collect() const {
  std::vector<c10::IValue> values;
  values.reserve(size());
  for (size_t i = 0; i < size(); ++i) {
    const c10::IValue* found = number(i);
    values.push_back(found ? *found : c10::IValue(tensor(i)));
  }
  return values;
}

std::vector<c10::IValue> run_plan(const Plan& plan, const CallInputs& inputs, int threads,
                                  const NodeHook* hook) {
  Lease lease(plan);
  Frame& frame = lease.frame();
  bind_inputs(plan, inputs, frame);
  for (const PlannedOutput& output : plan.outputs) bind_new_output(plan, output, frame);
  run_steps(plan, frame, threads, hook);
  std::vector<c10::IValue> results;
  results.reserve(plan.results.size());
  for (const ResultPlan& result : plan.results) results.push_back(result_of(result, frame));
  return results;
}

void run_plan_into(const Plan& plan, const CallInputs& inputs, int threads,
                   const std::vector<at::Tensor>& outputs) {
  check_count(outputs.size(), plan.results.size());
  for (size_t i = 0; i < outputs.size(); ++i) check_output(plan.results[i].slot.meta, outputs[i], i);
  Lease lease(plan);
  Frame& frame = lease.frame();
  bind_inputs(plan, inputs, frame);
  for (const PlannedOutput& output : plan.outputs) {
    if (output.result >= 0 && is_free(plan, inputs, outputs, static_cast<size_t>(output.result))) {
      put(frame, static_cast<size_t>(output.buffer), outputs[static_cast<size_t>(output.result)]);
    } else {
      bind_new_output(plan, output, frame);
    }
  }
  run_steps(plan, frame, threads, nullptr);
  copy_what_is_not_there(plan, frame, outputs);
}

void copy_results(std::vector<c10::IValue> results, const std::vector<at::Tensor>& outputs) {
  check_count(outputs.size(), results.size());
  for (size_t i = 0; i < results.size(); ++i)
    check_output(results[i].isTensor() ? results[i].toTensor() : at::Tensor(), outputs[i], i);
  for (size_t i = 0; i < results.size(); ++i) {
    // A result may be a view of an input that an output before it has overwritten.
    for (size_t j = i + 1; j < results.size(); ++j) {
      if (outputs[i].defined() && outputs[j].defined() && may_overlap(outputs[i], results[j].toTensor()))
        results[j] = results[j].toTensor().clone();
    }
    if (outputs[i].defined()) outputs[i].copy_(results[i].toTensor());
  }
}

}  // namespace halftone::compiler
