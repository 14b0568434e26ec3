#include "decoder/compiled_decoder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "halftone/capture/capture_module.h"

namespace halftone {

namespace {

/// Row i: as many places up to first + i as the window has, or all.
at::Tensor mask_of_places(int64_t first, int64_t tokens, int64_t places, int64_t window) {
  at::Tensor keep = at::empty({tokens, places}, at::kBool);
  bool* row = keep.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < tokens; ++i, row += places) {
    const int64_t end = first + i + 1, begin = std::max<int64_t>(0, end - window);
    std::fill(row, row + begin, false);
    std::fill(row + begin, row + end, true);
    std::fill(row + end, row + places, false);
  }
  return keep;
}

}  // namespace

std::vector<c10::IValue> CompiledDecoder::inputs(at::Tensor tokens, int64_t first, int64_t places) const {
  const int64_t count = tokens.size(1);
  std::vector<c10::IValue> inputs = {std::move(tokens), at::arange(first, first + count),
                                     mask_of_places(first, count, places, places)};
  if (window > 0) inputs.emplace_back(mask_of_places(first, count, places, window));
  return inputs;
}

std::shared_ptr<GraphModule> capture_decoder(const DecoderConfig& config, DecoderWeights weights,
                                             int64_t context) {
  DecoderModel model(config, std::move(weights), context);
  const int64_t tokens = std::min<int64_t>(3, context - 1), places = std::min<int64_t>(8, context);
  CaptureOptions options;
  options.name = config.name.empty() ? config.architecture : config.name;
  options.input_names = {"tokens", "positions", "keep"};
  options.dynamic = {{"tokens", 1, "tokens", 1, context},
                     {"positions", 0, "tokens", 1, context},
                     {"keep", 0, "tokens", 1, context},
                     {"keep", 1, "places", 1, context}};
  const at::Tensor ids = at::arange(tokens).unsqueeze(0).remainder(config.vocabulary);
  const at::Tensor positions = at::arange(tokens), keep = mask_of_places(0, tokens, places, places);
  if (!config.has_window_within(context)) return capture(model, std::tuple(ids, positions, keep), options);
  options.input_names.emplace_back("near");
  options.dynamic.push_back({"near", 0, "tokens", 1, context});
  options.dynamic.push_back({"near", 1, "places", 1, context});
  return capture(model, std::tuple(ids, positions, keep, mask_of_places(0, tokens, places, 1)), options);
}

QuantizeReport quantize_decoder(GraphModule& module, const QuantConfig& scheme) {
  QuantizeOptions options{.embeddings = true};
  options.filter = [](const LayerInfo& layer) {
    return layer.name.find("rotary_") == std::string::npos && !layer.name.ends_with("embed_positions");
  };
  return quantize_(module, scheme, options);
}

}  // namespace halftone
