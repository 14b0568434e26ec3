// The kernels of embedding_rows, one file for each instruction set. Contract: embedding_rows.h.
#pragma once

#include "kernels/embedding_rows/embedding_rows.h"

namespace halftone::kernels {

void embedding_run_scalar(const EmbeddingRun& run);
void embedding_run_avx2(const EmbeddingRun& run);

}  // namespace halftone::kernels
