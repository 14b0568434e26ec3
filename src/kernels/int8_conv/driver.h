// Cuts one call of int8_conv into tasks, with the scratch memory that it needs.
#pragma once

#include "kernels/common/row_blocks.h"
#include "kernels/common/workspace.h"
#include "kernels/int8_conv/kernels.h"
#include "kernels/int8_conv/sources.h"

namespace halftone::kernels {

/// The cut. A task is some panels of one group times some blocks of pixels of one phase.
struct Int8ConvPlan {
  Int8ConvPlan(const Int8ConvKernel& kernel, const Int8ConvProblem& problem, int threads);

  Int8ConvPacked packed;  ///< sizes only
  bool split;             ///< the kernel may want split rows; a packed block says whether it does
  int rows;               ///< pixels of a block
  int64_t phases = 1;
  int64_t pixels = 0;       ///< of the largest phase
  int64_t chunks = 1;       ///< of pixels
  int64_t chunk_rows = 0;   ///< pixels of the largest chunk, padded to whole blocks
  int64_t panel_parts = 1;  ///< of a group's panels
  int64_t taps = 1;         ///< pointers for each pixel
  int64_t patch_bytes = 0;  ///< from one copied patch to the next, slack included
  int64_t pixel_bytes = 0;  ///< of an input pixel: of one group, split or not

  /// Of one thread: a chunk, and a block of plain patches.
  int64_t patches_bytes() const { return (chunk_rows + rows) * patch_bytes; }
  int64_t tasks() const { return phases * packed.groups * chunks * panel_parts; }
};

/// The pieces of the workspace, in the order they are taken.
struct Int8ConvScratch {
  Int8ConvScratch(const Int8ConvPlan& plan, const Int8ConvProblem& problem, int threads, Workspace& space);

  float* multiplier;  ///< [groups][group_columns]
  float* offset;
  uint8_t* zero;   ///< a pixel of zero points, behind kSplitFront bytes
  uint8_t* split;  ///< [pixels of the input][groups][pixel_bytes]
  // For each thread:
  const uint8_t** pointers;  ///< [chunk_rows][taps]
  int64_t* pixel;            ///< [chunk_rows]
  int32_t* start;            ///< [group_columns]
  int32_t* tap;              ///< [taps]
  uint8_t* patches;          ///< patches_bytes()
};

void run_int8_conv(const Int8ConvKernel& kernel, const Int8ConvProblem& problem, const Int8ConvArgs& args,
                   const Int8ConvPacked& weights, ParallelFor& parallel_for);

}  // namespace halftone::kernels
