// The state of one prepared weight, as a submodule of its layer: the ranges that were observed or the scales
// that are learned, and how the weight and the activations before it are rounded with them.
#pragma once

#include <torch/nn/module.h>

#include <optional>
#include <string>

#include "halftone/quant/qat.h"
#include "halftone/quant/weight_format.h"
#include "quant/fake_quantize/affine_scheme.h"

namespace halftone {

/// Everything that a call decides from its state is decided by tensors, so that a compiled call does as eager
/// does.
class FakeQuantizer : public torch::nn::Module {
 public:
  /// weight: [n, k]. Its range is the first that is seen.
  FakeQuantizer(AffineScheme scheme, const QatOptions& options, const at::Tensor& weight, std::string layer);

  const std::string& layer() const { return layer_; }
  const QuantConfig& config() const { return scheme_.config; }

  /// Rows [first, first + rows.size(0)) of the weight, in their type. In training they are observed.
  at::Tensor weight(const at::Tensor& rows, int64_t first);
  /// What the layer's product gets in place of x.
  at::Tensor activations(const at::Tensor& x) const;

  void freeze();
  /// The weight with the scales that training would use now.
  QuantizedWeight quantized(const at::Tensor& weight) const;

 private:
  struct Scales {
    at::Tensor scale, zero_point;  ///< zero_point is undefined where the scheme is symmetric
  };
  struct Ranges {
    at::Tensor low, high;
  };
  Ranges ranges_of(const at::Tensor& rows) const;
  /// Of these rows, by the state and the present range; the state stays as it is.
  Ranges used_ranges(const at::Tensor& rows, int64_t first) const;
  void remember(const Ranges& ranges, int64_t first);
  Scales scales_of(const Ranges& ranges) const;
  at::Tensor learned_scale(int64_t first, int64_t count) const;

  AffineScheme scheme_;
  QatScales kind_;
  double averaging_constant_;
  double scale_gradient_;
  std::string layer_;
  at::Tensor min_val_, max_val_, steps_, freeze_at_;  // buffers
  at::Tensor scale_;                                  // a parameter, of kLearned only
};

}  // namespace halftone
