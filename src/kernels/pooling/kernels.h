// The kernels of pooling, one file for each instruction set. Contract: pooling.h.
#pragma once

#include "kernels/pooling/pooling.h"

namespace halftone::kernels {

void pool_max_scalar(const PoolPatch& patch);
void pool_mean_scalar(const PoolPatch& patch);
void pool_max_avx2(const PoolPatch& patch);
void pool_mean_avx2(const PoolPatch& patch);

}  // namespace halftone::kernels
