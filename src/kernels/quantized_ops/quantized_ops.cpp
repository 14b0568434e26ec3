#include "kernels/quantized_ops/quantized_ops.h"

#include <algorithm>
#include <cstring>

#include "base/errors.h"
#include "kernels/common/kernel_table.h"
#include "kernels/quantized_ops/checks.h"
#include "kernels/quantized_ops/kernels.h"

namespace halftone::kernels {
namespace {

const char* take_any_ops(const QuantizedOpsProblem&) {
  return nullptr;
}

constexpr QuantizedOpsKernel kQuantizedOpsTable[] = {
#if defined(HALFTONE_X86)
    {"quantized_ops_u8_32_avx2", Isa::kAvx2, take_any_ops, quantize_avx2, dequantize_avx2, requantize_avx2,
     quantized_add_avx2, quantized_mul_avx2, quantized_clamp_avx2, quantized_lookup_avx2,
     quantize_to_channels_last_avx2, quantized_max_pool_avx2, quantized_average_pool_avx2,
     quantized_lerp_avx2},
#endif
    {"quantized_ops_u8_1_scalar", Isa::kScalar, take_any_ops, quantize_scalar, dequantize_scalar,
     requantize_scalar, quantized_add_scalar, quantized_mul_scalar, quantized_clamp_scalar,
     quantized_lookup_scalar, quantize_to_channels_last_scalar, quantized_max_pool_scalar,
     quantized_average_pool_scalar, quantized_lerp_scalar},
};

constexpr int64_t kQuantizedPiece = 32768;  // bytes: a few microseconds

void split_elements(const char* operation, int64_t count, ParallelFor& parallel_for,
                    const std::function<void(int64_t at, int64_t count)>& piece) {
  if (count < 0) fail(ErrorCode::kInvalidArgument, "{}: negative count {}", operation, count);
  parallel_for.run((count + kQuantizedPiece - 1) / kQuantizedPiece, [&](int64_t i, int) {
    piece(i * kQuantizedPiece, std::min(kQuantizedPiece, count - i * kQuantizedPiece));
  });
}

QuantizedPair pair_at(QuantizedPair pair, int64_t at) {
  pair.a += at;
  pair.b += at;
  return pair;
}

void check_pair(const char* operation, const QuantizedPair& pair, const QuantTarget& target) {
  check_quant_target(operation, target);
  check_quant_params(operation, pair.a_params, target.is_signed);
  check_quant_params(operation, pair.b_params, target.is_signed);
}

}  // namespace

std::span<const QuantizedOpsKernel> quantized_ops_kernels() {
  return kQuantizedOpsTable;
}

const QuantizedOpsKernel& choose_quantized_ops(Isa isa) {
  return choose_kernel(quantized_ops_kernels(), QuantizedOpsProblem{}, isa);
}

void quantize_all(const QuantizedOpsKernel& kernel, const float* x, uint8_t* y, int64_t count,
                  const QuantTarget& target, ParallelFor& parallel_for) {
  check_quant_target("quantize", target);
  split_elements("quantize", count, parallel_for,
                 [&](int64_t at, int64_t n) { kernel.quantize(x + at, y + at, n, target); });
}

void dequantize_all(const QuantizedOpsKernel& kernel, const uint8_t* x, float* y, int64_t count,
                    const QuantParams& params, bool is_signed, ParallelFor& parallel_for) {
  check_quant_params("dequantize", params, is_signed);
  split_elements("dequantize", count, parallel_for,
                 [&](int64_t at, int64_t n) { kernel.dequantize(x + at, y + at, n, params, is_signed); });
}

void quantized_add(const QuantizedOpsKernel& kernel, const QuantizedPair& pair, uint8_t* y, int64_t count,
                   const QuantTarget& target, ParallelFor& parallel_for) {
  check_pair("quantized add", pair, target);
  split_elements("quantized add", count, parallel_for,
                 [&](int64_t at, int64_t n) { kernel.add(pair_at(pair, at), y + at, n, target); });
}

void quantized_mul(const QuantizedOpsKernel& kernel, const QuantizedPair& pair, uint8_t* y, int64_t count,
                   const QuantTarget& target, ParallelFor& parallel_for) {
  check_pair("quantized mul", pair, target);
  split_elements("quantized mul", count, parallel_for,
                 [&](int64_t at, int64_t n) { kernel.mul(pair_at(pair, at), y + at, n, target); });
}

void quantized_clamp(const QuantizedOpsKernel& kernel, const uint8_t* x, uint8_t* y, int64_t count,
                     uint8_t lo, uint8_t hi, ParallelFor& parallel_for) {
  if (lo > hi) fail(ErrorCode::kInvalidArgument, "quantized clamp: the limits are {} and {}", lo, hi);
  split_elements("quantized clamp", count, parallel_for,
                 [&](int64_t at, int64_t n) { kernel.clamp(x + at, y + at, n, lo, hi); });
}

void quantized_lookup(const QuantizedOpsKernel& kernel, const uint8_t* x, uint8_t* y, int64_t count,
                      const uint8_t* table, ParallelFor& parallel_for) {
  split_elements("quantized lookup", count, parallel_for,
                 [&](int64_t at, int64_t n) { kernel.lookup(x + at, y + at, n, table); });
}

void make_quantized_table(const std::function<float(float)>& function, const QuantParams& from,
                          const QuantTarget& to, uint8_t* table) {
  check_quant_params("quantized table", from, to.is_signed);
  check_quant_target("quantized table", to);
  for (int q = 0; q < 256; ++q) {
    const auto byte = static_cast<uint8_t>(q);
    float x = 0.0f;
    dequantize_scalar(&byte, &x, 1, from, to.is_signed);
    x = function(x);
    quantize_scalar(&x, table + q, 1, to);
  }
}

void requantize_rows(const QuantizedOpsKernel& kernel, const RequantizeRows& rows, const QuantParams& from,
                     const QuantTarget& to, ParallelFor& parallel_for) {
  check_quant_params("requantize", from, to.is_signed);
  check_quant_target("requantize", to);
  if (rows.rows < 0 || rows.count < 0 ||
      (rows.rows > 1 && std::min(rows.x_stride, rows.y_stride) < rows.count))
    fail(ErrorCode::kInvalidArgument, "requantize: {} rows of {} elements, {} and {} apart", rows.rows,
         rows.count, rows.x_stride, rows.y_stride);
  const bool whole_range = to.is_signed ? to.lo == -128 && to.hi == 127 : to.lo == 0 && to.hi == 255;
  const bool copy = from == to.params && whole_range;
  const int64_t each = std::max<int64_t>(1, kQuantizedPiece / std::max<int64_t>(1, rows.count));
  parallel_for.run((rows.rows + each - 1) / each, [&](int64_t t, int) {
    for (int64_t r = t * each; r < std::min(rows.rows, (t + 1) * each); ++r) {
      const uint8_t* x = rows.x + r * rows.x_stride;
      uint8_t* y = rows.y + r * rows.y_stride;
      if (!copy) {
        kernel.requantize(x, y, rows.count, from, to);
      } else if (x != y) {
        std::memcpy(y, x, static_cast<size_t>(rows.count));
      }
    }
  });
}

}  // namespace halftone::kernels
