// Compares a candidate's answers with eager's.
#pragma once

#include <ATen/core/ivalue.h>

#include "halftone/tune/tune.h"

namespace halftone {

/// Adds up what every validated call says.
class AccuracyCount {
 public:
  /// kInternal, naming the output, where the answers differ in nesting, sizes or dtypes.
  void add(const c10::IValue& expected, const c10::IValue& got, const TuneMetric& metric);
  Accuracy result() const;

 private:
  void add_tensor(const at::Tensor& expected, const at::Tensor& got, size_t index);
  Accuracy worst_{1, 0, 0, 0, {}};
  double cosines_ = 0;
  size_t outputs_ = 0;
};

}  // namespace halftone
