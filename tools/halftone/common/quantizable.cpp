#include "common/quantizable.h"

namespace halftone::cli {

std::vector<QuantizableKind> count_quantizable(const ModelSummary& summary) {
  struct Kind {
    std::string_view in_summary;
    std::string_view name;
  };
  constexpr Kind kKinds[] = {{"linear", "linears"}, {"embedding", "embeddings"}, {"conv", "convolutions"}};
  std::vector<QuantizableKind> counts;
  for (const Kind& kind : kKinds) {
    QuantizableKind count{kind.name};
    for (const LayerSummary& layer : summary.layers) {
      if (layer.quantizable != kind.in_summary) continue;
      ++count.layers;
      count.bytes += layer.parameter_bytes;
    }
    counts.push_back(count);
  }
  return counts;
}

}  // namespace halftone::cli
