// The error of each layer of a statically quantized model against the float model.
#pragma once

#include <vector>

#include "halftone/ptq/static_int8.h"

namespace halftone {

/// `prepared`: the fused float module, whose values have the names that the reports use. `reference`: what
/// convert() made of it. Runs both on every call. Values that the reference graph does not compute in
/// floating point are left out.
std::vector<StaticLayerError> static_layer_errors(const std::shared_ptr<const GraphModule>& prepared,
                                                  const std::shared_ptr<const GraphModule>& reference,
                                                  const PtqReport& report,
                                                  const std::vector<std::vector<c10::IValue>>& calls);

struct ResultErrors {
  double min_cosine = 1;             ///< over the floating-point results of the calls
  int64_t differing_not_finite = 0;  ///< elements, as in ErrorMeasure
};
ResultErrors compare_results(const std::vector<std::vector<c10::IValue>>& exact,
                             const std::vector<std::vector<c10::IValue>>& quantized);

}  // namespace halftone
