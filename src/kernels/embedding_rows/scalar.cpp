// embedding_rows in plain C++, for every machine: the reference of the other kernels.
#include "kernels/embedding_rows/kernels.h"

namespace halftone::kernels {
namespace {

int integer_at(const EmbeddingRun& run, int64_t c) {
  if (run.format == EmbeddingFormat::kInt8) return static_cast<int8_t>(run.q[c]);
  const int nibble = c % 2 == 0 ? run.q[c / 2] & 15 : run.q[c / 2] >> 4;
  return (nibble ^ 8) - 8;  // two's complement of four bits
}

}  // namespace

void embedding_run_scalar(const EmbeddingRun& run) {
  for (int64_t c = 0; c < run.width; ++c) {
    const float y = static_cast<float>(integer_at(run, c) - run.zero_point) * run.scale;
    if (run.type == OutputType::kBFloat16) {
      static_cast<uint16_t*>(run.out)[c] = to_bfloat16(y);
    } else {
      static_cast<float*>(run.out)[c] = y;
    }
  }
}

}  // namespace halftone::kernels
