// The two operators of graphs in training. Both are compositions: gradients are those of PyTorch's own
// fake-quantize operators. They write and read their state where it lies, so that only the interpreter may
// run them.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/fake_quantize_per_channel_affine.h>
#include <ATen/ops/fake_quantize_per_tensor_affine.h>
#include <ATen/ops/full.h>
#include <torch/library.h>

#include <cmath>

#include "base/errors.h"
#include "quant/ptq/quantize_weight.h"
#include "quant/qat_graph/observed_range.h"

namespace halftone {
namespace {

void check_range(const at::Tensor& range) {
  if (range.is_cpu() && range.scalar_type() == at::kFloat && range.is_contiguous() &&
      range.numel() == kObservedRangeSize)
    return;
  fail(ErrorCode::kInvalidArgument, "halftone::observe_and_fake_quantize: the range is no observer's");
}

/// Only those that a graph in training has: others would take memory as their JSON asks for.
ObserverConfig read_config(c10::string_view observer) {
  const auto config = ObserverConfig::from_dict(std::string_view(observer.data(), observer.size()));
  switch (config.kind) {
    case ObserverKind::kMinMax:
    case ObserverKind::kMovingAverageMinMax:
    case ObserverKind::kPerChannelMinMax:
    case ObserverKind::kMovingAveragePerChannelMinMax:
    case ObserverKind::kFixed:
      return config;
    default:
      fail(ErrorCode::kInvalidArgument, "halftone: a {} has no range that could be trained with",
           to_string(config.kind));
  }
}

void see(const at::Tensor& x, const ObserverConfig& config, float* range) {
  const at::NoGradGuard no_grad;
  const auto [low, high] = at::aminmax(x.detach().to(at::kFloat));
  const float least = low.item<float>(), largest = high.item<float>();
  if (!std::isfinite(least) || !std::isfinite(largest))
    fail(ErrorCode::kInvalidArgument, "NaN or infinity in an observed value: no scale stands for it");
  float& min = range[kObservedMin];
  float& max = range[kObservedMax];
  if (range[kObservedCalls] == 0) {
    min = least;
    max = largest;
  } else if (config.kind == ObserverKind::kMovingAverageMinMax) {
    const auto share = static_cast<float>(config.averaging_constant);
    min += (least - min) * share;
    max += (largest - max) * share;
  } else {
    min = std::min(min, least);
    max = std::max(max, largest);
  }
  range[kObservedCalls] += 1;
}

at::Tensor observe_and_fake_quantize(const at::Tensor& x, const at::Tensor& range,
                                     c10::string_view observer) {
  check_range(range);
  const ObserverConfig config = read_config(observer);
  const at::Tensor values = range.detach();
  auto* numbers = values.mutable_data_ptr<float>();
  const bool fixed = config.kind == ObserverKind::kFixed;
  if (!fixed && numbers[kObservedOn] != 0 && numbers[kObservedFrozen] == 0 && x.numel() > 0)
    see(x, config, numbers);
  if (!fixed && numbers[kObservedCalls] == 0)
    fail(ErrorCode::kState, "nothing was observed here yet: call forward() in training first");
  const QParams found =
      fixed ? make_observer(config)->qparams()
            : qparams_of_range(config, values.narrow(0, kObservedMin, 1), values.narrow(0, kObservedMax, 1));
  const auto [least, largest] = ptq::value_range(config, false);
  return at::fake_quantize_per_tensor_affine(x, static_cast<double>(found.scale.item<float>()),
                                             found.zero_point.item<int64_t>(), least, largest);
}

at::Tensor fake_quantize_stored(const at::Tensor& weight, c10::string_view observer) {
  const ObserverConfig config = read_config(observer);
  const auto seen = make_observer(config);
  seen->observe(weight);
  const QParams found = seen->qparams();
  const auto [least, largest] = ptq::value_range(config, false);
  if (config.qscheme == QScheme::kPerChannelSymmetric || config.qscheme == QScheme::kPerChannelAffine)
    return at::fake_quantize_per_channel_affine(weight, found.scale, found.zero_point, config.ch_axis, least,
                                                largest);
  return at::fake_quantize_per_tensor_affine(weight, static_cast<double>(found.scale.item<float>()),
                                             found.zero_point.item<int64_t>(), least, largest);
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def("observe_and_fake_quantize(Tensor x, Tensor(a!) range, *, str observer) -> Tensor");
  m.def("fake_quantize_stored(Tensor weight, *, str observer) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CompositeImplicitAutograd, m) {
  m.impl("observe_and_fake_quantize", observe_and_fake_quantize);
  m.impl("fake_quantize_stored", fake_quantize_stored);
}

}  // namespace

void link_observed_ops() {}

}  // namespace halftone
