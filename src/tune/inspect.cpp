// inspect(): the time of each submodule, and whether tuning it is worthwhile.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "halftone/cli/table.h"
#include "halftone/tune/measure.h"
#include "tune/report/report_json.h"
#include "tune/report/report_text.h"
#include "tune/samples/sample_layout.h"
#include "tune/submodules.h"

namespace halftone {
namespace {

constexpr int kFewestRuns = 5;
constexpr int kMaxRuns = 100;
constexpr int kDeepest = 8;
constexpr double kTooLarge = 0.5;

/// Median milliseconds of each layer's nodes.
std::map<std::string, double> time_layers(const std::shared_ptr<const GraphModule>& module,
                                          const Sample& sample, double seconds) {
  Session session(module);
  const auto run = [&] {
    session.reset();
    Sample own = copy_of(sample);
    session(std::move(own.args), std::move(own.kwargs));
  };
  for (int i = 0; i < 2; ++i) run();
  std::map<std::string, double> sums;
  session.set_node_hook([&](const Node& node, const std::vector<c10::IValue>&, double spent) {
    sums[node.source().layer] += spent * 1e3;
  });
  std::map<std::string, std::vector<double>> times;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (int i = 0; i < kFewestRuns || (i < kMaxRuns && std::chrono::steady_clock::now() < deadline); ++i) {
    sums.clear();
    run();
    for (const auto& [layer, spent] : sums) times[layer].push_back(spent);
  }
  std::map<std::string, double> medians;
  for (auto& [layer, values] : times) medians[layer] = quantile(std::move(values), 0.5);
  return medians;
}

/// The first `depth` parts of a qualified name.
std::string prefix_of(const std::string& layer, int depth) {
  size_t end = 0;
  for (int i = 0; i < depth; ++i) {
    end = layer.find('.', end == 0 ? 0 : end + 1);
    if (end == std::string::npos) return layer;
  }
  return layer.substr(0, end);
}

struct InspectedParts {
  std::map<std::string, double> times;           ///< by layer
  std::vector<LayerReport> layers;               ///< that could be quantized
  std::map<std::string, at::Tensor> parameters;  ///< by name
};

std::vector<SubmoduleReport> group(const GraphModule& module, const InspectedParts& parts, int depth,
                                   double total) {
  std::vector<SubmoduleReport> groups;
  const auto group_of = [&](const std::string& layer) -> SubmoduleReport& {
    const std::string name = prefix_of(layer, depth);
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const SubmoduleReport& one) { return one.name == name; });
    if (found != groups.end()) return *found;
    groups.emplace_back().name = name;
    return groups.back();
  };
  for (const auto& node : module.graph().nodes()) group_of(node->source().layer);
  for (const auto& [layer, ms] : parts.times) group_of(layer).milliseconds += ms;
  for (const auto& [name, tensor] : parts.parameters) {
    const size_t dot = name.rfind('.');
    SubmoduleReport& owner = group_of(dot == std::string::npos ? "" : name.substr(0, dot));
    owner.parameters += tensor.numel();
    owner.bytes += static_cast<int64_t>(tensor.nbytes());
  }
  for (const LayerReport& layer : parts.layers) ++group_of(layer.layer.name).layers;
  for (SubmoduleReport& each : groups) each.share = total > 0 ? each.milliseconds / total : 0;
  return groups;
}

void set_worth(SubmoduleReport& each, double min_share) {
  each.worth = each.layers > 0 && each.share >= min_share;
  if (each.layers == 0) {
    each.reason = "no layer that could be quantized";
  } else if (each.share < min_share) {
    each.reason = fmt::format("{:.1f} % of the time, less than {:.0f} %", each.share * 100, min_share * 100);
  } else {
    each.reason = fmt::format("{} layer{}, {:.1f} % of the time", each.layers, each.layers == 1 ? "" : "s",
                              each.share * 100);
  }
}

}  // namespace

std::vector<LayerReport> quantizable_layers(const GraphModule& module) {
  const auto copy = module.clone();
  QuantizeOptions options;
  options.dry_run = true;
  try {
    QuantizeReport report = quantize_(*copy, Int8WeightOnlyConfig{}, options);
    std::erase_if(report.layers, [](const LayerReport& layer) {
      // Convolutions become smaller but not faster.
      return layer.outcome != LayerReport::Outcome::kQuantized || layer.layer.kind == "convolution";
    });
    return report.layers;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    return {};  // nothing to quantize
  }
}

InspectReport inspect(const std::shared_ptr<const GraphModule>& module, const Samples& samples,
                      const InspectOptions& options) {
  required(module, "inspect: the module");
  const SampleLayout layout = lay_out(samples, module.get(), {}, 0);
  InspectedParts parts;
  parts.times = time_layers(module, layout.shape_calls.front(), options.seconds);
  parts.layers = quantizable_layers(*module);
  const auto tensors = module->tensors();
  for (const GraphInput& input : module->graph().inputs()) {
    const auto found = tensors->find(input.target);
    if (input.kind == InputKind::kParameter && found != tensors->end()) parts.parameters.insert(*found);
  }
  InspectReport report;
  report.model = module->name;
  for (const auto& [layer, ms] : parts.times) report.milliseconds += ms;
  for (int depth = std::max(1, options.depth); depth <= kDeepest; ++depth) {
    auto groups = group(*module, parts, depth, report.milliseconds);
    const bool same =
        std::equal(groups.begin(), groups.end(), report.submodules.begin(), report.submodules.end(),
                   [](const auto& a, const auto& b) { return a.name == b.name; });
    if (same) break;  // names have no more parts
    report.depth = depth;
    report.submodules = std::move(groups);
    const bool balanced = std::none_of(report.submodules.begin(), report.submodules.end(),
                                       [](const SubmoduleReport& one) { return one.share > kTooLarge; });
    if (balanced || options.depth > 0) break;
  }
  for (SubmoduleReport& each : report.submodules) set_worth(each, options.min_share);
  return report;
}

std::string InspectReport::to_text() const {
  std::vector<Row> rows;
  for (const SubmoduleReport& each : submodules) {
    rows.push_back({each.name.empty() ? "(no layer)" : each.name, with_commas(each.parameters),
                    describe_bytes(each.bytes), fmt::format("{}", each.layers),
                    fmt::format("{:.3f}", each.milliseconds), fmt::format("{:.1f} %", each.share * 100),
                    each.worth ? "yes" : "no", each.worth ? "" : each.reason});
  }
  return wrap_text(fmt::format("{}: {:.2f} ms a call in the interpreter", model, milliseconds),
                   kReportWidth) +
         "\n" +
         render_table({{"submodule", Align::kLeft, Cut::kName, 20},
                       {"parameters", Align::kRight},
                       {"size", Align::kRight},
                       {"layers", Align::kRight},
                       {"ms", Align::kRight},
                       {"share", Align::kRight},
                       {"worth it"},
                       {"why not", Align::kLeft, Cut::kMiddle, 20}},
                      rows, kReportWidth);
}

std::string InspectReport::to_json() const {
  nlohmann::ordered_json json = {{"model", model}, {"depth", depth}, {"milliseconds", milliseconds}};
  json["submodules"] = nlohmann::ordered_json::array();
  for (const SubmoduleReport& each : submodules) {
    json["submodules"].push_back({{"name", each.name},
                                  {"layers", each.layers},
                                  {"parameters", each.parameters},
                                  {"bytes", each.bytes},
                                  {"milliseconds", each.milliseconds},
                                  {"share", each.share},
                                  {"worth", each.worth},
                                  {"reason", each.reason}});
  }
  return dump_json(json);
}

}  // namespace halftone
