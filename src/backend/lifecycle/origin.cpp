#include "backend/lifecycle/origin.h"

#include <ATen/core/grad_mode.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "base/errors.h"
#include "graph/run/graph_call.h"
#include "halftone/capture/capture_module.h"
#include "halftone/graph/tree.h"

namespace halftone {

ModelSource::ModelSource(std::shared_ptr<GraphModule> graph) : graph(std::move(graph)) {}
ModelSource::ModelSource(std::shared_ptr<torch::nn::Module> module, ForwardFunction forward)
    : module(std::move(module)), forward(std::move(forward)) {}

namespace lifecycle {
namespace {

/// The sizes of all tensors, in order: calls with the same ones need one trace only.
std::vector<std::vector<int64_t>> sizes_of(const Sample& sample) {
  const FlatArgs flat = flatten_args(sample.args);
  std::vector<std::vector<int64_t>> sizes;
  for (const c10::IValue& leaf : flat.leaves) {
    if (leaf.isTensor() && leaf.toTensor().defined()) sizes.push_back(leaf.toTensor().sizes().vec());
  }
  return sizes;
}

std::shared_ptr<const GraphModule> capture_source(const ModelSource& source, const GraphSpec& spec,
                                                  const std::vector<Sample>& samples) {
  if (!source.forward) fail(ErrorCode::kInvalidArgument, "a C++ module needs the function that calls it");
  if (samples.empty()) fail(ErrorCode::kInvalidArgument, "a C++ module needs a sample to be captured with");
  if (std::any_of(samples.begin(), samples.end(),
                  [](const Sample& sample) { return !sample.kwargs.empty(); }))
    fail(ErrorCode::kInvalidArgument, "a C++ module has no keyword arguments");
  CaptureOptions options;
  options.name = spec.name;
  options.input_names = spec.input_names;
  options.dynamic = spec.dynamic;
  options.check = false;  // it would call the module again
  std::vector<std::vector<std::vector<int64_t>>> seen{sizes_of(samples.front())};
  for (const Sample& sample : samples) {
    auto sizes = sizes_of(sample);
    if (std::find(seen.begin(), seen.end(), sizes) != seen.end()) continue;
    seen.push_back(std::move(sizes));
    options.more_examples.push_back(sample.args);
  }
  return capture(*source.module, source.forward, samples.front().args, options);
}

/// A copy, which stays as it is when its owner rewrites the graph.
std::shared_ptr<const GraphModule> copy_source(const GraphModule& graph, const GraphSpec& spec) {
  if (!spec.input_names.empty() || !spec.dynamic.empty()) {
    fail(ErrorCode::kInvalidArgument,
         "a captured graph has names and dynamic sizes of its own: GraphSpec must not give any");
  }
  auto copy = graph.clone();
  if (!spec.name.empty()) copy->name = spec.name;
  return copy;
}

void check_samples(const GraphModule& graph, const std::vector<Sample>& samples) {
  const InputCheck check(graph);
  for (size_t i = 0; i < samples.size(); ++i) {
    try {
      check.check(flatten_call(graph.call_spec(), samples[i].args, samples[i].kwargs));
    } catch (const Error& error) {
      throw error.with_context(fmt::format("sample {}", i));
    }
  }
}

TensorMap tensors_of(const torch::nn::Module& module) {
  TensorMap tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) tensors.emplace(item.key(), item.value());
  return tensors;
}

TensorMap tensors_of(const GraphModule& graph) {
  const auto all = graph.tensors();
  TensorMap tensors;
  for (const GraphInput& input : graph.graph().inputs()) {
    if (input.kind != InputKind::kParameter && input.kind != InputKind::kBuffer) continue;
    if (const auto found = all->find(input.target); found != all->end()) tensors.insert(*found);
  }
  return tensors;
}

void require_same_shape(const std::string& name, const at::Tensor& own, const at::Tensor& given) {
  if (own.sizes() == given.sizes()) return;
  fail(ErrorCode::kInvalidArgument, "tensor \"{}\": the module's is [{}], the dict's is [{}]", name,
       fmt::join(own.sizes(), ", "), fmt::join(given.sizes(), ", "));
}

}  // namespace

Origin take_origin(const ModelSource& source, const GraphSpec& spec, const std::vector<Sample>& samples) {
  if (!source.graph && !source.module) fail(ErrorCode::kInvalidArgument, "there is no model");
  Origin origin;
  origin.graph = source.graph ? copy_source(*source.graph, spec) : capture_source(source, spec, samples);
  origin.module = source.module;
  origin.spec = spec;
  check_samples(*origin.graph, samples);
  return origin;
}

TensorMap state_of(const Origin& origin) {
  TensorMap tensors = origin.module ? tensors_of(*origin.module) : tensors_of(*origin.graph);
  for (auto& [name, tensor] : tensors) tensor = tensor.detach();
  return tensors;
}

DictReport load_state(const ModelSource& source, const TensorMap& tensors) {
  const TensorMap own = source.graph ? tensors_of(*source.graph) : tensors_of(*source.module);
  DictReport report;
  for (const auto& [name, tensor] : own) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) {
      report.missing.push_back(name);
    } else {
      require_same_shape(name, tensor, found->second);
    }
  }
  for (const auto& [name, tensor] : tensors) {
    const auto found = own.find(name);
    if (found == own.end()) report.unexpected.push_back(name);
  }
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) continue;
    if (source.graph) {
      // A copy even if the type is the same: the dict's tensors are those of the module that it came from.
      source.graph->set_tensor(
          name, found->second.detach().to(tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true));
    } else {
      tensor.copy_(found->second);
    }
  }
  return report;
}

}  // namespace lifecycle
}  // namespace halftone
