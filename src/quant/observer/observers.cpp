// The observers, with the arithmetic of torch.ao.
#include <ATen/TensorOperators.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

#include <cmath>

#include "base/errors.h"
#include "base/log.h"
#include "halftone/ptq/observer.h"
#include "quant/observer/histogram.h"

namespace halftone {
namespace {

void expect_seen(const Observer& observer) {
  if (!observer.has_seen())
    fail(ErrorCode::kState, "{} has seen nothing: run the calibration first",
         to_string(observer.config().kind));
}

bool is_by_channel(ObserverKind kind) {
  return kind == ObserverKind::kPerChannelMinMax || kind == ObserverKind::kMovingAveragePerChannelMinMax;
}

/// Of the dtype: a smaller range of quantized values does not change the search, as in torch.ao.
int64_t levels_of(ConfigDType dtype) {
  switch (dtype) {
    case ConfigDType::kQInt32:
    case ConfigDType::kInt32:
      return int64_t{1} << 32;
    case ConfigDType::kInt16:
      return int64_t{1} << 16;
    default:
      return 256;
  }
}

/// Smallest and largest element, of all or of each channel.
class RangeObserver : public Observer {
 public:
  explicit RangeObserver(const ObserverConfig& config) : Observer(config) {}

  QParams qparams() const override {
    expect_seen(*this);
    return qparams_of_range(config_, min_, max_);
  }

 protected:
  void see(const at::Tensor& x) override {
    auto [min, max] = extremes(x);
    if (!min_.defined()) {
      min_ = min;
      max_ = max;
      return;
    }
    if (min.numel() != min_.numel())
      fail(ErrorCode::kInvalidArgument, "{} has seen {} channels before, and {} now", to_string(config_.kind),
           min_.numel(), min.numel());
    merge(min, max);
  }

  virtual void merge(const at::Tensor& min, const at::Tensor& max) {
    min_ = at::minimum(min_, min);
    max_ = at::maximum(max_, max);
  }

 private:
  std::tuple<at::Tensor, at::Tensor> extremes(const at::Tensor& x) const {
    if (!is_by_channel(config_.kind)) {
      const auto [min, max] = at::aminmax(x);
      return {min.reshape({1}), max.reshape({1})};
    }
    const int64_t axis = config_.ch_axis < 0 ? config_.ch_axis + x.dim() : config_.ch_axis;
    if (axis < 0 || axis >= x.dim())
      fail(ErrorCode::kInvalidArgument, "a tensor of {} dimensions has no channel axis {}", x.dim(),
           config_.ch_axis);
    return at::aminmax(x.transpose(0, axis).flatten(1), 1);
  }
};

class MovingAverageObserver final : public RangeObserver {
 public:
  using RangeObserver::RangeObserver;

 private:
  void merge(const at::Tensor& min, const at::Tensor& max) override {
    min_ = min_ + (min - min_) * config_.averaging_constant;
    max_ = max_ + (max - max_) * config_.averaging_constant;
  }
};

class HistogramObserver final : public Observer {
 public:
  explicit HistogramObserver(const ObserverConfig& config) : Observer(config) {}

  QParams qparams() const override {
    expect_seen(*this);
    const auto [low, high] =
        range_with_least_error(histogram_, min_.item<float>(), max_.item<float>(), levels_of(config_.dtype));
    return qparams_of_range(config_, at::full({1}, low), at::full({1}, high));
  }

 private:
  void see(const at::Tensor& x) override {
    const auto [now_min, now_max] = at::aminmax(x);
    if (!histogram_.defined()) {
      min_ = now_min.reshape({1});
      max_ = now_max.reshape({1});
      histogram_ = at::histc(x, config_.bins, min_.item<float>(), max_.item<float>());
      return;
    }
    const float old_min = min_.item<float>(), old_max = max_.item<float>();
    const float min = std::min(old_min, now_min.item<float>()),
                max = std::max(old_max, now_max.item<float>());
    at::Tensor more = at::histc(x, config_.bins, min, max);
    histogram_ = more + (min == old_min && max == old_max
                             ? histogram_
                             : rescaled_histogram(histogram_, old_min, old_max, min, max));
    min_ = at::full({1}, min);
    max_ = at::full({1}, max);
  }
};

class FixedObserver final : public Observer {
 public:
  explicit FixedObserver(const ObserverConfig& config) : Observer(config) {}
  QParams qparams() const override {
    return {at::full({1}, config_.scale, at::kFloat), at::full({1}, config_.zero_point, at::kInt)};
  }

 private:
  void see(const at::Tensor&) override {}
};

/// Placeholder, noop, and what takes its input's numbers.
class BlindObserver final : public Observer {
 public:
  explicit BlindObserver(const ObserverConfig& config) : Observer(config) {}
  QParams qparams() const override {
    fail(ErrorCode::kState, "{} watches nothing: it has no scale", to_string(config_.kind));
  }

 private:
  void see(const at::Tensor&) override {}
};

}  // namespace

std::unique_ptr<Observer> make_observer(const ObserverConfig& config) {
  switch (config.kind) {
    case ObserverKind::kMinMax:
    case ObserverKind::kPerChannelMinMax:
      return std::make_unique<RangeObserver>(config);
    case ObserverKind::kMovingAverageMinMax:
    case ObserverKind::kMovingAveragePerChannelMinMax:
      return std::make_unique<MovingAverageObserver>(config);
    case ObserverKind::kHistogram:
      return std::make_unique<HistogramObserver>(config);
    case ObserverKind::kFixed:
      return std::make_unique<FixedObserver>(config);
    default:
      return std::make_unique<BlindObserver>(config);
  }
}

void Observer::observe(const at::Tensor& x) {
  if (!x.defined() || !at::isFloatingType(x.scalar_type()))
    fail(ErrorCode::kInvalidArgument, "{} observes floating-point tensors only", to_string(config_.kind));
  if (x.numel() == 0) return;
  at::Tensor values = x.detach().to(at::kFloat).contiguous();
  const auto [min, max] = at::aminmax(values);
  const double low = min.item<double>(), high = max.item<double>();
  if (std::isnan(low) || std::isnan(high))
    fail(ErrorCode::kInvalidArgument, "NaN in what {} observes: no scale stands for it",
         to_string(config_.kind));
  if (std::isinf(low) || std::isinf(high)) {
    log(LogLevel::kWarning, "infinite elements of a calibration sample are left out");
    // Channels keep their places; 0 is inside of every range.
    values = is_by_channel(config_.kind) ? values.nan_to_num(0.0, 0.0, 0.0)
                                         : values.masked_select(values.isfinite());
    if (values.numel() == 0) return;
  }
  see(values);
  ++calls_;
}

}  // namespace halftone
