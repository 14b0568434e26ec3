#include "quant/select/left_alone.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "halftone/cli/table.h"
#include "halftone/quant/weight_format.h"
#include "quant/select/layer_chooser.h"

namespace halftone {
namespace {

std::string help_for(std::string_view kind, const QuantConfig& config) {
  if (kind == "convolution") {
    return config.as<Int8WeightOnlyConfig>()
               ? "halftone ptq (static int8)"
               : "--scheme int8wo (weights alone) or halftone ptq (static int8)";
  }
  if (kind == "linear") return "the reasons are above";
  if (kind == "embedding") {
    return format_of(embedding_config(config))->has_embedding() ? "--embeddings (QuantizeOptions::embeddings)"
                                                                : "--override 'NAME=int8wo'";
  }
  return kind == kOtherWeight ? "" : "no scheme is there for that";
}

}  // namespace

std::vector<LeftAlone> group_left_alone(const std::vector<UntouchedWeight>& weights, int64_t model_bytes,
                                        const QuantConfig& config) {
  if (config.is_noquant()) return {};
  std::map<std::string, std::pair<std::set<const void*>, int64_t>> kinds;
  for (const UntouchedWeight& weight : weights) {
    auto& [layers, bytes] = kinds[weight.kind];
    layers.insert(weight.layer);
    bytes += weight.bytes;
  }
  std::vector<LeftAlone> result;
  for (const auto& [kind, found] : kinds) {
    const auto& [layers, bytes] = found;
    const double share =
        model_bytes > 0 ? static_cast<double>(bytes) / static_cast<double>(model_bytes) : 0.0;
    result.push_back({kind, layers.size(), bytes, share, help_for(kind, config)});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const LeftAlone& a, const LeftAlone& b) { return a.bytes > b.bytes; });
  return result;
}

std::string describe(const LeftAlone& kind) {
  return fmt::format("{} {}{} ({}, {:.1f} % of the bytes) {} not touched by this scheme{}{}", kind.count,
                     kind.kind, kind.count == 1 ? "" : "s", describe_bytes(kind.bytes), kind.share * 100,
                     kind.count == 1 ? "is" : "are", kind.help.empty() ? "" : ": ", kind.help);
}

}  // namespace halftone
