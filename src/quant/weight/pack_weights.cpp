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

// The group stands in the layout too: the same parts could be read with another one.
at::Tensor packed_int4(const PackSource& source, int group, int tile_n, size_t bytes,
                       void (*pack)(const kernels::Int4Weights&, int, void*)) {
  return packed_block(source.parts, {source.kind, kInt4LayoutVersion, tile_n, group}, bytes, [&](void* out) {
    const at::Tensor w = source.values(), s = source.scale.contiguous();
    const at::Tensor z = source.zero_point.defined() ? source.zero_point.contiguous() : at::Tensor();
    const int8_t* zeros = z.defined() ? z.const_data_ptr<int8_t>() : nullptr;
    pack({w.const_data_ptr<int8_t>(), source.k, s.const_data_ptr<float>(), zeros, source.n, source.k, group},
         tile_n, out);
  });
}

}  // namespace

at::Tensor packed_fp32(const PackSource& source, int tile_n) {
  const size_t bytes = kernels::fp32_packed_bytes(source.n, source.k, tile_n);
  return packed_block(source.parts, {source.kind, kernels::kFp32PackVersion, tile_n}, bytes, [&](void* out) {
    const at::Tensor w = source.values().contiguous();
    kernels::pack_fp32_weights({w.const_data_ptr<float>(), source.k, source.n, source.k}, tile_n, out);
  });
}

at::Tensor packed_int8_weight_only(const PackSource& source, int tile_n) {
  const size_t bytes = kernels::int8_weight_only_packed_bytes(source.n, source.k, tile_n);
  const PackLayout layout{source.kind, kernels::kInt8WeightOnlyPackVersion, tile_n};
  return packed_block(source.parts, layout, bytes, [&](void* out) {
    const at::Tensor w = source.values(), s = source.scale.contiguous();
    kernels::pack_int8_weight_only(
        {w.const_data_ptr<int8_t>(), source.k, s.const_data_ptr<float>(), source.n, source.k}, tile_n, out);
  });
}

at::Tensor packed_int4_weight_only(const PackSource& source, int group, int tile_n) {
  const size_t bytes =
      kernels::int4_weight_only_packed_bytes(source.n, source.k, group, source.zero_point.defined(), tile_n);
  return packed_int4(source, group, tile_n, bytes, kernels::pack_int4_weight_only);
}

at::Tensor packed_int4_dynamic(const PackSource& source, int group, int tile_n) {
  const size_t bytes =
      kernels::int4_dynamic_packed_bytes(source.n, source.k, group, source.zero_point.defined(), tile_n);
  return packed_int4(source, group, tile_n, bytes, kernels::pack_int4_dynamic);
}

at::Tensor packed_int8(const at::Tensor& weight, const at::Tensor& scale, int weight_bits,
                       kernels::Int8Tile tile) {
  const int64_t n = weight.size(0), k = weight.size(1);
  // A block knows its weight_bits, so blocks of 7 and of 8 bits are two layouts.
  const std::string_view kind = weight_bits == 7 ? "int8_linear_s7" : "int8_linear";
  const PackLayout layout{kind, kernels::kInt8PackVersion, tile.n, tile.k};
  return packed_block({weight, scale}, layout, kernels::int8_packed_bytes(n, k, tile), [&](void* out) {
    const at::Tensor w = weight.contiguous(), s = scale.contiguous();
    kernels::pack_int8_weights({w.const_data_ptr<int8_t>(), k, s.const_data_ptr<float>(), n, k, weight_bits},
                               tile, out);
  });
}

at::Tensor packed_fp8(const at::Tensor& weight, const at::Tensor& scale, int tile_n) {
  const int64_t n = weight.size(0), k = weight.size(1);
  const auto format = weight.scalar_type() == at::kFloat8_e5m2 ? kernels::Float8Format::kE5m2
                                                               : kernels::Float8Format::kE4m3fn;
  const PackLayout layout{"fp8_linear", kernels::kFp8PackVersion, tile_n};
  return packed_block({weight, scale}, layout, kernels::fp8_packed_bytes(n, k, tile_n), [&](void* out) {
    const at::Tensor w = weight.contiguous(), s = scale.contiguous();
    const int64_t scale_stride = s.numel() == 1 ? 0 : 1;  // one for all
    kernels::pack_fp8_weights({static_cast<const uint8_t*>(w.const_data_ptr()), k, s.const_data_ptr<float>(),
                               scale_stride, n, k, format},
                              tile_n, out);
  });
}

at::Tensor packed_bf16(const at::Tensor& weight, int tile_n) {
  const int64_t n = weight.size(0), k = weight.size(1);
  const PackLayout layout{"bf16_linear", kernels::kBf16PackVersion, tile_n};
  return packed_block({weight}, layout, kernels::bf16_packed_bytes(n, k, tile_n), [&](void* out) {
    const at::Tensor w = weight.contiguous();
    kernels::pack_bf16_weights({static_cast<const uint16_t*>(w.const_data_ptr()), k, n, k}, tile_n, out);
  });
}

}  // namespace halftone
