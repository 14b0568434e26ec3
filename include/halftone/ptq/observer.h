// Observers: the statistics of a value during calibration, and the scale and zero point that follow from
// them. They give torch.ao's numbers. docs/backend_config.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <string_view>

#include "halftone/base/api.h"
#include "halftone/ptq/qconfig.h"

namespace halftone {

/// One element, or one for each channel.
struct QParams {
  at::Tensor scale;       ///< float32
  at::Tensor zero_point;  ///< int32; float32 for QScheme::kPerChannelAffineFloatQParams
};

/// Its memory does not grow with the number of samples. Not for several threads at a time.
class HALFTONE_API Observer {
 public:
  virtual ~Observer() = default;
  const ObserverConfig& config() const { return config_; }

  /// Floating point, of any size; an empty one counts as not seen. Infinite elements are left out.
  /// kInvalidArgument for NaN, which no scale can represent, for other dtypes, and if the number of
  /// channels changes.
  void observe(const at::Tensor& x);
  bool has_seen() const { return calls_ > 0; }
  int64_t calls() const { return calls_; }
  /// kState if nothing was seen, or if the observer watches nothing.
  virtual QParams qparams() const = 0;

  /// {"observer": …, "calls": …, "min": […], "max": […], "histogram": […]}: to be used again while schemes
  /// change.
  std::string to_json() const;
  /// kCorruptFile with the place.
  static std::unique_ptr<Observer> from_json(std::string_view json);

 protected:
  explicit Observer(ObserverConfig config) : config_(std::move(config)) {}
  virtual void see(const at::Tensor& x) = 0;  ///< float32, contiguous, finite, not empty
  ObserverConfig config_;
  int64_t calls_ = 0;
  at::Tensor min_, max_, histogram_;  ///< undefined if there is none
};

HALFTONE_API std::unique_ptr<Observer> make_observer(const ObserverConfig& config);

/// The numbers for a range: [min, max] of each channel, float32 of one dimension.
HALFTONE_API QParams qparams_of_range(const ObserverConfig& config, const at::Tensor& min,
                                      const at::Tensor& max);

}  // namespace halftone
