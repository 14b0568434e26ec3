// A stored weight as integers with scales.
#pragma once

#include <ATen/core/Tensor.h>

#include "halftone/ptq/observer.h"

namespace halftone::ptq {

struct IntegerWeight {
  at::Tensor values;  ///< int8 or uint8, the weight's shape
  QParams qparams;    ///< one element, or one for each element of `axis`
  std::optional<int64_t> axis;
  std::pair<int64_t, int64_t> range;  ///< of `values`
};

/// Observes the weight with the qconfig's observer and rounds it as torch.ao does. `whole_dtype`: values may
/// leave the observer's range for the dtype's, as there. kInvalidArgument for NaN and empty weights.
IntegerWeight quantize_stored_weight(const at::Tensor& weight, const ObserverConfig& config,
                                     bool whole_dtype);

/// uint8 or int8.
c10::ScalarType storage_type(ConfigDType dtype);
/// [least, largest] that quantized values may take.
std::pair<int64_t, int64_t> value_range(const ObserverConfig& config, bool whole_dtype);

}  // namespace halftone::ptq
