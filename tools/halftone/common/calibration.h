// The calls that a model is calibrated with: files of tensors, cut along their first dimension.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "halftone/graph/graph_module.h"

namespace halftone::cli {

struct CalibrationCalls {
  std::vector<std::vector<c10::IValue>> calls;  ///< flat inputs
  std::vector<std::string> notes;               ///< what was left out, and why
};

/// `files` as collect_inputs reads them. Tensors with as many entries in their first dimension as the file's
/// first tensor are cut into calls of `batch` entries; others, and what is not a tensor, go to every call.
/// batch 0: what the model's sample inputs have, or what its graph is made for. Entries that do not fill a
/// call make a smaller one if the model allows that, else a note. kInvalidArgument if nothing is left.
CalibrationCalls collect_calibration(const GraphModule& module, const std::vector<std::string>& files,
                                     int64_t batch);

}  // namespace halftone::cli
