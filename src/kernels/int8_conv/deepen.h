// Finding the depth of packed panels, and taking out what stands in its way. See pack.h.
#pragma once

#include "kernels/int8_conv/pack.h"

namespace halftone::kernels {

/// Fills depth, extras, extra_quads and extra_weights of a block under construction, and rewrites its panels.
/// Where some panel has no safe depth, leaves all panels as they are, with depth 0, and returns false.
bool deepen_panels(const Int8ConvPacked& packed, Int8ConvTile tile, int64_t panels, int activation_bits);

}  // namespace halftone::kernels
