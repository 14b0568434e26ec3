// optimize_ctx(): wraps the iteration of a benchmark, so that the model is quantized once before it.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "halftone/backend/backend.h"
#include "halftone/base/api.h"
#include "halftone/quant/quantize.h"
#include "halftone/tune/autoquant.h"

namespace halftone {

/// The inputs of a model: a tuple of arguments, or a dict of them by name.
using ExampleInputs = std::variant<std::vector<c10::IValue>, std::map<std::string, c10::IValue>>;

/// One iteration of a benchmark: calls the model and returns its result.
using ModelIterFn = std::function<c10::IValue(const ModelSource& model, const ExampleInputs& example_inputs)>;

struct OptimizeCtxOptions {
  /// A C++ module is called by position: names of its arguments in order, for inputs that are a dict. The
  /// last ones may be missing in a dict. Captured graphs know their names.
  std::vector<std::string> argument_names;
  /// Only layers for which it is true are quantized, as in QuantizeOptions; "autoquant" does not ask it.
  std::function<bool(const LayerInfo&)> filter = nullptr;
  AutoquantOptions autoquant;  ///< error_on_unseen is always off, as in the benchmarks that this is after
  std::function<void(const QuantizeReport&)> on_quantized = nullptr;     ///< what quantize_ did
  std::function<void(const AutoquantPlan&)> on_autoquantized = nullptr;  ///< what autoquant decided
};

/// "int8dynamic", "int8weightonly", "int4weightonly", "autoquant", "noquant".
HALFTONE_API const std::vector<std::string>& optimize_ctx_names();

/// The function that it gives wraps a ModelIterFn: a call quantizes the model in place unless it carries the
/// mark, sets the mark, then calls the wrapped function. The mark belongs to the model and is the same for
/// every context: a model is quantized once, by the first context that sees it ("noquant" marks too). It does
/// not keep the model alive and is removed with it. Calls from several threads quantize once; concurrent
/// ones wait. On an error there is no mark, and the model is as it was.
///
/// "autoquant" calibrates with the inputs of that call; a model without quantizable layers is
/// kInvalidArgument, "NotAutoquantizable: …" with its type. kInvalidArgument here for an unknown name, with
/// the nearest.
HALFTONE_API std::function<ModelIterFn(ModelIterFn)> optimize_ctx(std::string_view quantization,
                                                                  OptimizeCtxOptions options = {});

/// The name of the context that marked the model; nothing if there is no mark.
HALFTONE_API std::optional<std::string> quantization_mark(const ModelSource& model);

/// Calls the model: a C++ module by position, `argument_names` as above; a graph in a session of its own.
/// kInvalidArgument for names that the model does not have, with the nearest, and for arguments that are
/// missing.
HALFTONE_API c10::IValue call_model(const ModelSource& model, const ExampleInputs& example_inputs,
                                    const std::vector<std::string>& argument_names = {});

}  // namespace halftone
