#include "capture/module/joint_trace.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include <unordered_map>
#include <unordered_set>

#include "base/errors.h"
#include "capture/module/own_memory.h"
#include "capture/module/trace.h"
#include "capture/module/trace_run.h"
#include "capture/module/tracing/geometry.h"
#include "graph/aten/autocast_state.h"

namespace halftone {
namespace {

/// Hooks of parameters belong to real backward passes: they are set aside while a trace makes one.
class HooksAside {
 public:
  explicit HooksAside(const ModuleTensors& tensors) {
    for (const ModuleTensor& named : tensors.tensors()) {
      auto* meta = torch::autograd::impl::get_autograd_meta(named.tensor);
      if (meta && !meta->hooks_.empty()) kept_.emplace_back(named.tensor, std::move(meta->hooks_));
      if (meta) meta->hooks_.clear();
    }
  }
  ~HooksAside() {
    for (auto& [tensor, hooks] : kept_)
      torch::autograd::impl::get_autograd_meta(tensor)->hooks_ = std::move(hooks);
  }
  HooksAside(const HooksAside&) = delete;
  HooksAside& operator=(const HooksAside&) = delete;

 private:
  using Hooks = decltype(torch::autograd::AutogradMeta::hooks_);
  std::vector<std::pair<at::Tensor, Hooks>> kept_;
};

ModuleTensors named_tensors(const JointRequest& request) {
  if (request.module) return ModuleTensors(*request.module);
  return request.graph ? ModuleTensors(request.graph->graph(), *request.graph->tensors()) : ModuleTensors();
}

/// The same content as leaves of autograd's graph, so that backward ends there. One handle for each tensor:
/// what is given twice stays one tensor.
std::vector<c10::IValue> as_leaves(const std::vector<c10::IValue>& values, bool gradients) {
  std::unordered_map<const c10::TensorImpl*, at::Tensor> known;
  std::vector<c10::IValue> leaves;
  for (const c10::IValue& value : with_own_memory(values, SameTensor::kStaysOne)) {
    if (!is_defined_tensor(value)) {
      leaves.push_back(value);
      continue;
    }
    at::Tensor& leaf = known[value.toTensor().unsafeGetTensorImpl()];
    if (!leaf.defined()) {
      leaf = value.toTensor().detach();
      leaf.set_requires_grad(gradients && value.toTensor().requires_grad());
    }
    leaves.emplace_back(leaf);
  }
  return leaves;
}

/// Memory like the result's; whatever is in it, the formulas do not look.
at::Tensor tangent_for(const at::Tensor& result) {
  at::Tensor tangent = result.is_non_overlapping_and_dense()
                           ? at::empty_strided(result.sizes(), result.strides(), result.options())
                           : at::empty(result.sizes(), result.options());
  return tangent.fill_(1);
}

class JointTracer {
 public:
  JointTracer(const JointRequest& request, const std::vector<c10::IValue>& examples)
      : request_(request),
        examples_(examples),
        names_(named_tensors(request)),
        hooks_(names_),
        run_(*graph_, names_, request.module,
             {.level = TraceLevel::kBelowAutograd,
              .keep_random = true,
              .decompositions = request.decompositions}) {}

  JointTrace trace() {
    const at::AutoGradMode grad_mode(request_.gradients);
    run_forward();
    classify_results();
    find_writes();
    std::unordered_set<const Node*> forward;
    for (const auto& node : graph_->nodes()) forward.insert(node.get());
    run_backward();
    run_.aliases().check_memory();
    set_outputs();
    order_inputs();
    run_.recorder().attribute_layers();
    graph_->erase_dead_nodes();
    lint_or_throw(*graph_, "the joint graph");
    refuse_writes();
    const auto& nodes = graph_->nodes();
    const auto first = std::find_if(nodes.begin(), nodes.end(),
                                    [&](const auto& node) { return !forward.contains(node.get()); });
    if (first != nodes.end()) result_.joint.first_backward = first->get();
    result_.joint.graph = std::move(graph_);
    return std::move(result_);
  }

 private:
  void run_forward() {
    FlatArgs given = flatten_args(examples_);
    result_.call.args = std::move(given.spec);
    result_.call.kwargs.kind = TreeSpec::Kind::kDict;
    leaves_ = as_leaves(given.leaves, request_.gradients);
    run_.bind_inputs(leaves_, {});
    const std::vector<c10::IValue> args = with_leaves(examples_, leaves_);
    c10::IValue output;
    // A weight that was converted before the trace would be found there, and become a constant.
    const WithoutAutocastCache no_cache;
    run_.run([&] { output = request_.forward(args); });
    result_.call.result = tree_of(output, outputs_);
  }

  void classify_results() {
    std::unordered_map<const c10::TensorImpl*, size_t> computed;
    for (const c10::IValue& output : outputs_) {
      if (!is_defined_tensor(output)) {
        result_.leaves.push_back({.kind = ResultLeaf::Kind::kConstant, .constant = output});
        continue;
      }
      const at::Tensor& tensor = output.toTensor();
      if (auto alias = try_alias(tensor)) {
        result_.leaves.push_back(std::move(*alias));
        continue;
      }
      const auto [known, added] = computed.try_emplace(tensor.unsafeGetTensorImpl(), computed_.size());
      if (added) computed_.push_back(tensor);
      result_.leaves.push_back({.index = known->second});
    }
    for (size_t i = 0; i < computed_.size(); ++i) {
      result_.results.push_back(tensor_meta(computed_[i]));
      if (request_.gradients && computed_[i].requires_grad()) result_.differentiable.push_back(i);
    }
  }

  /// A result that shows an input's memory; `index` is the graph's input until order_inputs().
  std::optional<ResultLeaf> try_alias(const at::Tensor& tensor) {
    const std::optional<size_t> input = run_.aliases().try_input_of(tensor);
    if (!input) return std::nullopt;
    const at::Tensor primal = tensor_of_input(*input);
    ResultLeaf leaf{.kind = ResultLeaf::Kind::kPrimal, .index = *input};
    leaf.detached = primal.requires_grad() && !tensor.requires_grad();
    if (primal.is_same(tensor)) return leaf;
    if (primal.scalar_type() != tensor.scalar_type() || primal.is_conj() != tensor.is_conj() ||
        primal.is_neg() != tensor.is_neg())
      return std::nullopt;
    leaf.kind = ResultLeaf::Kind::kView;
    leaf.sizes = tensor.sizes().vec();
    leaf.strides = tensor.strides().vec();
    leaf.offset = tensor.storage_offset() - primal.storage_offset();
    return leaf;
  }

  at::Tensor tensor_of_input(size_t index) {
    const GraphInput& input = graph_->inputs()[index];
    if (input.kind != InputKind::kUser) return run_.aliases().tensors().at(input.target);
    return leaves_.at(index).toTensor();  // the arguments come first, one input each
  }

  void find_writes() {
    writes_ = run_.aliases().mutations();
    for (const AliasTracker::Mutation& write : writes_) {
      at::Tensor target = tensor_of_input(write.input);
      if (!target.requires_grad()) continue;
      const bool leaf = target.is_leaf();
      if (!leaf) target.detach_();
      fail(ErrorCode::kUnsupported,
           "the model writes to \"{}\", and gradients would flow through what it writes: not supported",
           graph_->inputs()[write.input].target);
    }
  }

  void run_backward() {
    if (result_.differentiable.empty()) return;
    std::vector<at::Tensor> results;
    for (const size_t index : result_.differentiable) {
      results.push_back(computed_[index]);
      tangents_.push_back(tangent_for(computed_[index].detach()));
      run_.aliases().add_user_input(tangents_.back(), fmt::format("tangent{}", tangents_.size() - 1));
    }
    const auto add = [&](const at::Tensor& tensor) {
      if (tensor.requires_grad() &&
          gradient_index_.emplace(tensor.unsafeGetTensorImpl(), differentiated_.size()).second)
        differentiated_.push_back(tensor);
    };
    for (const c10::IValue& leaf : leaves_)
      if (is_defined_tensor(leaf)) add(leaf.toTensor());
    for (const auto& [name, tensor] : run_.aliases().tensors()) add(tensor);
    run_.run([&] {
      gradients_ = torch::autograd::grad(results, differentiated_, tangents_, /*retain_graph=*/false,
                                         /*create_graph=*/false, /*allow_unused=*/true);
    });
    if (run_.aliases().mutations().size() != writes_.size())
      fail(ErrorCode::kUnsupported, "the model's backward writes to inputs, parameters or buffers");
  }

  Argument gradient_of(const at::Tensor& primal) {
    const auto found = gradient_index_.find(primal.unsafeGetTensorImpl());
    if (found == gradient_index_.end() || !gradients_[found->second].defined()) return {};
    Value* value = run_.aliases().value_of(gradients_[found->second]);
    gradients_[found->second].reset();  // of a tensor that is given twice, the first has it all
    return value;
  }

  void set_outputs() {
    std::vector<Argument> values;
    for (const at::Tensor& tensor : computed_) values.emplace_back(run_.aliases().value_of(tensor));
    for (const AliasTracker::Mutation& write : writes_) values.emplace_back(write.value);
    result_.joint.results = values.size();
    const size_t arguments = leaves_.size();
    std::vector<Argument> gradients;
    for (size_t i = 0; i < graph_->inputs().size(); ++i) {
      const GraphInput& input = graph_->inputs()[i];
      const bool user = input.kind == InputKind::kUser;
      if (user && (i >= arguments || input.fixed)) continue;  // tangents, constants
      const at::Tensor tensor = tensor_of_input(i);
      primal_of_input_[i] = result_.primals.size();
      result_.primals.push_back({user ? std::optional(i) : std::nullopt, user ? at::Tensor() : tensor,
                                 input.target, request_.gradients && tensor.requires_grad(),
                                 tensor_meta(tensor)});
      gradients.push_back(gradient_of(tensor));
    }
    if (!result_.differentiable.empty()) values.insert(values.end(), gradients.begin(), gradients.end());
    std::vector<GraphOutput> kinds(values.size());
    graph_->set_outputs(std::move(values), std::move(kinds));
    result_.joint.primals = result_.primals.size();
    result_.joint.tangents = tangents_.size();
  }

  /// Primals, then tangents; numbers are baked in.
  void order_inputs() {
    for (const AliasTracker::Mutation& write : writes_)
      result_.written.push_back(primal_of_input_.at(write.input));
    for (ResultLeaf& leaf : result_.leaves) {
      if (leaf.kind == ResultLeaf::Kind::kPrimal || leaf.kind == ResultLeaf::Kind::kView)
        leaf.index = primal_of_input_.at(leaf.index);
    }
    const size_t count = graph_->inputs().size();
    for (size_t i = leaves_.size(); i < leaves_.size() + tangents_.size(); ++i) move_to_end(first_tangent());
    for (size_t i = count; i-- > 0;) {
      if (graph_->inputs()[i].fixed) graph_->erase_input(i);
    }
    for (size_t i = 0; i < graph_->inputs().size(); ++i)
      graph_->set_input_target(i, InputKind::kUser, graph_->inputs()[i].value->name());
  }

  /// Operators of others that write and have no pure form: a partitioner could run one without its writes.
  void refuse_writes() const {
    for (const auto& node : graph_->nodes()) {
      if (!node->op() || !node->op()->schema().is_mutable()) continue;
      fail(ErrorCode::kUnsupported, "{} in layer \"{}\" writes to its operands and has no form that does not",
           node->target(), node->source().layer);
    }
  }

  size_t first_tangent() const {
    for (size_t i = leaves_.size(); i < graph_->inputs().size(); ++i) {
      if (graph_->inputs()[i].kind == InputKind::kUser) return i;
    }
    fail(ErrorCode::kInternal, "a tangent is missing");
  }

  void move_to_end(size_t index) {
    Value* old_value = graph_->inputs()[index].value;
    std::string name = old_value->name(), target = graph_->inputs()[index].target;
    graph_->rename(old_value, name + "_moved");
    Value* value = graph_->add_input({.name = name, .meta = old_value->meta()}, InputKind::kUser, target);
    graph_->replace_all_uses(old_value, value);
    graph_->erase_input(index);
  }

  const JointRequest& request_;
  const std::vector<c10::IValue>& examples_;
  const ModuleTensors names_;
  const HooksAside hooks_;
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  TraceRun run_;
  JointTrace result_;
  std::vector<c10::IValue> leaves_, outputs_;
  std::vector<at::Tensor> computed_, tangents_, differentiated_, gradients_;
  std::unordered_map<const c10::TensorImpl*, size_t> gradient_index_;  // their places in differentiated_
  std::vector<AliasTracker::Mutation> writes_;
  std::unordered_map<size_t, size_t> primal_of_input_;
};

}  // namespace

JointTrace trace_joint(const JointRequest& request, const std::vector<c10::IValue>& examples) {
  return JointTracer(request, examples).trace();
}

}  // namespace halftone
