#include "compiler/executor/pack.h"

#include "kernels/fp32_linear/pack.h"
#include "kernels/fp8_linear/pack.h"
#include "kernels/int4_dynamic_linear/pack.h"
#include "kernels/int4_weight_only_linear/pack.h"
#include "kernels/int8_weight_only_linear/pack.h"
#include "quant/weight/bits.h"
#include "quant/weight/packing_cache.h"

namespace halftone::compiler {

namespace {

struct Int4Parts {
  const at::Tensor& weight;
  const at::Tensor& scale;
  const at::Tensor& zero_point;  ///< may be undefined
  int group;
};

at::Tensor packed_int4(std::string_view kind, const Int4Parts& parts, int tile_n, size_t bytes,
                       void (*pack)(const kernels::Int4Weights&, int, void*)) {
  const int64_t n = parts.weight.size(0), k = 2 * parts.weight.size(1);
  return packed_block(
      {parts.weight, parts.scale, parts.zero_point}, {kind, 1, tile_n, parts.group}, bytes, [&](void* out) {
        const at::Tensor w = unpack_bits(parts.weight, 4, k), s = parts.scale.contiguous();
        const at::Tensor z = parts.zero_point.defined() ? parts.zero_point.contiguous() : at::Tensor();
        pack({w.const_data_ptr<int8_t>(), k, s.const_data_ptr<float>(),
              z.defined() ? z.const_data_ptr<int8_t>() : nullptr, n, k, parts.group},
             tile_n, out);
      });
}

}  // namespace

at::Tensor packed_fp32(const at::Tensor& weight, int tile_n) {
  const int64_t n = weight.size(0), k = weight.size(1);
  return packed_block({weight}, {"fp32_linear", kernels::kFp32PackVersion, tile_n},
                      kernels::fp32_packed_bytes(n, k, tile_n), [&](void* out) {
                        const at::Tensor w = weight.contiguous();
                        kernels::pack_fp32_weights({w.const_data_ptr<float>(), k, n, k}, tile_n, out);
                      });
}

at::Tensor packed_int8(const at::Tensor& weight, const at::Tensor& scale, int weight_bits,
                       kernels::Int8Tile tile) {
  const int64_t n = weight.size(0), k = weight.size(1);
  // A block knows its weight_bits, so blocks of 7 and of 8 bits are two layouts.
  const std::string_view kind = weight_bits == 7 ? "int8_linear_s7" : "int8_linear";
  return packed_block({weight, scale}, {kind, kernels::kInt8PackVersion, tile.n, tile.k},
                      kernels::int8_packed_bytes(n, k, tile), [&](void* out) {
                        const at::Tensor w = weight.contiguous(), s = scale.contiguous();
                        kernels::pack_int8_weights(
                            {w.const_data_ptr<int8_t>(), k, s.const_data_ptr<float>(), n, k, weight_bits},
                            tile, out);
                      });
}

at::Tensor packed_int8_weight_only(const at::Tensor& weight, const at::Tensor& scale, int tile_n) {
  const int64_t n = weight.size(0), k = weight.size(1);
  return packed_block({weight, scale},
                      {"int8_weight_only_linear", kernels::kInt8WeightOnlyPackVersion, tile_n},
                      kernels::int8_weight_only_packed_bytes(n, k, tile_n), [&](void* out) {
                        const at::Tensor w = weight.contiguous(), s = scale.contiguous();
                        kernels::pack_int8_weight_only(
                            {w.const_data_ptr<int8_t>(), k, s.const_data_ptr<float>(), n, k}, tile_n, out);
                      });
}

at::Tensor packed_int4_weight_only(const at::Tensor& weight, const at::Tensor& scale,
                                   const at::Tensor& zero_point, int group, int tile_n) {
  const size_t bytes = kernels::int4_weight_only_packed_bytes(weight.size(0), 2 * weight.size(1), group,
                                                              zero_point.defined(), tile_n);
  return packed_int4("int4_weight_only_linear", {weight, scale, zero_point, group}, tile_n, bytes,
                     kernels::pack_int4_weight_only);
}

at::Tensor packed_int4_dynamic(const at::Tensor& weight, const at::Tensor& scale,
                               const at::Tensor& zero_point, int group, int tile_n) {
  const size_t bytes = kernels::int4_dynamic_packed_bytes(weight.size(0), 2 * weight.size(1), group,
                                                          zero_point.defined(), tile_n);
  return packed_int4("int4_dynamic_linear", {weight, scale, zero_point, group}, tile_n, bytes,
                     kernels::pack_int4_dynamic);
}

at::Tensor packed_fp8(const at::Tensor& weight, const at::Tensor& scale, int tile_n) {
  const int64_t n = weight.size(0), k = weight.size(1);
  return packed_block({weight, scale}, {"fp8_linear", kernels::kFp8PackVersion, tile_n},
                      kernels::fp8_packed_bytes(n, k, tile_n), [&](void* out) {
                        const at::Tensor w = weight.contiguous(), s = scale.contiguous();
                        kernels::Fp8Weights plain;
                        plain.w = static_cast<const uint8_t*>(w.const_data_ptr());
                        plain.stride = plain.k = k;
                        plain.scale = s.const_data_ptr<float>();
                        plain.scale_stride = s.numel() == 1 ? 0 : 1;
                        plain.n = n;
                        plain.format = weight.scalar_type() == at::kFloat8_e5m2
                                           ? kernels::Float8Format::kE5m2
                                           : kernels::Float8Format::kE4m3fn;
                        kernels::pack_fp8_weights(plain, tile_n, out);
                      });
}

}  // namespace halftone::compiler
