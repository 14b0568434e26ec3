#include "tune/autoquant/plan_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/ir/text_names.h"
#include "halftone/cli/message.h"

namespace halftone::aq {
namespace {

class PlanWriter {
 public:
  PlanWriter(AutoquantPlan& plan, const PlanInput& input, const std::vector<AutoquantScheme>& schemes,
             const CostReport& costs, const BudgetResult& budget, const Decision& decision)
      : plan_(plan), input_(input), schemes_(schemes), costs_(costs), budget_(budget), decision_(decision) {}

  void run() {
    write_layers();
    write_notes();
  }

 private:
  std::string reason(size_t group) const {
    const size_t scheme = decision_.chosen[group];
    const auto& costs = costs_.costs[group];
    const auto allowed =
        std::count_if(costs.begin(), costs.end(), [](const GroupCost& cost) { return cost.allowed(); });
    if (!costs[0].allowed()) return costs[0].note;
    if (decision_.quantized_lost)
      return "no quantized model was surely and usefully faster than fp32 as a whole";
    if (decision_.winner.starts_with("all "))
      return scheme != 0
                 ? fmt::format("{} was the fastest as a whole", decision_.winner)
                 : fmt::format("{} was the fastest as a whole, and is not for this layer", decision_.winner);
    const bool relaxed = group < budget_.relaxed.size() && budget_.relaxed[group];
    if (relaxed) return relax_reason(group);
    if (scheme == 0)
      return allowed > 1 ? fmt::format("none of {} others gains enough time", allowed - 1)
                         : "no other scheme is within the layer's bound";
    return fmt::format("fastest of {} within the layer's bound", allowed);
  }

  std::string relax_reason(size_t group) const {
    const auto& costs = costs_.costs[group];
    size_t fastest = 0;
    for (size_t s = 0; s < costs.size(); ++s) {
      if (costs[s].allowed() && *costs[s].milliseconds < *costs[fastest].milliseconds) fastest = s;
    }
    return fmt::format("given back: with {} the model's cosine falls below {}", schemes_[fastest].name,
                       input_.options.min_cosine);
  }

  AutoquantLayer layer_of(size_t group, size_t position) const {
    const Group& marked = input_.model.groups[group];
    const GraphLayer& layer = input_.model.layers[marked.layers[position]];
    AutoquantLayer out;
    out.name = layer.info.name;
    out.kind = layer.info.kind;
    out.n = layer.info.n;
    out.k = layer.info.k;
    int64_t weights = 0;
    for (const size_t other : marked.layers) {
      const LayerInfo& info = input_.model.layers[other].info;
      weights += info.n * info.k;
      if (other != marked.layers[position]) out.together.push_back(info.name);
    }
    for (const LayerUse& use : layer.uses) {
      for (const RowSample& sample : input_.recorder.rows(use.node)) add_shape(out, sample);
    }
    const double share =
        static_cast<double>(layer.info.n * layer.info.k) / static_cast<double>(std::max<int64_t>(1, weights));
    for (size_t s = 0; s < schemes_.size(); ++s) {
      const GroupCost& cost = costs_.costs[group][s];
      AutoquantCandidate candidate{schemes_[s].name, std::nullopt, cost.errors[position], cost.note};
      if (cost.milliseconds) candidate.milliseconds = share * *cost.milliseconds;
      out.candidates.push_back(std::move(candidate));
    }
    out.choice = schemes_[decision_.chosen[group]].name;
    out.reason = reason(group);
    return out;
  }

  /// A layer that is used twice in a call is called twice.
  static void add_shape(AutoquantLayer& layer, const RowSample& sample) {
    const std::string dtype(dtype_name(sample.dtype));
    const auto known = std::find_if(
        layer.shapes.begin(), layer.shapes.end(),
        [&](const AutoquantShape& shape) { return shape.sizes == sample.sizes && shape.dtype == dtype; });
    if (known != layer.shapes.end()) {
      known->calls += sample.calls;
    } else {
      layer.shapes.push_back({sample.sizes, dtype, sample.calls});
    }
  }

  void write_layers() {
    std::vector<std::pair<size_t, AutoquantLayer>> layers;
    for (size_t g = 0; g < input_.model.groups.size(); ++g) {
      for (size_t i = 0; i < input_.model.groups[g].layers.size(); ++i)
        layers.emplace_back(input_.model.groups[g].layers[i], layer_of(g, i));
    }
    std::stable_sort(layers.begin(), layers.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [index, layer] : layers) plan_.layers.push_back(std::move(layer));
    for (const LayerInfo& info : input_.unseen) {
      AutoquantLayer layer;
      layer.name = info.name;
      layer.kind = info.kind;
      layer.n = info.n;
      layer.k = info.k;
      layer.choice = schemes_.front().name;
      layer.reason = "not seen in calibration";
      plan_.layers.push_back(std::move(layer));
    }
  }

  /// Why all of it stays in fp32, with the best of what lost.
  std::string fp32_note() const {
    std::string note = "Quantization does not pay here: every layer stays in fp32";
    return decision_.why_lost.empty() ? note + "." : fmt::format("{}; {}.", note, decision_.why_lost);
  }

  void write_notes() {
    const bool plain = std::all_of(decision_.chosen.begin(), decision_.chosen.end(),
                                   [](size_t scheme) { return scheme == 0; });
    if (plain) plan_.notes.push_back(fp32_note());
    if (decision_.winner.starts_with("all "))
      plan_.notes.push_back(
          fmt::format("One scheme for all layers was the fastest: {}.", decision_.winner.substr(4)));
    if (input_.layout.synthetic > 0)
      plan_.notes.push_back(fmt::format("Validation samples that are made up: {} of {}.",
                                        input_.layout.synthetic, input_.layout.validation.size()));
    if (!costs_.complete || !budget_.complete || !decision_.complete)
      plan_.notes.push_back(fmt::format("The time limit of {} s left no time for a part of the planning.",
                                        input_.options.time_limit));
    if (!input_.unseen.empty())
      plan_.notes.push_back(
          fmt::format("Not seen in calibration: {}.", counted(input_.unseen.size(), "layer")));
    plan_.notes.push_back(
        fmt::format("Of {} (those that are alike count once) {} were measured for this plan.",
                    counted(costs_.problems, "different layer"), costs_.measured));
  }

  AutoquantPlan& plan_;
  const PlanInput& input_;
  const std::vector<AutoquantScheme>& schemes_;
  const CostReport& costs_;
  const BudgetResult& budget_;
  const Decision& decision_;
};

}  // namespace

void write_decision(AutoquantPlan& plan, const PlanInput& input, const std::vector<AutoquantScheme>& schemes,
                    const CostReport& costs, const BudgetResult& budget, const Decision& decision) {
  PlanWriter(plan, input, schemes, costs, budget, decision).run();
}

}  // namespace halftone::aq
