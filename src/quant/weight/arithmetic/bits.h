// Integers of 2 to 8 bits, densely packed: the first one lowest, two's complement, each row filled up to
// whole bytes.
//
//   row of k integers -> ceil(k · bits / 8) bytes; integer i stands in bits [i · bits, (i + 1) · bits) of the
//   row, where bit b is bit b % 8 of byte b / 8. With 4 bits: the low half of a byte is the even k.
#pragma once

#include <ATen/core/Tensor.h>

namespace halftone {

/// Bytes of a row.
inline c10::SymInt packed_row_bytes(const c10::SymInt& k, int64_t bits) {
  return (k * bits + 7) / 8;
}

/// q: int8 [n, k] whose values fit. uint8 [n, ceil(k · bits / 8)].
at::Tensor pack_bits(const at::Tensor& q, int bits);

/// int8 [n, k] again. Made of ATen operators only: also for meta tensors.
at::Tensor unpack_bits(const at::Tensor& packed, int bits, const c10::SymInt& k);

}  // namespace halftone
