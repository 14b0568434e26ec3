// Observers' statistics as JSON: made once, used again while schemes change.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <cmath>

#include "base/errors.h"
#include "halftone/ptq/observer.h"
#include "quant/backend_config/config_json.h"
#include "quant/qconfig/observer_json.h"

namespace halftone {
namespace {

qconfig::Json floats_json(const at::Tensor& values) {
  qconfig::Json list = qconfig::Json::array();
  for (int64_t i = 0; i < values.numel(); ++i) list.push_back(values.const_data_ptr<float>()[i]);
  return list;
}

at::Tensor read_floats(const JsonCursor& place) {
  if (!place.raw().is_array() || place.size() == 0) place.fail_here("expected an array of numbers");
  const auto count = static_cast<int64_t>(place.size());
  at::Tensor values = at::empty({count}, at::kFloat);
  for (int64_t i = 0; i < count; ++i) {
    const JsonCursor element = place.at(static_cast<size_t>(i));
    const auto value = static_cast<float>(element.get_double());
    if (!std::isfinite(value)) element.fail_here("expected a finite number");
    values.mutable_data_ptr<float>()[i] = value;
  }
  return values;
}

/// What an observer of that kind could have written itself.
void check_restored(const JsonCursor& root, const Observer& observer, const at::Tensor& min,
                    const at::Tensor& max, const at::Tensor& histogram) {
  const ObserverKind kind = observer.config().kind;
  const bool has_range = kind != ObserverKind::kFixed && kind != ObserverKind::kPlaceholder &&
                         kind != ObserverKind::kNoop && kind != ObserverKind::kReuseInput;
  const bool expected = has_range && observer.has_seen();
  if (min.defined() != expected || max.defined() != expected)
    root.fail_here(expected ? "min and max are missing" : "min and max of something that has seen no range");
  if (histogram.defined() != (expected && kind == ObserverKind::kHistogram))
    root.fail_here("a histogram belongs to a HistogramObserver that has seen something, and to no other");
  if (!expected) return;
  const bool one = kind == ObserverKind::kHistogram || kind == ObserverKind::kMinMax ||
                   kind == ObserverKind::kMovingAverageMinMax;
  if (min.numel() != max.numel() || (one && min.numel() != 1))
    root.fail_here("min and max have another length");
  if ((min > max).any().item<bool>()) root.fail_here("min is above max");
  if (!histogram.defined()) return;
  if (histogram.numel() != observer.config().bins)
    root.fail_here(fmt::format("a histogram of {} bins, not {}", histogram.numel(), observer.config().bins));
  if ((histogram < 0).any().item<bool>()) root.fail_here("a histogram cannot have negative counts");
}

}  // namespace

std::string Observer::to_json() const {
  qconfig::Json json{{"observer", qconfig::observer_json(config_)}, {"calls", calls_}};
  if (min_.defined()) json["min"] = floats_json(min_);
  if (max_.defined()) json["max"] = floats_json(max_);
  if (histogram_.defined()) json["histogram"] = floats_json(histogram_);
  return json.dump();
}

std::unique_ptr<Observer> Observer::from_json(std::string_view json) {
  const auto document = parse_json(json, "observer");
  const JsonCursor root(document, "observer");
  backend_config::expect_keys(root, {"observer", "calls", "min", "max", "histogram"});
  std::unique_ptr<Observer> observer = make_observer(qconfig::read_observer(root.at("observer")));
  observer->calls_ = root.at("calls").get_int();
  if (observer->calls_ < 0) root.at("calls").fail_here("cannot be negative");
  if (root.has("min")) observer->min_ = read_floats(root.at("min"));
  if (root.has("max")) observer->max_ = read_floats(root.at("max"));
  if (root.has("histogram")) observer->histogram_ = read_floats(root.at("histogram"));
  check_restored(root, *observer, observer->min_, observer->max_, observer->histogram_);
  return observer;
}

}  // namespace halftone
