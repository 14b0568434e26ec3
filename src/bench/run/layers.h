// Times of the layers of a compiled model, and their errors from quantization.
#pragma once

#include "bench/run/candidate.h"
#include "halftone/bench/bench.h"

namespace halftone {

/// Fills layers and plan of the row. Nothing if another backend than Halftone's runs.
///
/// A layer's time is that of all its steps. Its error is 1 - cosine of its output in the quantized graph to
/// its output in fp32: what the layers before it did counts too.
void describe_layers(BenchRow& row, BenchModel& model, const InferenceCandidate& candidate);

}  // namespace halftone
