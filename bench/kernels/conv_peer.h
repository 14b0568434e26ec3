// The peer of conv_resnet50: at::conv2d if it is built with torch, else none.
#pragma once

#include <functional>
#include <memory>

#include "cpu/parallel_for.h"
#include "kernels/conv/conv_shape.h"

namespace halftone::bench {

/// One call of the peer for a layer with bias (and a residual and relu, as separate calls that work in
/// place), with weights of its own; empty if there is no peer.
std::function<void()> conv_peer(const kernels::ConvShape& shape, bool relu, bool residual);

/// On the peer's threads, so that the two do not fight for the cores.
std::unique_ptr<ParallelFor> conv_parallel_for(int threads);

}  // namespace halftone::bench
