// capture(): traces a module at one or several sizes, unifies the traces, and checks the graph against the
// model.
#include <ATen/ops/allclose.h>
#include <ATen/ops/flip.h>
#include <c10/util/Exception.h>
#include <torch/nn/module.h>

#include <sstream>

#include "base/errors.h"
#include "capture/module/dynamic_sizes.h"
#include "capture/module/trace.h"
#include "capture/module/tracing/tracing_scope.h"
#include "capture/module/unify.h"
#include "graph/rewrite/unused_inputs.h"
#include "halftone/capture/capture_module.h"

namespace halftone {
namespace {

bool agree(const c10::IValue& found, const c10::IValue& expected) {
  if (!expected.isTensor() || !expected.toTensor().defined()) return true;
  const at::Tensor& a = found.toTensor();
  const at::Tensor& b = expected.toTensor();
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  if (!b.is_floating_point() && !b.is_complex()) return a.equal(b);
  const double tolerance = c10::elementSize(b.scalar_type()) < 4 ? 1e-2 : 1e-5;
  return at::allclose(a, b, tolerance, tolerance, /*equal_nan=*/true);
}

void check_replay(const std::shared_ptr<GraphModule>& module, const Trace& trace) {
  std::vector<c10::IValue> inputs;
  for (const c10::IValue& leaf : trace.inputs)
    inputs.push_back(leaf.isTensor() ? c10::IValue(leaf.toTensor().clone()) : leaf);
  const std::vector<c10::IValue> results = Session(module).run(std::move(inputs));
  for (size_t i = 0; i < results.size(); ++i) {
    if (!agree(results[i], trace.results[i]))
      fail(ErrorCode::kInternal, "result {} of the captured graph is not the model's", i);
  }
}

/// Of each leaf of the arguments; empty for those that are not tensors.
std::vector<std::string> leaf_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind == InputKind::kUser) names.push_back(input.fixed ? "" : input.target);
  }
  return names;
}

std::string describe_sizes(const SymbolBindings& bindings) {
  std::string text;
  for (const auto& [symbol, value] : bindings)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", symbol, value);
  return text;
}

Trace trace_at(const TraceRequest& request, const DynamicSizes& sizes, size_t index) {
  try {
    return trace(request, sizes.examples[index]);
  } catch (const Error& error) {
    throw error.with_context("with " + describe_sizes(sizes.bindings[index]));
  }
}

/// A graph that was solved for at larger sizes must hold at the smallest too, if the model itself runs there;
/// a note if it does not.
void check_smallest(const TraceRequest& request, const DynamicSizes& sizes,
                    const std::shared_ptr<GraphModule>& module) {
  if (sizes.smallest.empty()) return;
  Trace traced;
  try {
    traced = trace(request, sizes.smallest);
  } catch (const Error& error) {
    module->notes.push_back(fmt::format("not checked with {}: the model fails there ({})",
                                        describe_sizes(sizes.smallest_bindings), error.what()));
    return;
  }
  try {
    check_replay(module, traced);
  } catch (const Error& error) {
    fail(ErrorCode::kUnsupported,
         "with {} the model does something else than at larger sizes; DynamicDim::min can exclude that ({})",
         describe_sizes(sizes.smallest_bindings), error.what());
  }
}

/// Replaces the one trace by several, unified in the first.
DynamicSizes trace_sizes(const TraceRequest& request, const std::vector<c10::IValue>& examples,
                         const CaptureOptions& options, std::vector<Trace>& traces) {
  const std::vector<std::string> names = leaf_names(*traces[0].graph);
  for (const TraceCount count : {TraceCount::kFew, TraceCount::kMany}) {
    DynamicSizes sizes = plan_sizes(examples, names, options, count);
    if (sizes.dims.empty()) return sizes;
    if (!sizes.starts_with_example || count == TraceCount::kMany) traces.clear();
    for (size_t i = traces.size(); i < sizes.examples.size(); ++i)
      traces.push_back(trace_at(request, sizes, i));
    if (!unify(traces, sizes, count)) continue;
    traces[0].graph->erase_dead_nodes();
    return sizes;
  }
  fail(ErrorCode::kInternal, "sizes are neither explained nor refused");
}

/// Dimensions that may be dynamic together, besides those that are declared.
std::vector<std::vector<DynamicDim>> candidate_dims(const Trace& traced, const CaptureOptions& options) {
  const std::vector<std::string> names = leaf_names(*traced.graph);
  std::map<std::pair<int64_t, int64_t>, std::vector<DynamicDim>> groups;  // by place and size
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    const at::Tensor& tensor = traced.inputs[i].toTensor();
    for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
      const bool declared =
          std::any_of(options.dynamic.begin(), options.dynamic.end(), [&](const DynamicDim& known) {
            return known.input == names[i] && (known.dim + tensor.dim()) % tensor.dim() == dim;
          });
      if (!declared && tensor.size(dim) > 1) groups[{dim, tensor.size(dim)}].push_back({names[i], dim, {}});
    }
  }
  std::vector<std::vector<DynamicDim>> result;
  for (auto& [place, group] : groups) result.push_back(std::move(group));
  return result;
}

/// The options with every dimension declared that the model takes in other sizes, and to which the same graph
/// applies. `notes`: why others stay as they are.
CaptureOptions find_dynamic(const TraceRequest& request, const std::vector<c10::IValue>& examples,
                            CaptureOptions options, std::vector<std::string>& notes) {
  const Trace first = trace(request, examples);
  size_t found = 0;
  for (std::vector<DynamicDim>& group : candidate_dims(first, options)) {
    CaptureOptions trial = options;
    for (DynamicDim& dim : group) {
      dim.symbol = fmt::format("s{}", found);
      trial.dynamic.push_back(dim);
    }
    try {
      std::vector<Trace> traces;
      traces.push_back(trace(request, examples));
      trace_sizes(request, examples, trial, traces);
    } catch (const Error& error) {
      notes.push_back(fmt::format("dimension {} of {} stays fixed: {}", group.front().dim,
                                  group.front().input, error.what()));
      continue;
    }
    options = std::move(trial);
    ++found;
  }
  return options;
}

/// Other elements in tensors of the same form; nothing if that cannot be had.
std::optional<std::vector<c10::IValue>> reversed(const std::vector<c10::IValue>& examples) {
  std::vector<c10::IValue> leaves = flatten_args(examples).leaves;
  for (c10::IValue& leaf : leaves) {
    if (!leaf.isTensor() || !leaf.toTensor().defined()) continue;
    const at::Tensor plain = leaf.toTensor().detach();
    at::Tensor other = plain.clone();
    if (other.strides() != plain.strides() || plain.storage_offset() != 0) return std::nullopt;
    other.copy_(plain.flatten().flip(0).view(plain.sizes()));
    leaf = other.set_requires_grad(leaf.toTensor().requires_grad());
  }
  return with_leaves(examples, leaves);
}

std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream lines_a(a), lines_b(b);
  std::string line_a, line_b;
  while (std::getline(lines_a, line_a) && std::getline(lines_b, line_b) && line_a == line_b) {
  }
  return fmt::format("\n  {}\n  {}", line_a, line_b);
}

/// What C++ code reads past torch (data_ptr, accessors, other threads), and what it counts in members, is not
/// seen; but with other data it shows. A note in `first` if that cannot be tried.
void check_other_data(const TraceRequest& request, const std::vector<c10::IValue>& examples, Trace& first) {
  const auto skip = [&first](const std::string& why) {
    first.notes.push_back("not checked with other data: " + why);
  };
  if (first.frozen) return;  // would differ by what was allowed to become constant; that is noted already
  const auto other_examples = reversed(examples);
  if (!other_examples) return skip("an example's strides cannot be kept");
  Trace other;
  try {
    other = trace(request, *other_examples);
  } catch (const std::exception& error) {
    return skip(fmt::format("the model fails on the examples in reverse ({})", error.what()));
  }
  const std::string a = print_graph(*first.graph), b = print_graph(*other.graph);
  if (a != b) {
    fail(ErrorCode::kUnsupported,
         "with other data the model does something else, so C++ code must have read elements past torch:{}",
         first_difference(a, b));
  }
  for (const GraphInput& input : first.graph->inputs()) {
    if (input.kind != InputKind::kConstant || input.value->users().empty()) continue;
    if (agree(other.tensors.at(input.target), first.tensors.at(input.target))) continue;
    const Node& user = *input.value->users().front();
    fail(ErrorCode::kUnsupported,
         "{} in layer \"{}\" reads a tensor that C++ code computed past torch from the model's data",
         user.target(), user.source().layer);
  }
}

std::shared_ptr<GraphModule> capture_traced(torch::nn::Module* module, const ForwardFunction& forward,
                                            const std::vector<c10::IValue>& examples,
                                            const CaptureOptions& wanted) {
  const TraceRequest request{
      module, forward, wanted.input_names, {wanted.allow.begin(), wanted.allow.end()}, wanted.keep_random};
  std::vector<std::string> notes;
  const CaptureOptions options =
      wanted.find_dynamic ? find_dynamic(request, examples, wanted, notes) : wanted;
  std::vector<Trace> traces;
  traces.push_back(trace(request, examples));
  if (options.check) check_other_data(request, examples, traces[0]);
  notes.insert(notes.end(), traces[0].notes.begin(), traces[0].notes.end());
  DynamicSizes sizes;
  if (!options.dynamic.empty() || !options.more_examples.empty())
    sizes = trace_sizes(request, examples, options, traces);
  Trace& traced = traces[0];
  remove_unused_inputs(*traced.graph, traced.tensors);
  lint_or_throw(*traced.graph, "the captured graph");
  auto result =
      std::make_shared<GraphModule>(std::move(traced.graph), std::move(traced.tensors), traced.call);
  result->sample_inputs = traced.inputs;
  result->notes = std::move(notes);
  result->ranges = sizes.ranges;
  if (options.check && options.keep_random && traced.drew) {
    result->notes.emplace_back("not compared with the model: it draws random numbers");
  } else if (options.check) {
    // The last sizes took part in the solution least: the first ones fix it.
    check_replay(result, traces.back());
    check_smallest(request, sizes, result);
  }
  return result;
}

std::shared_ptr<GraphModule> capture_named(torch::nn::Module* module, const ForwardFunction& forward,
                                           const std::vector<c10::IValue>& examples,
                                           const CaptureOptions& options) {
  required(forward, "capture: the function that calls the model");
  const std::string name = !options.name.empty() ? options.name : module ? module->name() : "function";
  try {
    const CaptureLock lock;
    auto result = capture_traced(module, forward, examples, options);
    result->name = name;
    return result;
  } catch (const Error& error) {
    throw error.with_context(name);
  } catch (const c10::Error& error) {
    fail(ErrorCode::kInvalidArgument, "{}: {}", name, error.what_without_backtrace());
  }
}

}  // namespace

std::shared_ptr<GraphModule> capture(torch::nn::Module& module, const ForwardFunction& forward,
                                     std::vector<c10::IValue> examples, const CaptureOptions& options) {
  return capture_named(&module, forward, examples, options);
}

std::shared_ptr<GraphModule> capture(const ForwardFunction& function, std::vector<c10::IValue> examples,
                                     const CaptureOptions& options) {
  return capture_named(nullptr, function, examples, options);
}

}  // namespace halftone
