// GraphModule: a graph with its tensors.
#include "halftone/graph/graph_module.h"

#include <fmt/ranges.h>

#include <atomic>

#include "base/errors.h"
#include "base/nearest.h"
#include "graph/aten/dtype_text.h"
#include "graph/flat_call.h"
#include "graph/run/interpreter.h"
#include "graph/run/mutation.h"
#include "halftone/graph/tensor_file.h"

namespace halftone {

GraphModule::GraphModule(std::unique_ptr<Graph> graph, TensorMap tensors, CallSpec call)
    : graph_(required(std::move(graph), "GraphModule: the graph")),
      call_(std::move(call)),
      tensors_(std::make_shared<TensorMap>(std::move(tensors))) {}
GraphModule::~GraphModule() = default;

std::shared_ptr<GraphModule> GraphModule::clone() const {
  return with_graph(graph_->clone(), *tensors());
}

std::shared_ptr<GraphModule> GraphModule::with_graph(std::unique_ptr<Graph> graph, TensorMap tensors) const {
  auto module = std::make_shared<GraphModule>(std::move(graph), std::move(tensors), call_);
  module->ranges = ranges;
  module->guards = guards;
  module->sample_inputs = sample_inputs;
  module->name = name;
  module->notes = notes;
  return module;
}

std::shared_ptr<GraphModule> GraphModule::with_flat_graph(std::unique_ptr<Graph> graph,
                                                          TensorMap tensors) const {
  auto module = flat_module(std::move(graph), std::move(tensors), name);
  module->ranges = ranges;
  module->guards = guards;
  return module;
}

Graph& GraphModule::mutable_graph() {
  const std::lock_guard lock(mutex_);
  interpreter_.reset();
  // Sessions hold the graph through their interpreter: they keep the old one.
  if (graph_.use_count() > 1) graph_ = graph_->clone();
  return *graph_;
}

std::shared_ptr<const GraphExecutor> GraphModule::interpreter() const {
  const std::lock_guard lock(mutex_);
  if (!interpreter_) interpreter_ = std::make_shared<const InterpretedGraph>(graph_);
  return interpreter_;
}

std::shared_ptr<const TensorMap> GraphModule::tensors() const {
  const std::lock_guard lock(mutex_);
  return tensors_;
}

namespace {

[[noreturn]] void fail_unknown(const TensorMap& tensors, std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [known, tensor] : tensors) names.push_back(known);
  fail(ErrorCode::kNotFound, "the model has no tensor \"{}\"{}", name, did_you_mean(name, names));
}

void require_same_form(std::string_view name, const at::Tensor& old_tensor, const at::Tensor& tensor) {
  if (tensor.scalar_type() != old_tensor.scalar_type() || tensor.sizes() != old_tensor.sizes()) {
    fail(ErrorCode::kInvalidArgument, "tensor \"{}\": expected {} [{}], found {} [{}]", name,
         dtype_text(old_tensor.scalar_type()), fmt::join(old_tensor.sizes(), ", "),
         dtype_text(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
  }
}

/// The new tensor, requiring gradients if the old one did: that belongs to the model, not to the file.
at::Tensor with_gradients_of(const at::Tensor& old_tensor, const at::Tensor& tensor) {
  return old_tensor.requires_grad() == tensor.requires_grad()
             ? tensor
             : tensor.detach().set_requires_grad(old_tensor.requires_grad());
}

/// The map for a change: the same one if it has no other owner, so that a pass over all layers does not
/// copy it for each; else a copy. Under the module's lock; all maps are made as TensorMap, not const.
TensorMap& own_tensors(std::shared_ptr<const TensorMap>& tensors) {
  if (tensors.use_count() > 1) tensors = std::make_shared<TensorMap>(*tensors);
  std::atomic_thread_fence(std::memory_order_acquire);  // reads of holders that let go
  return const_cast<TensorMap&>(*tensors);
}

/// The names that a state dictionary holds: parameters and persistent buffers.
std::vector<std::string> persistent_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind == InputKind::kParameter || input.kind == InputKind::kBuffer)
      names.push_back(input.target);
  }
  return names;
}

}  // namespace

at::Tensor GraphModule::tensor(std::string_view name) const {
  const auto all = tensors();
  const auto found = all->find(name);
  if (found == all->end()) fail_unknown(*all, name);
  return found->second;
}

void GraphModule::set_tensor(std::string_view name, at::Tensor tensor) {
  const std::lock_guard lock(mutex_);
  const auto found = tensors_->find(name);
  if (found == tensors_->end()) fail_unknown(*tensors_, name);
  require_same_form(name, found->second, tensor);
  at::Tensor fresh = with_gradients_of(found->second, tensor);
  own_tensors(tensors_).insert_or_assign(std::string(name), std::move(fresh));
}

void GraphModule::put_tensor(std::string name, at::Tensor tensor) {
  const std::lock_guard lock(mutex_);
  own_tensors(tensors_).insert_or_assign(std::move(name), std::move(tensor));
}

void GraphModule::erase_tensor(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (!tensors_->contains(name)) return;
  TensorMap& own = own_tensors(tensors_);
  own.erase(own.find(name));
}

size_t GraphModule::load_tensors(const std::string& path, bool strict) {
  const TensorFile file = halftone::load_tensors(path);
  const std::lock_guard lock(mutex_);
  auto fresh = std::make_shared<TensorMap>(*tensors_);
  std::vector<std::string> problems;
  size_t count = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const auto found = fresh->find(name);
    if (found == fresh->end()) {
      problems.push_back(fmt::format("unexpected \"{}\"", name));
      continue;
    }
    require_same_form(name, found->second, tensor);
    found->second = with_gradients_of(found->second, tensor);
    ++count;
  }
  for (const std::string& name : persistent_names(*graph_)) {
    if (!file.tensors.contains(name)) problems.push_back(fmt::format("missing \"{}\"", name));
  }
  if (strict && !problems.empty()) {
    fail(ErrorCode::kInvalidArgument, "{} does not fit the model: {}", path, fmt::join(problems, ", "));
  }
  tensors_ = std::move(fresh);
  return count;
}

std::vector<std::string> GraphModule::input_names() const {
  std::vector<std::string> names;
  for (const GraphInput& input : graph_->inputs()) {
    if (input.kind == InputKind::kUser) names.push_back(input.target);
  }
  return names;
}

std::vector<std::string> GraphModule::mutated_input_names() const {
  const std::vector<bool> written = inputs_written_in_place(*graph_);
  std::vector<std::string> names;
  for (size_t i = 0; i < graph_->inputs().size(); ++i) {
    const GraphInput& input = graph_->inputs()[i];
    if (input.kind != InputKind::kUser) continue;
    bool mutated = written[i];
    for (const GraphOutput& output : graph_->outputs()) {
      mutated = mutated || (output.kind == OutputKind::kInputMutation && output.target == input.target);
    }
    if (mutated) names.push_back(input.target);
  }
  return names;
}

}  // namespace halftone
