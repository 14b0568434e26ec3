#include "quant/weight/pack_weights.h"

#include "kernels/bf16_linear/pack.h"
#include "kernels/fp32_linear/pack.h"
#include "kernels/fp8_linear/pack.h"
#include "kernels/int4_dynamic_linear/pack.h"
#include "kernels/int4_weight_only_linear/pack.h"
#include "kernels/int8_weight_only_linear/pack.h"
#include "quant/weight/packing_cache.h"

namespace halftone {
namespace {

// Of the int4 kernels' blocks, which check their own.
constexpr int kInt4LayoutVersion = 1;

/// packed_block() of n channels in panels of tile_n. `with_rows(first, count, use)` calls use(weights) with
/// the kernel's view of those channels; all of them are packed, those of the last panel are checked.
template <typename WithRows, typename Pack, typename Check>
at::Tensor packed_rows(const std::vector<at::Tensor>& parts, const PackLayout& layout, size_t bytes,
                       int64_t n, WithRows with_rows, Pack pack, Check check) {
  const auto pack_all = [&](void* out) {
    with_rows(int64_t{0}, n, [&](const auto& weights) { pack(weights, out); });
  };
  const auto check_last = [&](const void* block) {
    const int64_t first = kernels::last_packed_panel(n, layout.tile_n);
    with_rows(first, n - first, [&](const auto& weights) { check(weights, block); });
  };
  return packed_block(parts, layout, bytes, pack_all, CheckFunction(check_last));
}

/// Rows of a part that has one for each channel, contiguous.
at::Tensor rows_of(const at::Tensor& part, int64_t first, int64_t count) {
  return part.narrow(0, first, count).contiguous();
}

kernels::Int4ZeroPoints int4_zero_points(const PackSource& source) {
  if (!source.zero_point.defined()) return kernels::Int4ZeroPoints::kNone;
  return source.zero_point.scalar_type() == at::kFloat ? kernels::Int4ZeroPoints::kFloats
                                                       : kernels::Int4ZeroPoints::kIntegers;
}

// The group stands in the layout too: the same parts could be read with another one.
template <typename Pack, typename Check>
at::Tensor packed_int4(const PackSource& source, int group, int tile_n, size_t bytes, Pack pack,
                       Check check) {
  const PackLayout layout{source.kind, kInt4LayoutVersion, tile_n, group};
  const auto with_rows = [&](int64_t first, int64_t count, auto use) {
    const at::Tensor w = source.values(first, count), s = rows_of(source.scale, first, count);
    const at::Tensor z =
        source.zero_point.defined() ? rows_of(source.zero_point, first, count) : at::Tensor();
    kernels::Int4Weights weights{
        w.const_data_ptr<int8_t>(), source.k, s.const_data_ptr<float>(), nullptr, count, source.k, group};
    if (z.defined() && z.scalar_type() == at::kFloat) {
      weights.float_zero_point = z.const_data_ptr<float>();
    } else if (z.defined()) {
      weights.zero_point = z.const_data_ptr<int8_t>();
    }
    use(weights);
  };
  return packed_rows(
      source.parts, layout, bytes, source.n, with_rows,
      [&](const auto& weights, void* out) { pack(weights, tile_n, out); },
      [&](const auto& weights, const void* block) { check(weights, source.n, tile_n, block); });
}

}  // namespace

at::Tensor packed_fp32(const PackSource& source, int tile_n) {
  const auto with_rows = [&](int64_t first, int64_t count, auto use) {
    const at::Tensor w = source.values(first, count).contiguous();
    use(kernels::Fp32Weights{w.const_data_ptr<float>(), source.k, count, source.k});
  };
  return packed_rows(
      source.parts, {source.kind, kernels::kFp32PackVersion, tile_n},
      kernels::fp32_packed_bytes(source.n, source.k, tile_n), source.n, with_rows,
      [&](const auto& weights, void* out) { kernels::pack_fp32_weights(weights, tile_n, out); },
      [&](const auto& last, const void* block) {
        kernels::check_fp32_packed(last, source.n, tile_n, block);
      });
}

at::Tensor packed_int8_weight_only(const PackSource& source, int tile_n) {
  const auto with_rows = [&](int64_t first, int64_t count, auto use) {
    const at::Tensor w = source.values(first, count), s = rows_of(source.scale, first, count);
    use(kernels::Int8WeightOnlyWeights{w.const_data_ptr<int8_t>(), source.k, s.const_data_ptr<float>(), count,
                                       source.k});
  };
  return packed_rows(
      source.parts, {source.kind, kernels::kInt8WeightOnlyPackVersion, tile_n},
      kernels::int8_weight_only_packed_bytes(source.n, source.k, tile_n), source.n, with_rows,
      [&](const auto& weights, void* out) { kernels::pack_int8_weight_only(weights, tile_n, out); },
      [&](const auto& last, const void* block) {
        kernels::check_int8_weight_only_packed(last, source.n, tile_n, block);
      });
}

at::Tensor packed_int4_weight_only(const PackSource& source, int group, int tile_n) {
  const size_t bytes =
      kernels::int4_weight_only_packed_bytes(source.n, source.k, group, int4_zero_points(source), tile_n);
  return packed_int4(source, group, tile_n, bytes, kernels::pack_int4_weight_only,
                     kernels::check_int4_weight_only_packed);
}

at::Tensor packed_int4_dynamic(const PackSource& source, int group, int tile_n) {
  const size_t bytes =
      kernels::int4_dynamic_packed_bytes(source.n, source.k, group, int4_zero_points(source), tile_n);
  return packed_int4(source, group, tile_n, bytes, kernels::pack_int4_dynamic,
                     kernels::check_int4_dynamic_packed);
}

at::Tensor packed_int8(const at::Tensor& weight, const at::Tensor& scale, int weight_bits,
                       kernels::Int8Tile tile) {
  const int64_t n = weight.size(0), k = weight.size(1);
  // A block knows its weight_bits, so blocks of 7 and of 8 bits are two layouts.
  const std::string_view kind = weight_bits == 7 ? "int8_linear_s7" : "int8_linear";
  const auto with_rows = [&](int64_t first, int64_t count, auto use) {
    const at::Tensor w = rows_of(weight, first, count), s = rows_of(scale, first, count);
    use(kernels::Int8Weights{w.const_data_ptr<int8_t>(), k, s.const_data_ptr<float>(), count, k,
                             weight_bits});
  };
  return packed_rows(
      {weight, scale}, {kind, kernels::kInt8PackVersion, tile.n, tile.k},
      kernels::int8_packed_bytes(n, k, tile), n, with_rows,
      [&](const auto& weights, void* out) { kernels::pack_int8_weights(weights, tile, out); },
      [&](const auto& last, const void* block) { kernels::check_int8_packed(last, n, tile, block); });
}

at::Tensor packed_fp8(const at::Tensor& weight, const at::Tensor& scale, int tile_n) {
  const int64_t n = weight.size(0), k = weight.size(1);
  const auto format = weight.scalar_type() == at::kFloat8_e5m2 ? kernels::Float8Format::kE5m2
                                                               : kernels::Float8Format::kE4m3fn;
  const auto with_rows = [&](int64_t first, int64_t count, auto use) {
    const bool one = scale.numel() == 1;  // for all
    const at::Tensor w = rows_of(weight, first, count),
                     s = one ? scale.contiguous() : rows_of(scale, first, count);
    use(kernels::Fp8Weights{static_cast<const uint8_t*>(w.const_data_ptr()), k, s.const_data_ptr<float>(),
                            one ? 0 : 1, count, k, format});
  };
  return packed_rows(
      {weight, scale}, {"fp8_linear", kernels::kFp8PackVersion, tile_n},
      kernels::fp8_packed_bytes(n, k, tile_n), n, with_rows,
      [&](const auto& weights, void* out) { kernels::pack_fp8_weights(weights, tile_n, out); },
      [&](const auto& last, const void* block) { kernels::check_fp8_packed(last, n, tile_n, block); });
}

at::Tensor packed_bf16(const at::Tensor& weight, int tile_n) {
  const int64_t n = weight.size(0), k = weight.size(1);
  const auto with_rows = [&](int64_t first, int64_t count, auto use) {
    const at::Tensor w = rows_of(weight, first, count);
    use(kernels::Bf16Weights{static_cast<const uint16_t*>(w.const_data_ptr()), k, count, k});
  };
  return packed_rows(
      {weight}, {"bf16_linear", kernels::kBf16PackVersion, tile_n}, kernels::bf16_packed_bytes(n, k, tile_n),
      n, with_rows, [&](const auto& weights, void* out) { kernels::pack_bf16_weights(weights, tile_n, out); },
      [&](const auto& last, const void* block) { kernels::check_bf16_packed(last, n, tile_n, block); });
}

}  // namespace halftone
