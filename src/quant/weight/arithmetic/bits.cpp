#include "quant/weight/arithmetic/bits.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

namespace halftone {
namespace {

// bits · values is a whole number of bytes.
struct Cycle {
  int values;
  int bytes;
};
Cycle cycle_of(int bits) {
  int values = 1;
  while (values * bits % 8 != 0) values *= 2;
  return {values, values * bits / 8};
}

}  // namespace

at::Tensor pack_bits(const at::Tensor& q, int bits) {
  const int64_t n = q.size(0), k = q.size(1), row = (k * bits + 7) / 8;
  const at::Tensor source = q.contiguous();
  at::Tensor packed = at::zeros({n, row}, at::kByte);
  const int8_t* from = source.const_data_ptr<int8_t>();
  uint8_t* to = packed.mutable_data_ptr<uint8_t>();
  const unsigned mask = (1u << bits) - 1;
  for (int64_t r = 0; r < n; ++r, from += k, to += row) {
    for (int64_t i = 0; i < k; ++i) {
      const int64_t bit = i * bits;
      const unsigned value = (static_cast<unsigned>(from[i]) & mask) << (bit % 8);
      to[bit / 8] = static_cast<uint8_t>(to[bit / 8] | value);
      if (value > 0xff) to[bit / 8 + 1] = static_cast<uint8_t>(to[bit / 8 + 1] | value >> 8);
    }
  }
  return packed;
}

at::Tensor unpack_bits(const at::Tensor& packed, int bits, const c10::SymInt& k) {
  const Cycle cycle = cycle_of(bits);
  const c10::SymInt cycles = (k + (cycle.values - 1)) / cycle.values;
  // The last cycle of a row may be short: zeros fill it up.
  const c10::SymInt missing = cycles * cycle.bytes - packed.sym_size(1);
  const at::Tensor bytes = at::constant_pad_nd_symint(packed, {0, missing}, 0)
                               .to(at::kShort)
                               .reshape_symint({packed.sym_size(0), cycles, cycle.bytes});
  std::vector<at::Tensor> values;
  for (int i = 0; i < cycle.values; ++i) {
    const int bit = i * bits, first = bit / 8, shift = bit % 8;
    at::Tensor value = bytes.select(2, first).bitwise_right_shift(shift);
    if (shift + bits > 8) value = value.bitwise_or(bytes.select(2, first + 1).bitwise_left_shift(8 - shift));
    const int sign = 1 << (bits - 1);
    // Two's complement of few bits: (v ^ sign) - sign.
    values.push_back(value.bitwise_and((1 << bits) - 1).bitwise_xor(sign).sub(sign));
  }
  return at::stack(values, 2)
      .reshape_symint({packed.sym_size(0), cycles * cycle.values})
      .narrow_symint(1, 0, k)
      .to(at::kChar)
      .contiguous();
}

}  // namespace halftone
