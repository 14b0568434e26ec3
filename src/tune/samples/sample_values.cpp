// Calls made of calls: flat and nested ones, made-up ones, ones of other sizes.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/errors.h"
#include "capture/module/trace.h"
#include "graph/run/graph_call.h"
#include "halftone/cli/message.h"
#include "tune/samples/sample_layout.h"

namespace halftone {
namespace {

constexpr int64_t kMaxTimesSample = 4;

/// Every leaf of the call through `change`, the nesting kept.
template <typename Change>
Sample with_changed_leaves(const Sample& sample, Change change) {
  const auto changed = [&](const std::vector<c10::IValue>& values) {
    std::vector<c10::IValue> leaves = flatten_args(values).leaves;
    for (c10::IValue& leaf : leaves) leaf = change(leaf);
    return with_leaves(values, leaves);
  };
  Sample result;
  result.args = changed(sample.args);
  for (const auto& [name, value] : sample.kwargs) result.kwargs.emplace(name, changed({value}).at(0));
  return result;
}

at::Tensor made_up(const at::Tensor& tensor, const at::Generator& generator) {
  if (tensor.numel() == 0 || tensor.is_complex() || tensor.scalar_type() == c10::ScalarType::Bool)
    return tensor.clone();
  if (tensor.is_floating_point()) {
    const at::Tensor values = tensor.to(c10::ScalarType::Float);
    const double mean = values.mean().item<double>();
    const double deviation = values.numel() > 1 ? values.std().item<double>() : std::abs(mean);
    // Masks that add minus infinity are as they are.
    if (!std::isfinite(mean) || !std::isfinite(deviation)) return tensor.clone();
    return at::normal(mean, deviation, tensor.sizes(), generator, values.options()).to(tensor.scalar_type());
  }
  const int64_t low = tensor.min().item<int64_t>(), high = tensor.max().item<int64_t>();
  if (low >= 0 && high <= 1) return tensor.clone();
  return at::randint(low, high + 1, tensor.sizes(), generator, tensor.options());
}

/// Repeated or cut off in each dimension.
at::Tensor resized(at::Tensor tensor, const std::vector<int64_t>& sizes) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    if (tensor.size(dim) == sizes[d]) continue;
    if (tensor.size(dim) == 0) return at::zeros(sizes, tensor.options());
    tensor =
        tensor.index_select(dim, at::arange(sizes[d], c10::ScalarType::Long).remainder(tensor.size(dim)));
  }
  return tensor.contiguous();
}

struct FlatCall {
  std::vector<const GraphInput*> inputs;  ///< the user's
  std::vector<c10::IValue> values;
  SymbolBindings bindings;  ///< of sizes that are one symbol
};

FlatCall bind(const GraphModule& graph, const Sample& sample) {
  FlatCall call;
  call.values = flat_inputs(graph, sample);
  for (const GraphInput& input : graph.graph().inputs()) {
    if (input.kind != InputKind::kUser) continue;
    const size_t index = call.inputs.size();
    call.inputs.push_back(&input);
    if (!input.value->meta() || !call.values.at(index).isTensor()) continue;
    const auto& sizes = input.value->meta()->sizes;
    const at::Tensor tensor = call.values[index].toTensor();
    for (size_t d = 0; d < sizes.size() && d < static_cast<size_t>(tensor.dim()); ++d) {
      if (sizes[d].is_symbol())
        call.bindings.emplace(sizes[d].symbol(), tensor.size(static_cast<int64_t>(d)));
    }
  }
  return call;
}

Sample with_size(const GraphModule& graph, FlatCall call, const std::string& symbol, int64_t size) {
  call.bindings[symbol] = size;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i]->value->meta() || !call.values[i].isTensor()) continue;
    std::vector<int64_t> sizes;
    for (const SymExpr& each : call.inputs[i]->value->meta()->sizes)
      sizes.push_back(each.evaluate(call.bindings));
    call.values[i] = resized(call.values[i].toTensor(), sizes);
  }
  return sample_from_flat(graph, call.values);
}

}  // namespace

Sample sample_from_flat(const GraphModule& module, const std::vector<c10::IValue>& inputs) {
  const CallSpec& call = module.call_spec();
  const size_t positional = call.args.leaf_count();
  if (inputs.size() != positional + call.kwargs.leaf_count()) {
    fail(ErrorCode::kInvalidArgument, "{}: takes {}, not {}", module.name,
         counted(positional + call.kwargs.leaf_count(), "input"), inputs.size());
  }
  const auto middle = inputs.begin() + static_cast<ptrdiff_t>(positional);
  Sample sample;
  sample.args = unflatten(call.args, {inputs.begin(), middle}).toTupleRef().elements().vec();
  const c10::IValue named = unflatten(call.kwargs, {middle, inputs.end()});
  if (named.isGenericDict()) {
    for (const auto& item : named.toGenericDict())
      sample.kwargs.emplace(item.key().toStringRef(), item.value());
  }
  return sample;
}

std::vector<c10::IValue> flat_inputs(const GraphModule& module, const Sample& sample) {
  return flatten_call(module.call_spec(), sample.args, sample.kwargs);
}

Sample synthetic_sample(const Sample& sample, uint64_t seed) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  return with_changed_leaves(sample, [&](const c10::IValue& leaf) -> c10::IValue {
    return leaf.isTensor() ? made_up(leaf.toTensor(), generator) : leaf;
  });
}

std::vector<c10::IValue> leaves_of(const Sample& sample) {
  std::vector<c10::IValue> leaves = flatten_args(sample.args).leaves;
  for (const auto& [name, value] : sample.kwargs) tree_of(value, leaves);
  return leaves;
}

std::vector<int64_t> signature_of(const Sample& sample) {
  std::vector<int64_t> signature;
  for (const c10::IValue& leaf : leaves_of(sample)) {
    if (!leaf.isTensor()) continue;
    const at::Tensor& tensor = leaf.toTensor();
    signature.push_back(static_cast<int64_t>(tensor.scalar_type()));
    signature.push_back(tensor.dim());
    signature.insert(signature.end(), tensor.sizes().begin(), tensor.sizes().end());
  }
  return signature;
}

Sample copy_of(const Sample& sample) {
  return with_changed_leaves(sample, [](const c10::IValue& leaf) -> c10::IValue {
    return leaf.isTensor() ? leaf.toTensor().clone() : leaf;
  });
}

Sample with_batch(const GraphModule& graph, const Sample& sample, int64_t batch) {
  FlatCall call = bind(graph, sample);
  for (const GraphInput* input : call.inputs) {
    if (!input->value->meta() || input->value->meta()->sizes.empty()) continue;
    const SymExpr& size = input->value->meta()->sizes[0];
    if (!size.is_symbol()) break;
    return with_size(graph, std::move(call), size.symbol(), batch);
  }
  fail(ErrorCode::kInvalidArgument, "{}: its batch has a fixed size, {} is not possible", graph.name, batch);
}

std::vector<RangeEnd> range_ends(const GraphModule& graph, const SampleLayout& layout) {
  std::map<std::string, int64_t> largest;
  for (const Sample& call : layout.shape_calls) {
    for (const auto& [symbol, size] : bind(graph, call).bindings)
      largest[symbol] = std::max(largest[symbol], size);
  }
  const FlatCall first = bind(graph, layout.shape_calls.at(0));
  std::vector<RangeEnd> ends;
  for (size_t r = 0; r < layout.ranges.size(); ++r) {
    const SampleRange& range = layout.ranges[r];
    // A symbol that only stands in larger expressions cannot be set by itself.
    if (!range.declared || !first.bindings.contains(range.symbol)) continue;
    const int64_t high = std::min(range.max, std::max(kMaxTimesSample * largest[range.symbol], range.min));
    for (const int64_t size : {range.min, high}) {
      if (size == high && !ends.empty() && ends.back().range == r && ends.back().size == size) continue;
      RangeEnd end{r, size, fmt::format("{} = {}", range.symbol, size), {}};
      if (size == high && high < range.max) {
        end.note += range.max == std::numeric_limits<int64_t>::max()
                        ? " (the range has no end)"
                        : fmt::format(" (the range ends at {})", range.max);
      }
      end.call = with_size(graph, first, range.symbol, size);
      ends.push_back(std::move(end));
    }
  }
  return ends;
}

}  // namespace halftone
