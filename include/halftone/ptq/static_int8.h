// Static int8 in one call: prepare, calibrate, convert, lower (ptq.h, lower.h), and the error of each layer.
//
//   const StaticInt8Options options{.mapping = static_int8_mapping({7, 7})};
//   const StaticInt8Result result = quantize_static(*module, calls, options);
//   std::puts(result.to_text().c_str());
//   save_checkpoint(*result.module, "model.ht");
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "halftone/backend/recipes.h"
#include "halftone/base/api.h"
#include "halftone/base/progress.h"
#include "halftone/ptq/lower.h"
#include "halftone/ptq/ptq.h"

namespace halftone {

struct HALFTONE_API StaticInt8Options {
  QConfigMapping mapping = static_int8_mapping();
  BackendConfig backend_config = builtin_backend_config("x86");
  /// PreparedModel::statistics_json() of an earlier run: nothing is calibrated then, and `calls` only serve
  /// to measure errors (one at least, for its sizes).
  std::string statistics;
  size_t error_calls = 2;    ///< calls whose layers are compared with fp32's
  bool require_all = false;  ///< an operation that stays float between quantized ones is an error
  ProgressCallback progress = nullptr;
};

/// The error of the result of one matched pattern, with everything before it quantized too.
struct StaticLayerError {
  std::string layer, pattern, value;
  double cosine = 1;    ///< to fp32's, over all elements
  double noise_db = 0;  ///< power of the difference relative to fp32's: -40 is one percent
};

struct HALFTONE_API StaticInt8Result {
  std::shared_ptr<GraphModule> reference;  ///< explicit quantize and dequantize, float operators
  std::shared_ptr<GraphModule> module;     ///< lowered: what runs
  PtqReport patterns;
  LowerReport lowered;
  std::vector<StaticLayerError> errors;  ///< in order of execution; empty if error_calls is 0
  double cosine = 1;                     ///< the least of the model's floating-point results, lowered to fp32
  int64_t differing_not_finite = 0;  ///< of those: elements that are NaN or infinite in one of the two only
  int64_t calibrated = 0;            ///< calls
  std::string statistics;            ///< for the next run
  /// Patterns by type, layers by their loss (the worst first, `layers` of them at most), what stayed float.
  std::string to_text(size_t layers = 20) const;
  std::string to_json() const;
};

/// `calls`: flat inputs, in the order of input_names(). The module stays as it was. Throws as prepare(),
/// calibrate(), convert() and lower() do; kInvalidArgument without calls.
HALFTONE_API StaticInt8Result quantize_static(const GraphModule& module,
                                              const std::vector<std::vector<c10::IValue>>& calls,
                                              const StaticInt8Options& options = {});

struct StaticInt8BackendConfig {
  StaticInt8Bits bits;
  std::string backend_config = "x86";  ///< a built-in one
  /// A model without convolutions is refused (kUnsupported): int8dq is as fast for it, and needs no data.
  bool only_convolutions = false;
};
/// Calibrates with the samples it is built with, then the halftone compiler. "StaticInt8Backend".
HALFTONE_API std::shared_ptr<const BackendRecipe> static_int8_backend_recipe(
    const StaticInt8BackendConfig& config = {});

}  // namespace halftone
