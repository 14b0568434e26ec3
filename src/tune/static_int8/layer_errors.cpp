#include "tune/static_int8/layer_errors.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/dot.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace halftone {
namespace {

/// Sums over all calls: x is fp32's value, y the quantized one.
struct ErrorSums {
  double xx = 0, yy = 0, xy = 0;

  void add(const at::Tensor& exact, const at::Tensor& quantized) {
    const at::Tensor x = exact.to(at::kDouble).flatten(), y = quantized.to(at::kDouble).flatten();
    xx += x.dot(x).item<double>();
    yy += y.dot(y).item<double>();
    xy += x.dot(y).item<double>();
  }
  double cosine() const {
    if (xx == 0 && yy == 0) return 1;
    return xx == 0 || yy == 0 ? 0 : xy / std::sqrt(xx * yy);
  }
  double noise_db() const {
    constexpr double kSilence = -200;  // no difference at all, or nothing to differ from
    const double noise = std::max(xx - 2 * xy + yy, 0.0);
    return xx == 0 || noise == 0 ? kSilence : std::max(kSilence, 10 * std::log10(noise / xx));
  }
};

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
  std::map<std::string, ErrorSums> sums;
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
        {match.layer, match.pattern, found->first, found->second.cosine(), found->second.noise_db()});
  }
  return errors;
}

double least_result_cosine(const std::vector<std::vector<c10::IValue>>& exact,
                           const std::vector<std::vector<c10::IValue>>& quantized) {
  double least = 1;
  for (size_t call = 0; call < exact.size(); ++call) {
    for (size_t i = 0; i < exact[call].size(); ++i) {
      if (!exact[call][i].isTensor() || !quantized[call][i].isTensor()) continue;
      const at::Tensor& x = exact[call][i].toTensor();
      const at::Tensor& y = quantized[call][i].toTensor();
      if (!comparable(x, y)) continue;
      ErrorSums sums;
      sums.add(x, y);
      least = std::min(least, sums.cosine());
    }
  }
  return least;
}

}  // namespace halftone
