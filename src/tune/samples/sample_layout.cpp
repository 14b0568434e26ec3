#include "tune/samples/sample_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/errors.h"
#include "base/nearest.h"
#include "graph/ir/text_names.h"

namespace halftone {
namespace {

using Sizes = std::vector<int64_t>;

/// The tensors of a call with their names.
std::vector<std::pair<std::string, at::Tensor>> tensors_of(const Sample& sample, const GraphModule* graph,
                                                           const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  if (graph != nullptr) {
    const std::vector<std::string> inputs = graph->input_names();
    const std::vector<c10::IValue> flat = flat_inputs(*graph, sample);
    for (size_t i = 0; i < flat.size(); ++i) {
      if (flat[i].isTensor()) tensors.emplace_back(inputs.at(i), flat[i].toTensor());
    }
    return tensors;
  }
  for (const c10::IValue& leaf : leaves_of(sample)) {
    if (!leaf.isTensor()) continue;
    const size_t index = tensors.size();
    tensors.emplace_back(index < names.size() ? names[index] : fmt::format("input{}", index),
                         leaf.toTensor());
  }
  return tensors;
}

std::vector<SampleTensor> describe(const Sample& sample, const GraphModule* graph,
                                   const std::vector<std::string>& names) {
  std::vector<SampleTensor> described;
  for (const auto& [name, tensor] : tensors_of(sample, graph, names))
    described.push_back({name, std::string(dtype_name(tensor.scalar_type())), tensor.sizes().vec()});
  return described;
}

struct Place {
  size_t tensor = 0;
  size_t dim = 0;
};

class LayoutMaker {
 public:
  LayoutMaker(const Samples& samples, const GraphModule* graph, const GraphSpec& spec)
      : samples_(samples), graph_(graph), spec_(spec) {}

  SampleLayout make(uint64_t seed) {
    collect_calls();
    for (const Sample& call : layout_.calls) described_.push_back(describe(call, graph_, spec_.input_names));
    check_alike();
    find_ranges();
    find_shapes();
    part(seed);
    return std::move(layout_);
  }

 private:
  void collect_calls() {
    layout_.calls = samples_.calls;
    if (layout_.calls.empty() && graph_ != nullptr && !graph_->sample_inputs.empty())
      layout_.calls.push_back(sample_from_flat(*graph_, graph_->sample_inputs));
    if (layout_.calls.empty())
      fail(ErrorCode::kInvalidArgument,
           "tuning needs samples: none were given, and the model has none itself");
  }

  void check_alike() const {
    for (size_t i = 0; i < described_.size(); ++i) {
      const bool alike = std::equal(described_[i].begin(), described_[i].end(), described_[0].begin(),
                                    described_[0].end(), [](const SampleTensor& a, const SampleTensor& b) {
                                      return a.dtype == b.dtype && a.sizes.size() == b.sizes.size();
                                    });
      if (!alike) {
        fail(ErrorCode::kInvalidArgument,
             "sample {} differs from the first one in the number, dtypes or dimensions of its tensors", i);
      }
    }
  }

  Place place_of(const std::string& input, int64_t dim, std::string_view what) const {
    std::vector<std::string> names;
    for (const SampleTensor& tensor : described_[0]) names.push_back(tensor.name);
    size_t index = 0;
    if (!input.empty())
      index = static_cast<size_t>(std::find(names.begin(), names.end(), input) - names.begin());
    if (index >= names.size())
      fail(ErrorCode::kInvalidArgument, "{}: no tensor is named \"{}\"{}", what, input,
           did_you_mean(input, names));
    const auto count = static_cast<int64_t>(described_[0][index].sizes.size());
    const int64_t from_start = dim < 0 ? dim + count : dim;
    if (from_start < 0 || from_start >= count)
      fail(ErrorCode::kInvalidArgument, "{}: \"{}\" has {} dimensions, and none is {}", what, names[index],
           count, dim);
    return {index, static_cast<size_t>(from_start)};
  }

  void find_ranges() {
    if (graph_ != nullptr) {
      if (!samples_.dynamic.empty() || !spec_.dynamic.empty())
        fail(ErrorCode::kInvalidArgument, "a captured graph has its own dynamic sizes: declare none for it");
      return ranges_of_graph();
    }
    layout_.dynamic = !samples_.dynamic.empty() ? samples_.dynamic : spec_.dynamic;
    if (layout_.dynamic.empty()) return infer_dynamic();
    std::set<std::string> seen;
    for (const DynamicDim& dim : layout_.dynamic) {
      const Place place = place_of(dim.input, dim.dim, "dynamic size");
      if (place.tensor == 0 && place.dim == 0) batch_may_change_ = true;
      if (seen.insert(dim.symbol).second) layout_.ranges.push_back({dim.symbol, dim.min, dim.max, true, {}});
    }
  }

  void ranges_of_graph() {
    std::set<std::string> symbols;
    bool first = true;
    for (const GraphInput& input : graph_->graph().inputs()) {
      if (input.kind != InputKind::kUser || !input.value->meta()) continue;
      const std::vector<SymExpr>& sizes = input.value->meta()->sizes;
      if (first && !sizes.empty()) batch_may_change_ = !sizes[0].is_constant();
      first = false;
      for (const SymExpr& size : sizes) size.collect_symbols(symbols);
    }
    for (const std::string& symbol : symbols) {
      const auto found = graph_->ranges.find(symbol);
      const SymbolRange range = found == graph_->ranges.end() ? SymbolRange{} : found->second;
      layout_.ranges.push_back({symbol, range.min, range.max, true, {}});
    }
  }

  /// Sizes that differ may change; those that are equal in every sample have one symbol.
  void infer_dynamic() {
    std::map<Sizes, std::string> symbols;
    for (size_t t = 0; t < described_[0].size(); ++t) {
      for (size_t d = 0; d < described_[0][t].sizes.size(); ++d) {
        Sizes over_calls;
        for (const auto& tensors : described_) over_calls.push_back(tensors[t].sizes[d]);
        const auto [low, high] = std::minmax_element(over_calls.begin(), over_calls.end());
        if (*low == *high) continue;
        if (t == 0 && d == 0) batch_may_change_ = true;
        const auto [entry, fresh] =
            symbols.emplace(over_calls, t == 0 && d == 0 ? "batch" : fmt::format("s{}", symbols.size()));
        if (fresh) layout_.ranges.push_back({entry->second, *low, *high, false, {}});
        // Not the samples' own range: a size between or beyond them is allowed. But 1 may mean broadcasting.
        DynamicDim dim{described_[0][t].name, static_cast<int64_t>(d), entry->second};
        dim.min = *low <= 1 ? *low : 2;
        layout_.dynamic.push_back(std::move(dim));
      }
    }
  }

  std::optional<Place> batch_place() const {
    if (samples_.batch) return place_of(samples_.batch->input, samples_.batch->dim, "batch");
    if (batch_may_change_) return Place{};
    return std::nullopt;
  }

  void find_shapes() {
    const std::optional<Place> batch = batch_place();
    for (size_t i = 0; i < described_.size(); ++i) {
      auto& shapes = layout_.shapes;
      auto found = std::find_if(shapes.begin(), shapes.end(),
                                [&](const SampleShape& shape) { return shape.tensors == described_[i]; });
      if (found == shapes.end()) {
        SampleShape shape{described_[i], std::nullopt, 0};
        if (batch) shape.batch = described_[i][batch->tensor].sizes[batch->dim];
        found = shapes.insert(shapes.end(), std::move(shape));
        layout_.shape_calls.push_back(layout_.calls[i]);
      }
      ++found->calls;
    }
  }

  void part(uint64_t seed) {
    layout_.build = layout_.calls;
    layout_.validation = samples_.held_out;
    if (layout_.validation.empty() && layout_.calls.size() > 1) {
      const auto held = static_cast<ptrdiff_t>(std::max<size_t>(1, layout_.calls.size() / 5));
      layout_.validation.assign(layout_.calls.end() - held, layout_.calls.end());
      layout_.build.erase(layout_.build.end() - held, layout_.build.end());
    }
    std::vector<std::vector<SampleTensor>> covered;
    for (const Sample& call : layout_.validation)
      covered.push_back(describe(call, graph_, spec_.input_names));
    for (size_t i = 0; i < layout_.shapes.size(); ++i) {
      if (std::find(covered.begin(), covered.end(), layout_.shapes[i].tensors) != covered.end()) continue;
      layout_.validation.push_back(synthetic_sample(layout_.shape_calls[i], seed + i));
      ++layout_.synthetic;
    }
  }

  const Samples& samples_;
  const GraphModule* graph_;
  const GraphSpec& spec_;
  std::vector<std::vector<SampleTensor>> described_;  ///< of each call
  bool batch_may_change_ = false;
  SampleLayout layout_;
};

}  // namespace

SampleLayout lay_out(const Samples& samples, const GraphModule* graph, const GraphSpec& spec, uint64_t seed) {
  return LayoutMaker(samples, graph, spec).make(seed);
}

std::string SampleShape::label() const {
  if (tensors.empty()) return "no tensors";
  return tensors[0].sizes.empty() ? "scalar" : fmt::format("{}", fmt::join(tensors[0].sizes, "x"));
}

}  // namespace halftone
