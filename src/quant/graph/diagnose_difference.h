// The difference of two tensors: the comparison that all commands use.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/quant/diagnose.h"

namespace halftone {

/// Sums over any number of pairs of tensors of the same sizes.
///
/// NaN and infinity: if both have the same (NaN and NaN, inf and inf), they are equal there; if one is
/// not finite and the other is something else, the element *differs*. Sums are over elements that are finite
/// in both.
class Difference {
 public:
  void add(const at::Tensor& expected, const at::Tensor& got);
  double cosine() const;          ///< two that are all zero point in the same direction
  double relative_error() const;  ///< |got - expected| / |expected|, norms; of zeros |got - expected|
  double noise() const { return noise_; }
  int64_t differing() const { return differing_; }
  ErrorMeasure measure() const;

 private:
  double signal_ = 0, other_ = 0, both_ = 0, noise_ = 0, largest_ = 0;
  int64_t differing_ = 0, same_not_finite_ = 0, finite_ = 0;
};

/// For a model that gave two answers to one call: "this model draws random numbers (aten::randn_like): …".
/// That an operator may draw some is not enough to say so: dropout does in training only.
std::string describe_two_answers(const GraphModule& module);

}  // namespace halftone
