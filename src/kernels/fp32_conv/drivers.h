// The drivers of fp32_conv, one for each algorithm: they cut the work, gather pixels and call the functions
// of an instruction set (kernels.h).
#pragma once

#include "kernels/common/workspace.h"
#include "kernels/conv/conv_phases.h"
#include "kernels/fp32_conv/kernels.h"

namespace halftone::kernels {

/// Why an algorithm cannot compute a problem at all, whether or not it would be fast; nullptr if it can.
const char* fp32_conv_cannot(ConvAlgorithm algorithm, const Fp32ConvProblem& problem);

/// Throws kInvalidArgument with that reason.
void check_fp32_conv_fits(const Fp32ConvKernel& kernel, const ConvShape& shape, bool strided_channels);

/// One call, with checked arguments and opened weights.
struct Fp32ConvCall {
  const Fp32ConvKernel& kernel;
  const ConvShape& shape;
  const Fp32ConvArgs& args;
  const float* weights;

  /// The epilogue for channels from `channel` on.
  Fp32ConvTarget target(const int64_t* pixels, int64_t channel, int64_t channels) const;
};

/// Pointers to the input pixels that each tap of output pixels [first, first + count) of a phase reads:
/// rows[tap · count + i], `zeros` where the tap lies outside; and the pixels' output indices.
void gather_pixels(const Fp32ConvCall& call, const ConvPhase& phase, const float* zeros, int64_t first,
                   int64_t count, const float** rows, int64_t* out);

/// The same for rows of taps at once, which are neighbours in memory where all channels of neighbouring
/// pixels are: rows[line · count + i] is [taps in the width][channels]. Lines that begin or end outside are
/// copied to `edges`, which has room for all.
void gather_lines(const Fp32ConvCall& call, const ConvPhase& phase, const float* zeros, int64_t first,
                  int64_t count, const float** rows, int64_t* out, float* edges);

/// Whether gather_lines may be used.
bool conv_lines_are_neighbours(const Fp32ConvCall& call, const ConvPhase& phase);

/// A row of the input, counted over images, depths and heights, to dense channels last.
void copy_channels_last(const Fp32ConvCall& call, int64_t row, float* dense);

/// The same pixels' patches, copied: [count][taps of the phase][channels of the group], any strides.
void gather_patches(const Fp32ConvCall& call, const ConvPhase& phase, int64_t group, int64_t first,
                    int64_t count, float* patches);

/// Each counts (with a Workspace that only counts) or takes what its run needs.
void fp32_conv_gemm_space(const Fp32ConvKernel& kernel, const ConvShape& shape, int threads,
                          Workspace& space);
void run_fp32_conv_gemm(const Fp32ConvCall& call, Workspace& space, ParallelFor& parallel_for);

void fp32_conv_depthwise_space(const ConvShape& shape, int threads, Workspace& space);
void run_fp32_conv_depthwise(const Fp32ConvCall& call, Workspace& space, ParallelFor& parallel_for);

void fp32_conv_winograd_space(const Fp32ConvKernel& kernel, const ConvShape& shape, int threads,
                              Workspace& space);
void run_fp32_conv_winograd(const Fp32ConvCall& call, Workspace& space, ParallelFor& parallel_for);

}  // namespace halftone::kernels
