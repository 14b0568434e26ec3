#include "kernels/embedding_rows/pack.h"

#include "base/errors.h"

namespace halftone::kernels {

void pack_int4_rows(const int8_t* q, int64_t stride, int64_t rows, int64_t width, uint8_t* bytes) {
  const int64_t row_bytes = (width + 1) / 2;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < width; ++c) {
      const int value = q[r * stride + c];
      if (value < -8 || value > 7) {
        fail(ErrorCode::kInvalidArgument, "embedding_rows: row {} column {} is {}, outside [-8, 7]", r, c,
             value);
      }
      uint8_t& byte = bytes[r * row_bytes + c / 2];
      byte = c % 2 == 0 ? static_cast<uint8_t>(value & 15) : static_cast<uint8_t>(byte | (value & 15) << 4);
    }
  }
}

}  // namespace halftone::kernels
