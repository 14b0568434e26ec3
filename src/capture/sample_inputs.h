// The sample inputs in a .pt2 file, flattened in the order of the user inputs.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include "capture/pt2_archive.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

/// Empty if the file has none. If they hold more than data, or the pickle is of a kind that cannot be
/// read without Python, a note says so. Tensors are copies: a model that mutates its inputs must not change
/// the samples of the next call.
std::vector<c10::IValue> read_sample_inputs(Pt2Context& context, const Pt2Archive& archive,
                                            const CallSpec& call);

}  // namespace halftone
