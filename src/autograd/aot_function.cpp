#include "autograd/aot_function.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <unordered_set>

#include "autograd/aot_node.h"
#include "autograd/flat_module.h"
#include "base/errors.h"
#include "capture/module/trace_run.h"
#include "capture/module/tracing/geometry.h"
#include "graph/aten/autocast_state.h"
#include "graph/aten/dtype_text.h"

namespace halftone {
namespace {

bool same_constant(const c10::IValue& a, const c10::IValue& b) {
  if (is_defined_tensor(a) || is_defined_tensor(b)) return false;
  if (a.isTensor() || a.isNone()) return b.isTensor() || b.isNone();
  return a.tagKind() == b.tagKind() && a == b;
}

template <typename Range>
std::string list_of(const Range& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

bool equal_sizes(const std::vector<SymExpr>& expected, at::IntArrayRef given) {
  if (expected.size() != given.size()) return false;
  for (size_t i = 0; i < given.size(); ++i)
    if (expected[i].constant() != given[i]) return false;
  return true;
}

/// A function is made for tensors of one form; others would give other graphs.
void check_form(const AotProgram& program, const std::string& name, const TensorMeta& expected,
                const at::Tensor& given) {
  const auto refuse = [&](const char* what, const std::string& found, const std::string& wanted) {
    fail(ErrorCode::kGuard, "{}: {} has {} {}, compiled was for {}", program.name, name, what, found, wanted);
  };
  if (given.scalar_type() != expected.dtype)
    refuse("type", dtype_text(given.scalar_type()), dtype_text(expected.dtype));
  if (!equal_sizes(expected.sizes, given.sizes()))
    refuse("sizes", list_of(given.sizes()), list_of(constant_sizes(expected.sizes)));
  if (!equal_sizes(expected.strides, given.strides()))
    refuse("strides", list_of(given.strides()), list_of(constant_sizes(expected.strides)));
  if (given.device() != expected.device) refuse("device", given.device().str(), expected.device.str());
}

void check_autocast(const AotProgram& program) {
  if (autocast_dtype() == program.autocast) return;
  fail(ErrorCode::kGuard, "{}: autocast is {} in this call, it was {} when the model was compiled",
       program.name, describe_autocast(autocast_dtype()), describe_autocast(program.autocast));
}

void check_inputs(const AotProgram& program, const std::vector<c10::IValue>& leaves) {
  if (leaves.size() != program.leaves.size()) {
    fail(ErrorCode::kInvalidArgument, "{}: takes {} inputs, {} were given", program.name,
         program.leaves.size(), leaves.size());
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!program.leaves[i]) {
      if (same_constant(program.fixed[i], leaves[i])) continue;
      fail(ErrorCode::kGuard, "{}: input {} is another constant than the one compiled for", program.name, i);
    }
    if (!is_defined_tensor(leaves[i])) {
      fail(ErrorCode::kInvalidArgument, "{}: input {}: expected a tensor, found {}", program.name, i,
           leaves[i].isTensor() ? "an undefined tensor" : leaves[i].tagKind());
    }
    check_form(program, fmt::format("input {}", i), *program.leaves[i], leaves[i].toTensor());
    const size_t first = program.same_as[i];
    if (!leaves[first].toTensor().is_same(leaves[i].toTensor()))
      fail(ErrorCode::kGuard, "{}: inputs {} and {} were one tensor when it was compiled", program.name,
           first, i);
  }
}

bool has_form(const TensorMeta& expected, const at::Tensor& given) {
  return given.defined() && given.scalar_type() == expected.dtype &&
         equal_sizes(expected.sizes, given.sizes()) && equal_sizes(expected.strides, given.strides());
}

void check_own(const AotProgram& program, const Primal& primal) {
  if (has_form(primal.meta, primal.tensor)) return;
  check_form(program, fmt::format("the module's \"{}\"", primal.name), primal.meta, primal.tensor);
}

std::vector<at::Tensor> primals_of(const AotProgram& program, const std::vector<c10::IValue>& leaves) {
  std::vector<at::Tensor> primals;
  primals.reserve(program.trace.primals.size());
  for (const Primal& primal : program.trace.primals) {
    primals.push_back(primal.leaf ? leaves[*primal.leaf].toTensor() : primal.tensor);
    // The module is the caller's: to(dtype) and set_data() change tensors under their handles.
    if (!primal.leaf) check_own(program, primal);
  }
  return primals;
}

/// What is written must not be seen through another input: the graph was traced without that.
void check_written(const AotProgram& program, const std::vector<at::Tensor>& primals) {
  for (const size_t written : program.trace.written) {
    for (size_t i = 0; i < primals.size(); ++i) {
      if (i == written || !primals[i].has_storage() ||
          !primals[i].storage().is_alias_of(primals[written].storage()))
        continue;
      if (!Geometry::of(primals[i]).overlaps(Geometry::of(primals[written]))) continue;
      fail(ErrorCode::kGuard, "{}: the model writes to \"{}\", which shares memory with \"{}\" in this call",
           program.name, program.trace.primals[written].name, program.trace.primals[i].name);
    }
  }
}

/// Whether the call is to be differentiated; an inference program cannot.
bool needs_gradients(const AotProgram& program, const std::vector<at::Tensor>& primals) {
  if (!at::GradMode::is_enabled()) return false;
  bool needed = false;
  for (size_t i = 0; i < primals.size(); ++i) {
    if (!primals[i].requires_grad()) continue;
    needed = true;
    if (program.trace.primals[i].requires_grad) continue;
    fail(ErrorCode::kGuard, "{}: \"{}\" requires grad in this call, it did not when the model was compiled",
         program.name, program.trace.primals[i].name);
  }
  return needed;
}

void check_results(const AotProgram& program, const std::vector<c10::IValue>& outputs) {
  for (size_t i = 0; i < program.trace.results.size(); ++i) {
    const TensorMeta& expected = program.trace.results[i];
    const at::Tensor& given = outputs[i].toTensor();
    if (has_form(expected, given)) continue;
    fail(ErrorCode::kInternal, "{}: result {} is {} {} with strides {}, traced was {} {} with strides {}",
         program.name, i, dtype_text(given.scalar_type()), list_of(given.sizes()), list_of(given.strides()),
         dtype_text(expected.dtype), list_of(constant_sizes(expected.sizes)),
         list_of(constant_sizes(expected.strides)));
  }
}

/// One call.
class AotCall {
 public:
  AotCall(const std::shared_ptr<const AotProgram>& program, std::vector<at::Tensor> primals)
      : program_(program), primals_(std::move(primals)) {}

  std::vector<c10::IValue> run() {
    differentiated_ = needs_gradients(*program_, primals_);
    check_written(*program_, primals_);
    run_forward();
    if (program_->debug_assert) check_results(*program_, outputs_);
    keep_what_is_overwritten();
    apply_writes();
    if (differentiated_ && !program_->trace.differentiable.empty()) attach_backward();
    return results();
  }

 private:
  void run_forward() {
    const at::AutoGradMode grad_mode(program_->grad_mode);
    std::vector<c10::IValue> inputs;
    inputs.reserve(primals_.size());
    for (const at::Tensor& primal : primals_)
      inputs.emplace_back(program_->grad_mode ? primal.detach() : primal);
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    const WithoutAutocast no_autocast;
    outputs_ = program_->forward(std::move(inputs));
    program_->check_forward(outputs_);
  }

  size_t first_saved() const { return program_->trace.results.size() + program_->trace.written.size(); }

  /// Saved values that the writes would change: backward wants them as they were.
  void keep_what_is_overwritten() {
    if (program_->trace.written.empty()) return;
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const bool write = i >= program_->trace.results.size() && i < first_saved();
      if (write || !is_defined_tensor(outputs_[i])) continue;
      const at::Tensor& value = outputs_[i].toTensor();
      for (const size_t written : program_->trace.written) {
        if (!value.has_storage() || !value.storage().is_alias_of(primals_[written].storage())) continue;
        outputs_[i] = value.detach().clone();
        break;
      }
    }
  }

  void apply_writes() {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < program_->trace.written.size(); ++i) {
      const at::Tensor& value = outputs_[program_->trace.results.size() + i].toTensor();
      primals_[program_->trace.written[i]].copy_(value);
    }
  }

  void attach_backward() {
    torch::autograd::edge_list edges = torch::autograd::collect_next_edges(primals_);
    const auto node = c10::make_intrusive<AotNode>(program_, std::move(edges));
    std::unordered_set<const c10::TensorImpl*> with_history;
    for (const size_t index : program_->trace.differentiable) {
      at::Tensor result = outputs_[index].toTensor();
      const bool shared = result.requires_grad() || result.is_view() ||
                          std::any_of(primals_.begin(), primals_.end(),
                                      [&](const at::Tensor& primal) { return primal.is_same(result); });
      if (shared) result = result.variable_data();
      torch::autograd::set_history(result, node);
      with_history.insert(result.unsafeGetTensorImpl());
      if (shared) outputs_[index] = result;
    }
    std::vector<torch::autograd::SavedVariable> saved;
    saved.reserve(program_->saved);
    for (size_t i = first_saved(); i < outputs_.size(); ++i) {
      const at::Tensor& value = outputs_[i].toTensor();
      saved.emplace_back(value, /*is_output=*/with_history.contains(value.unsafeGetTensorImpl()));
    }
    node->save(std::move(saved));
  }

  std::vector<c10::IValue> results() const {
    std::vector<c10::IValue> results;
    for (const ResultLeaf& leaf : program_->trace.leaves) results.push_back(result_of(leaf));
    return results;
  }

  c10::IValue result_of(const ResultLeaf& leaf) const {
    if (leaf.kind == ResultLeaf::Kind::kConstant) return leaf.constant;
    if (leaf.kind == ResultLeaf::Kind::kComputed) return outputs_[leaf.index];
    const at::Tensor& primal = primals_[leaf.index];
    if (leaf.kind == ResultLeaf::Kind::kPrimal && !leaf.detached) return primal;
    const at::Tensor base = leaf.detached ? primal.detach() : primal;
    if (leaf.kind == ResultLeaf::Kind::kPrimal) return base;
    return base.as_strided(leaf.sizes, leaf.strides, base.storage_offset() + leaf.offset);
  }

  const std::shared_ptr<const AotProgram>& program_;
  std::vector<at::Tensor> primals_;
  std::vector<c10::IValue> outputs_;
  bool differentiated_ = false;
};

}  // namespace

const CompiledFunction& AotProgram::backward() const {
  const std::lock_guard lock(mutex_);
  if (!backward_)
    backward_ =
        required(backward_compiler(backward_graph, examples_without_data(backward_graph->graph()), options),
                 check_backward.who() + ": the function that it made");
  return backward_;
}

std::vector<c10::IValue> run_aot(const std::shared_ptr<const AotProgram>& program,
                                 std::vector<c10::IValue> leaves) {
  check_autocast(*program);
  check_inputs(*program, leaves);
  std::vector<at::Tensor> primals = primals_of(*program, leaves);
  leaves.clear();
  return AotCall(program, std::move(primals)).run();
}

}  // namespace halftone
