#include "tune/static_int8/layer_errors.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <map>
#include <set>

#include "quant/graph/diagnose_difference.h"

namespace halftone {
namespace {

/// Lower is better; -200 if nothing differs.
double noise_db(const Difference& difference) {
  constexpr double kSilence = -200;
  return std::max(kSilence, -difference.measure().snr_db);
}

using KeptValues = std::map<std::string, at::Tensor>;

/// The named values of one call.
KeptValues run_and_keep(Session& session, const std::vector<c10::IValue>& call,
                        const std::set<std::string>& names) {
  KeptValues kept;
  session.set_node_hook([&](const Node& node, const std::vector<c10::IValue>& outputs, double) {
    for (size_t i = 0; i < outputs.size() && i < node.outputs().size(); ++i) {
      const std::string& name = node.outputs()[i]->name();
      if (names.contains(name) && outputs[i].isTensor()) kept[name] = outputs[i].toTensor();
    }
  });
  session.reset();
  session.run(call);
  return kept;
}

bool comparable(const at::Tensor& a, const at::Tensor& b) {
  return a.is_floating_point() && b.is_floating_point() && a.sizes() == b.sizes();
}

}  // namespace

std::vector<StaticLayerError> static_layer_errors(const std::shared_ptr<const GraphModule>& prepared,
                                                  const std::shared_ptr<const GraphModule>& reference,
                                                  const PtqReport& report,
                                                  const std::vector<std::vector<c10::IValue>>& calls) {
  std::set<std::string> names;
  for (const MatchedPattern& match : report.patterns) {
    if (match.quantized && !match.nodes.empty()) names.insert(match.nodes.back());
  }
  Session exact(prepared), quantized(reference);
  std::map<std::string, Difference> sums;
  for (const std::vector<c10::IValue>& call : calls) {
    const KeptValues x = run_and_keep(exact, call, names), y = run_and_keep(quantized, call, names);
    for (const auto& [name, value] : x) {
      const auto other = y.find(name);
      if (other != y.end() && comparable(value, other->second)) sums[name].add(value, other->second);
    }
  }
  std::vector<StaticLayerError> errors;
  for (const MatchedPattern& match : report.patterns) {
    if (!match.quantized || match.nodes.empty()) continue;
    const auto found = sums.find(match.nodes.back());
    if (found == sums.end()) continue;
    errors.push_back(
        {match.layer, match.pattern, found->first, found->second.cosine(), noise_db(found->second)});
  }
  return errors;
}

ResultErrors compare_results(const std::vector<std::vector<c10::IValue>>& exact,
                             const std::vector<std::vector<c10::IValue>>& quantized) {
  ResultErrors errors;
  for (size_t call = 0; call < exact.size(); ++call) {
    for (size_t i = 0; i < exact[call].size(); ++i) {
      if (!exact[call][i].isTensor() || !quantized[call][i].isTensor()) continue;
      const at::Tensor& x = exact[call][i].toTensor();
      const at::Tensor& y = quantized[call][i].toTensor();
      if (!comparable(x, y)) continue;
      Difference difference;
      difference.add(x, y);
      errors.min_cosine = std::min(errors.min_cosine, difference.cosine());
      errors.differing_not_finite += difference.differing();
    }
  }
  return errors;
}

}  // namespace halftone
