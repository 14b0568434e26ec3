#include "decoder/compiled_decoder.h"

#include <ATen/ops/arange.h>

#include <algorithm>

#include "halftone/capture/capture_module.h"

namespace halftone {

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
  const at::Tensor keep = at::arange(places).unsqueeze(0) <= at::arange(tokens).unsqueeze(1);
  return capture(model, std::tuple(ids, at::arange(tokens), keep), options);
}

}  // namespace halftone
