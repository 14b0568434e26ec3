#include "tune/autoquant/recorder.h"

#include <ATen/ops/zeros.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "graph/run/graph_call.h"
#include "halftone/tune/samples.h"
#include "tune/samples/sample_layout.h"

namespace halftone::aq {
namespace {

constexpr size_t kMaxRecordedShapes = 64;  // of a site
constexpr size_t kMaxRowShapes = 8;        // of a value, with rows
constexpr int64_t kMaxRows = 128;          // of a shape
constexpr int64_t kRowsOfCall = 64;

std::string text_of(const SeenValues& seen, const std::vector<const Value*>& values) {
  std::string text;
  for (const Value* value : values) {
    const auto found = seen.find(value);
    if (found == seen.end()) {
      text += "?;";
    } else if (found->second.number) {
      text += fmt::format("{};", *found->second.number);
    } else {
      text += fmt::format("{}[{}]/[{}];", static_cast<int>(found->second.dtype),
                          fmt::join(found->second.sizes, ","), fmt::join(found->second.strides, ","));
    }
  }
  return text;
}

int64_t elements_of(const SeenValues& seen) {
  int64_t sum = 0;
  for (const auto& [value, each] : seen) {
    int64_t count = each.number ? 0 : 1;
    for (const int64_t size : each.sizes) count *= size;
    sum += count;
  }
  return sum;
}

}  // namespace

Recorder::Recorder(const MarkedModel& model, uint64_t seed) : model_(model), random_(seed) {
  for (const Group& group : model.groups) {
    std::vector<RecordedSite>& recorded = sites_.emplace_back();
    for (const Site& site : group.sites) {
      Neighbourhood part = neighbourhood_of(model.module->graph(), site);
      auto outside = outside_values(*model.module, part);
      recorded.push_back({std::move(part), std::move(outside), {}});
      for (const Node* linear : site.linears) {
        const Value* x = input_of(*linear);
        rows_.try_emplace(x);
        channels_first_[x] = linear->target().starts_with("aten::conv");
      }
    }
  }
}

c10::IValue Recorder::run(Session& session, const Sample& sample, int64_t calls) {
  now_.clear();
  weight_ = calls;
  const Graph& graph = model_.module->graph();
  const std::vector<c10::IValue> flat = flat_inputs(*model_.module, sample);
  size_t user = 0;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind == InputKind::kUser) see(input.value, flat.at(user++));
  }
  std::map<std::string_view, const Node*> nodes;  // sessions run a copy of the graph
  for (const auto& node : graph.nodes()) {
    if (!node->outputs().empty()) nodes.emplace(node->output()->name(), node.get());
  }
  session.set_node_hook([&](const Node& node, const std::vector<c10::IValue>& outputs, double) {
    if (node.outputs().empty()) return;
    const auto own = nodes.find(node.output()->name());
    if (own == nodes.end()) return;
    for (size_t i = 0; i < outputs.size() && i < own->second->outputs().size(); ++i)
      see(own->second->output(i), outputs[i]);
  });
  Sample copy = model_.module->mutated_input_names().empty() ? sample : copy_of(sample);
  try {
    c10::IValue result = session(std::move(copy.args), std::move(copy.kwargs));
    session.set_node_hook({});
    end_call();
    return result;
  } catch (...) {
    session.set_node_hook({});
    throw;
  }
}

void Recorder::see(const Value* value, const c10::IValue& held) {
  if (held.isInt()) {
    now_[value].number = held.toInt();
  } else if (held.isTensor() && held.toTensor().defined()) {
    const at::Tensor& tensor = held.toTensor();
    if (tensor.layout() != at::kStrided) return;
    now_[value] = {tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type(), std::nullopt};
    if (rows_.contains(value)) keep_rows(value, tensor);
  }
}

void Recorder::keep_rows(const Value* x, const at::Tensor& tensor) {
  if (tensor.dim() < 1 || tensor.numel() == 0 || !tensor.is_floating_point()) return;
  std::vector<RowSample>& samples = rows_.at(x);
  auto found = std::find_if(samples.begin(), samples.end(), [&](const RowSample& sample) {
    return sample.sizes == tensor.sizes() && sample.dtype == tensor.scalar_type();
  });
  const bool conv = channels_first_.at(x) && tensor.dim() >= 2;
  const int64_t k = conv ? tensor.size(tensor.dim() - 2) : tensor.size(-1);
  if (found == samples.end()) {
    RowSample fresh;
    fresh.sizes = tensor.sizes().vec();
    fresh.dtype = tensor.scalar_type();
    if (samples.size() < kMaxRowShapes) fresh.rows = at::zeros({kMaxRows, k});
    if (samples.size() >= kMaxRecordedShapes) return;
    found = samples.insert(samples.end(), std::move(fresh));
  }
  found->calls += weight_;
  if (!found->rows.defined()) return;
  const at::Tensor rows = (conv ? tensor.transpose(-1, -2) : tensor).reshape({-1, k});
  offer(*found, rows);
}

/// Every row that was ever offered is in the sample with the same probability (reservoir sampling).
void Recorder::offer(RowSample& sample, const at::Tensor& rows) {
  const int64_t count = rows.size(0), taken = std::min(count, kRowsOfCall);
  for (int64_t i = 0; i < taken; ++i) {
    const int64_t row = i * count / taken;
    ++sample.offered;
    int64_t place = sample.filled;
    if (sample.filled < kMaxRows) {
      ++sample.filled;
    } else {
      place = static_cast<int64_t>(random_() % static_cast<uint64_t>(sample.offered));
    }
    if (place < kMaxRows) sample.rows.select(0, place).copy_(rows.select(0, row));
  }
}

void Recorder::end_call() {
  calls_ += weight_;
  for (auto& group : sites_) {
    for (RecordedSite& site : group) {
      const std::string key = text_of(now_, site.outside);
      auto found = site.shapes.find(key);
      if (found == site.shapes.end()) {
        if (site.shapes.size() >= kMaxRecordedShapes) {
          // Which of the known ones it is nearest to matters little among so many.
          site.shapes.begin()->second.calls += weight_;
          continue;
        }
        found = site.shapes.emplace(key, SiteShape{}).first;
        const auto remember = [&](const Value* value) {
          if (const auto seen = now_.find(value); seen != now_.end()) found->second.seen.insert(*seen);
        };
        for (const Value* value : site.outside) remember(value);
        for (const Node* node : site.part.nodes) {
          for (const Value* output : node->outputs()) remember(output);
        }
      }
      found->second.calls += weight_;
    }
  }
}

std::vector<SiteShape> Recorder::shapes(size_t group, size_t site) const {
  constexpr size_t kMaxMeasuredShapes = 6;
  std::vector<SiteShape> all;
  for (const auto& [key, shape] : sites_.at(group).at(site).shapes) all.push_back(shape);
  std::stable_sort(all.begin(), all.end(),
                   [](const SiteShape& a, const SiteShape& b) { return a.calls > b.calls; });
  const size_t kept = std::min(all.size(), kMaxMeasuredShapes);
  for (size_t i = kept; i < all.size(); ++i) {
    const auto distance = [&](const SiteShape& shape) {
      return std::abs(std::log(static_cast<double>(1 + elements_of(shape.seen)) /
                               static_cast<double>(1 + elements_of(all[i].seen))));
    };
    const auto end = all.begin() + static_cast<ptrdiff_t>(kept);
    std::min_element(all.begin(), end, [&](const SiteShape& a, const SiteShape& b) {
      return distance(a) < distance(b);
    })->calls += all[i].calls;
  }
  all.resize(kept);
  return all;
}

const std::vector<RowSample>& Recorder::rows(const Node* linear) const {
  return rows_.at(input_of(*linear));
}

}  // namespace halftone::aq
