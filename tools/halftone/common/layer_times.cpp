#include "common/layer_times.h"

#include <chrono>
#include <vector>

#include "common/timing.h"

namespace halftone::cli {

namespace {

constexpr int kFewestRuns = 5;
constexpr int kMaxRuns = 100;
constexpr auto kBudget = std::chrono::seconds(3);
constexpr int kRunsBefore = 3;

void run_once(Session& session, const InputSet& inputs) {
  session.reset();
  session.run(copy_for_call(session.module(), inputs));
}

}  // namespace

double LayerTimes::share(const std::string& layer) const {
  const auto found = milliseconds.find(layer);
  return found == milliseconds.end() || total_ms <= 0 ? 0 : found->second / total_ms;
}

LayerTimes measure_layers(Session& session, const InputSet& inputs, const Console& console) {
  for (int i = 0; i < kRunsBefore; ++i) run_once(session, inputs);
  std::map<std::string, double> sums;
  session.set_node_hook([&sums](const Node& node, const std::vector<c10::IValue>&, double seconds) {
    sums[node.source().layer] += seconds * 1000;
  });
  std::map<std::string, std::vector<double>> samples;
  ProgressBar bar(console, "timing layers", kMaxRuns);
  const auto deadline = std::chrono::steady_clock::now() + kBudget;
  LayerTimes times;
  while (times.runs < kFewestRuns || (times.runs < kMaxRuns && std::chrono::steady_clock::now() < deadline)) {
    sums.clear();
    run_once(session, inputs);
    for (const auto& [layer, milliseconds] : sums) samples[layer].push_back(milliseconds);
    bar.update(++times.runs);
  }
  session.set_node_hook({});
  for (auto& [layer, values] : samples) {
    const double median = summarize_times(std::move(values)).median_ms;
    times.milliseconds[layer] = median;
    times.total_ms += median;
  }
  return times;
}

}  // namespace halftone::cli
