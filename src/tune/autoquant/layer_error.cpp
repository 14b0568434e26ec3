#include "tune/autoquant/layer_error.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>

#include <algorithm>
#include <cmath>

#include "compiler/passes/match.h"
#include "halftone/quant/weight_format.h"
#include "tune/candidate_run.h"

namespace halftone::aq {
namespace {

double one_minus_cosine(const at::Tensor& expected, const at::Tensor& got) {
  const at::Tensor a = expected.to(at::kDouble).flatten(), b = got.to(at::kDouble).flatten();
  const double norms = a.norm().item<double>() * b.norm().item<double>();
  if (norms == 0) return a.equal(b) ? 0 : 1;
  const double cosine = a.dot(b).item<double>() / norms;
  return std::isfinite(cosine) ? std::max(0.0, 1 - cosine) : 1;
}

/// The bias, where it is a stored tensor.
std::optional<at::Tensor> stored_bias(const MarkedModel& model, const Node& linear, int64_t n) {
  const Value* bias = try_tensor(linear, linear.is("aten::addmm") ? "self" : "bias");
  if (bias == nullptr || bias->producer() != nullptr) return std::nullopt;
  const GraphInput& input = bias->graph().inputs().at(bias->index());
  if (input.kind == InputKind::kUser) return std::nullopt;
  const auto tensors = model.module->tensors();
  const auto found = tensors->find(input.target);
  if (found == tensors->end() || found->second.dim() != 1 || found->second.size(0) != n) return std::nullopt;
  return found->second.to(at::kFloat);
}

}  // namespace

LayerError layer_error(const MarkedModel& model, const Recorder& recorder, const GraphLayer& layer,
                       const QuantConfig& config) {
  const at::NoGradGuard no_grad;
  const auto format = format_of(config);
  if (std::string refusal = format->refuse(layer.info.n, layer.info.k); !refusal.empty())
    return {std::nullopt, std::move(refusal)};
  try {
    const at::Tensor matrix = layer.matrix.to(layer.dtype);
    const QuantizedWeight weight = quantize_weight(matrix, config, layer.info.name);
    const at::Tensor plain = matrix.to(at::kFloat);
    double worst = 0;
    for (const LayerUse& use : layer.uses) {
      const auto bias = stored_bias(model, *use.node, layer.info.n);
      for (const RowSample& sample : recorder.rows(use.node)) {
        if (sample.filled == 0 || sample.rows.size(1) != layer.info.k) continue;
        const at::Tensor x = sample.rows.narrow(0, 0, sample.filled);
        worst =
            std::max(worst, one_minus_cosine(at::linear(x, plain, bias), format->linear(x, weight, bias)));
      }
    }
    return {worst, {}};
  } catch (const std::exception& error) {
    return {std::nullopt, short_message(error)};
  }
}

}  // namespace halftone::aq
