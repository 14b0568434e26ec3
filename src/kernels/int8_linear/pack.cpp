#include "kernels/int8_linear/pack.h"

#include "base/errors.h"
#include "kernels/int8_linear/int8_linear.h"

namespace halftone::kernels {
namespace {

constexpr PackedKind kKind{"int8_linear", "htint8w", kInt8PackVersion};

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Scales and sums together, so that the panels stay aligned whatever the number of columns.
int64_t column_bytes(int64_t padded_columns) {
  const int64_t bytes = padded_columns * static_cast<int64_t>(sizeof(float) + sizeof(int32_t));
  return ceil_div(bytes, kPackedAlignment) * static_cast<int64_t>(kPackedAlignment);
}

PackedHeader header_of(const Int8Weights& weights, int64_t n, Int8Tile tile) {
  PackedHeader header{};
  header.format = static_cast<uint32_t>(weights.weight_bits);
  header.tile_n = static_cast<uint32_t>(tile.n);
  header.tile_k = static_cast<uint32_t>(tile.k);
  header.n = n;
  header.k = weights.k;
  return header;
}

void check_weights(const Int8Weights& weights) {
  if (weights.weight_bits != 8 && weights.weight_bits != 7) {
    fail(ErrorCode::kInvalidArgument, "int8_linear: weight_bits is {}; it takes 8 or 7", weights.weight_bits);
  }
  const int lowest = weights.weight_bits == 8 ? -128 : -64;
  const int highest = weights.weight_bits == 8 ? 127 : 64;
  for (int64_t c = 0; c < weights.n; ++c) {
    check_packed_scale(kKind, weights.scale[c], c);
    const int8_t* row = weights.w + c * weights.stride;
    for (int64_t i = 0; i < weights.k; ++i) {
      if (row[i] < lowest || row[i] > highest) {
        fail(ErrorCode::kInvalidArgument,
             "int8_linear: weight {} of channel {} is {}, outside the {} bits it was declared with", i, c,
             int{row[i]}, weights.weight_bits);
      }
    }
  }
}

}  // namespace

size_t int8_packed_bytes(int64_t n, int64_t k, Int8Tile tile) {
  if (n < 0 || k < 0 || k > kInt8LinearMaxK || n > INT32_MAX) {
    fail(ErrorCode::kInvalidArgument, "int8_linear: cannot pack {} channels of {} weights (k is at most {})",
         n, k, kInt8LinearMaxK);
  }
  const int64_t panels = packed_panel_count(n, tile.n);
  const int64_t panel_bytes = ceil_div(k, tile.k) * tile.k * tile.n;
  return sizeof(PackedHeader) + static_cast<size_t>(column_bytes(panels * tile.n) + panels * panel_bytes);
}

void pack_int8_weights(const Int8Weights& weights, Int8Tile tile, void* out) {
  const size_t bytes = int8_packed_bytes(weights.n, weights.k, tile);
  check_weights(weights);
  begin_packed(kKind, header_of(weights, weights.n, tile), out, bytes);

  const Int8Packed packed = open_int8_packed(out, tile);
  float* scale = const_cast<float*>(packed.scale);
  int32_t* sum = const_cast<int32_t*>(packed.sum);
  int8_t* panels = const_cast<int8_t*>(packed.panels);
  for (int64_t c = 0; c < weights.n; ++c) {
    const int8_t* row = weights.w + c * weights.stride;
    int8_t* column = panels + c / tile.n * packed.panel_bytes + c % tile.n * tile.k;
    // Σ w of a column: the zero point of a row then costs one product for each element, not one for each k.
    int32_t total = 0;
    for (int64_t i = 0; i < weights.k; ++i) {
      column[i / tile.k * tile.n * tile.k + i % tile.k] = row[i];
      total += row[i];
    }
    scale[c] = weights.scale[c];
    sum[c] = total;
  }
}

Int8Packed open_int8_packed(const void* block, Int8Tile tile) {
  const PackedHeader& header = open_packed(kKind, block, tile.n);
  if (header.tile_k != static_cast<uint32_t>(tile.k)) {
    fail(ErrorCode::kInvalidArgument,
         "int8_linear: the weights are packed with {} neighbouring k, the kernel reads {}", header.tile_k,
         tile.k);
  }
  Int8Packed packed{};
  packed.header = &header;
  packed.panel_count = packed_panel_count(header.n, tile.n);
  packed.panel_bytes = ceil_div(header.k, tile.k) * tile.k * tile.n;
  const int64_t columns = packed.panel_count * tile.n;
  const char* at = static_cast<const char*>(block) + sizeof(PackedHeader);
  packed.scale = reinterpret_cast<const float*>(at);
  packed.sum = reinterpret_cast<const int32_t*>(at) + columns;
  packed.panels = reinterpret_cast<const int8_t*>(at + column_bytes(columns));
  return packed;
}

void check_int8_packed(const Int8Weights& last, int64_t n, Int8Tile tile, const void* block) {
  check_packed_header(kKind, header_of(last, n, tile), block);
  if (n == 0) return;
  const PackedScratch scratch(int8_packed_bytes(last.n, last.k, tile));
  pack_int8_weights(last, tile, scratch.data());
  const Int8Packed made = open_int8_packed(scratch.data(), tile), stored = open_int8_packed(block, tile);
  const int64_t first = last_packed_panel(n, tile.n);
  const auto columns = static_cast<size_t>(tile.n);
  check_packed_bytes(kKind, "a scale", stored.scale + first, made.scale, columns * sizeof(float));
  check_packed_bytes(kKind, "a sum", stored.sum + first, made.sum, columns * sizeof(int32_t));
  check_packed_bytes(kKind, "a weight", stored.panels + first / tile.n * stored.panel_bytes, made.panels,
                     static_cast<size_t>(made.panel_bytes));
}

}  // namespace halftone::kernels
