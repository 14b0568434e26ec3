// The tensors of a decoder's GGUF file as weights.
#pragma once

#include "decoder/model.h"
#include "halftone/base/progress.h"

namespace halftone {

/// All of them as float32. Throws kCorruptFile with a list of what is missing, what nothing asked for and what has
/// another shape than the config says; kUnsupported for types of tensors that cannot be read.
DecoderWeights read_decoder_weights(const GgufReader& file, const DecoderConfig& config,
                                    const ProgressCallback& progress = nullptr);

}  // namespace halftone
