#include "kernels/int8_conv/pack.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/checked.h"
#include "base/errors.h"
#include "kernels/int8_conv/deepen.h"
#include "kernels/int8_conv/int8_conv.h"

namespace halftone::kernels {
namespace {

constexpr PackedKind kInt8ConvKind = {
    "int8_conv", {'H', 'T', 'i', '8', 'c', 'o', 'n', 'v'}, kInt8ConvPackVersion};

// Behind the header: which convolution the block belongs to.
struct ConvDescription {
  int64_t in_channels;
  int64_t kernel[kConvDims];
  uint32_t layout;
  uint32_t transposed;
  uint32_t activation_bits;
  uint32_t shallow;
  uint32_t deep;
  uint8_t padding[12];
};
static_assert(sizeof(ConvDescription) == 64);

ConvDescription describe_conv(const Int8ConvProblem& p, Int8ConvTile tile) {
  const ConvShape& s = p.shape;
  return {s.in_channels,
          {s.kernel[0], s.kernel[1], s.kernel[2]},
          static_cast<uint32_t>(int8_conv_layout(s)),
          s.transposed,
          static_cast<uint32_t>(p.activation_bits),
          0,
          tile.deep,
          {}};
}

PackedHeader conv_header(const Int8ConvProblem& p, Int8ConvTile tile) {
  PackedHeader header{};
  header.tile_n = static_cast<uint32_t>(tile.n);
  header.group = static_cast<uint32_t>(p.shape.groups);
  header.n = p.shape.out_channels;
  header.k = p.shape.taps() * p.shape.group_in_channels();
  header.format = static_cast<uint32_t>(p.weight_bits);
  header.tile_k = 4;
  return header;
}

// Where the parts of a block lie, in bytes from its front.
struct ConvBlockParts {
  Int8ConvPacked packed{};
  int64_t panels = 0;  // of all groups
  int64_t sum_at = 0, depth_at = 0, extras_at = 0, extra_quads_at = 0, panels_at = 0, extra_weights_at = 0,
          end = 0;
};

int64_t padded64(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

ConvBlockParts conv_block_parts(const Int8ConvProblem& p, Int8ConvTile tile) {
  const ConvShape& s = p.shape;
  ConvBlockParts parts;
  Int8ConvPacked& packed = parts.packed;
  packed.layout = int8_conv_layout(s);
  const bool depthwise = packed.layout == Int8ConvLayout::kDepthwise;
  const int64_t groups = packed.groups = depthwise ? 1 : s.groups, icg = s.group_in_channels(),
                taps = s.taps();
  packed.taps = packed.layout == Int8ConvLayout::kDirect ? taps : 1;
  packed.quads = depthwise                                  ? (taps + 1) / 2
                 : packed.layout == Int8ConvLayout::kDirect ? icg / 4
                                                            : (taps * icg + 3) / 4;
  packed.group_panels = packed_panel_count(s.out_channels / groups, tile.n);
  packed.group_columns = packed.group_panels * tile.n;
  packed.panel_bytes = packed.taps * packed.quads * tile.n * 4;
  // More would cost as much as a smaller depth. Transposed convolutions skip taps, and could not skip extras.
  packed.max_extras = tile.deep && !depthwise && !s.transposed ? packed.taps * packed.quads / 8 : 0;
  const int64_t factors[] = {
      groups, packed.group_panels,
      packed.panel_bytes + packed.taps * tile.n * 4 + packed.max_extras * (tile.n * 4 + 8) + 8};
  const auto bytes = checked_product<int64_t>(factors);
  if (!bytes || *bytes > (int64_t{1} << 61))
    fail(ErrorCode::kInvalidArgument, "int8_conv: cannot pack {} channels of {} weights", s.out_channels,
         icg * taps);
  parts.panels = groups * packed.group_panels;
  parts.sum_at = int64_t{sizeof(PackedHeader)} + int64_t{sizeof(ConvDescription)};
  parts.depth_at = parts.sum_at + padded64(packed.taps * groups * packed.group_columns * 4);
  parts.extras_at = parts.depth_at + padded64(parts.panels);
  parts.extra_quads_at = parts.extras_at + padded64(parts.panels * 4);
  parts.panels_at =
      parts.extra_quads_at + padded64(parts.panels * packed.max_extras * int64_t{sizeof(Int8ExtraQuad)});
  parts.extra_weights_at = parts.panels_at + parts.panels * packed.panel_bytes;
  parts.end = parts.extra_weights_at + parts.panels * packed.max_extras * tile.n * 4;
  return parts;
}

void place_parts(ConvBlockParts& parts, const void* block) {
  const char* at = static_cast<const char*>(block);
  parts.packed.sum = reinterpret_cast<const int32_t*>(at + parts.sum_at);
  parts.packed.depth = reinterpret_cast<const uint8_t*>(at + parts.depth_at);
  parts.packed.extras = reinterpret_cast<const int32_t*>(at + parts.extras_at);
  parts.packed.extra_quads = reinterpret_cast<const Int8ExtraQuad*>(at + parts.extra_quads_at);
  parts.packed.panels = reinterpret_cast<const int8_t*>(at + parts.panels_at);
  parts.packed.extra_weights = reinterpret_cast<const int8_t*>(at + parts.extra_weights_at);
}

// Weight of output channel oc, input channel ic of its group, tap t.
int8_t weight_at(const ConvShape& s, const int8_t* w, int64_t oc, int64_t ic, int64_t t) {
  if (!s.transposed) return w[(oc * s.group_in_channels() + ic) * s.taps() + t];
  const int64_t ocg = s.group_out_channels(), group = oc / ocg;
  return w[((group * s.group_in_channels() + ic) * ocg + oc % ocg) * s.taps() + t];
}

void check_conv_weights(const Int8ConvProblem& p, const int8_t* w) {
  if (p.weight_bits == 8) return;
  const ConvShape& s = p.shape;
  for (int64_t oc = 0; oc < s.out_channels; ++oc) {
    for (int64_t ic = 0; ic < s.group_in_channels(); ++ic) {
      for (int64_t t = 0; t < s.taps(); ++t) {
        const int8_t v = weight_at(s, w, oc, ic, t);
        if (v < -64 || v > 64)
          fail(ErrorCode::kInvalidArgument, "int8_conv: channel {} has the weight {}, outside of 7 bits", oc,
               v);
      }
    }
  }
}

// One output channel into its column; the sums of its weights go to sum[tap * sum_stride].
void pack_column(const Int8ConvProblem& p, const int8_t* w, int64_t oc, int tile_n, Int8ConvLayout layout,
                 int8_t* column, int32_t* sum, int64_t sum_stride) {
  const ConvShape& s = p.shape;
  const int64_t icg = s.group_in_channels(), step = int64_t{tile_n} * 4;
  for (int64_t t = 0; t < s.taps(); ++t) {
    for (int64_t ic = 0; ic < icg; ++ic) {
      const int8_t v = weight_at(s, w, oc, ic, t);
      sum[layout == Int8ConvLayout::kDirect ? t * sum_stride : 0] += v;
      if (layout == Int8ConvLayout::kDepthwise) {
        const int16_t wide = v;
        std::memcpy(column + t / 2 * step + t % 2 * 2, &wide, 2);
      } else {
        const int64_t k = t * icg + ic;  // direct too: icg is a multiple of 4 there
        column[k / 4 * step + k % 4] = v;
      }
    }
  }
}

[[noreturn]] void refuse_conv_block(const char* what, int64_t panel) {
  fail(ErrorCode::kInvalidArgument, "int8_conv: {} of panel {} in the stored block is out of range", what,
       panel);
}

bool is_depth(int depth) {
  return depth == 1 || depth == 2 || depth == 4 || depth == 8;
}

// Depths and extra quads: they say where kernels read activations.
void check_conv_panels(const Int8ConvPacked& packed, bool deep) {
  for (int64_t panel = 0; panel < packed.groups * packed.group_panels; ++panel) {
    const int depth = packed.depth[panel];
    if (deep && !packed.shallow ? !is_depth(depth) : depth != 0) refuse_conv_block("the depth", panel);
    const int64_t extras = packed.extras[panel];
    if (extras < 0 || extras > (depth == 0 ? 0 : packed.max_extras))
      refuse_conv_block("the number of extra quads", panel);
    for (int64_t e = 0; e < extras; ++e) {
      const Int8ExtraQuad quad = packed.extra_quads[panel * packed.max_extras + e];
      if (quad.tap < 0 || quad.tap >= packed.taps || quad.offset < 0 || quad.offset >= packed.quads * 4 ||
          quad.offset % 4 != 0)
        refuse_conv_block("an extra quad", panel);
    }
  }
}

// The weights of one column in the panel's order, extra quads added.
std::vector<int> conv_column(const Int8ConvPacked& packed, int64_t column, int tile_n) {
  const int64_t panel = column / tile_n, at = column % tile_n * 4, step = int64_t{tile_n} * 4;
  std::vector<int> weights(static_cast<size_t>(packed.taps * packed.quads * 4));
  const int8_t* quads = packed.panels + panel * packed.panel_bytes + at;
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = quads[static_cast<int64_t>(i / 4) * step + static_cast<int64_t>(i % 4)];
  for (int64_t e = 0; e < packed.extras[panel]; ++e) {
    const Int8ExtraQuad quad = packed.extra_quads[panel * packed.max_extras + e];
    const int8_t* extra = packed.extra_weights + (panel * packed.max_extras + e) * step + at;
    for (int i = 0; i < 4; ++i)
      weights[static_cast<size_t>(quad.tap * packed.quads * 4 + quad.offset + i)] += extra[i];
  }
  return weights;
}

}  // namespace

Int8ConvLayout int8_conv_layout(const ConvShape& shape) {
  if (shape.depthwise() && shape.groups > 1) return Int8ConvLayout::kDepthwise;
  return shape.group_in_channels() % 4 == 0 ? Int8ConvLayout::kDirect : Int8ConvLayout::kPatches;
}

size_t int8_conv_packed_bytes(const Int8ConvProblem& problem, Int8ConvTile tile) {
  check_int8_conv_problem(problem);
  return static_cast<size_t>(conv_block_parts(problem, tile).end);
}

void pack_int8_conv(const Int8ConvProblem& problem, const int8_t* w, Int8ConvTile tile, void* out) {
  const size_t bytes = int8_conv_packed_bytes(problem, tile);
  check_conv_weights(problem, w);
  const ConvShape& s = problem.shape;
  ConvBlockParts parts = conv_block_parts(problem, tile);
  begin_packed(kInt8ConvKind, conv_header(problem, tile), out, bytes);
  place_parts(parts, out);
  const Int8ConvPacked& packed = parts.packed;
  auto* sum = const_cast<int32_t*>(packed.sum);
  auto* panels = const_cast<int8_t*>(packed.panels);
  const bool depthwise = packed.layout == Int8ConvLayout::kDepthwise;
  const int64_t ocg = depthwise ? s.out_channels : s.group_out_channels();
  const int64_t columns = parts.panels * tile.n;
  for (int64_t oc = 0; oc < s.out_channels; ++oc) {
    const int64_t column = oc / ocg * packed.group_columns + oc % ocg;
    int8_t* at = panels + column / tile.n * packed.panel_bytes + column % tile.n * 4;
    pack_column(problem, w, oc, tile.n, packed.layout, at, sum + column, columns);
  }
  ConvDescription description = describe_conv(problem, tile);
  if (tile.deep && !depthwise)
    description.shallow = !deepen_panels(packed, tile, parts.panels, problem.activation_bits);
  std::memcpy(static_cast<char*>(out) + sizeof(PackedHeader), &description, sizeof(description));
}

Int8ConvPacked int8_conv_packed_shape(const Int8ConvProblem& problem, Int8ConvTile tile) {
  return conv_block_parts(problem, tile).packed;
}

Int8ConvPacked open_int8_conv_packed(const Int8ConvProblem& p, const void* block, Int8ConvTile tile) {
  const PackedHeader& header = open_packed(kInt8ConvKind, block, tile.n);
  ConvDescription found;
  std::memcpy(&found, static_cast<const char*>(block) + sizeof(PackedHeader), sizeof(found));
  ConvDescription wanted = describe_conv(p, tile);
  // Only blocks for 16-bit sums have panels that can be too shallow for them.
  wanted.shallow = found.shallow != 0 && tile.deep && int8_conv_layout(p.shape) != Int8ConvLayout::kDepthwise;
  if (header.n != p.shape.out_channels || header.group != static_cast<uint32_t>(p.shape.groups) ||
      header.format != static_cast<uint32_t>(p.weight_bits) ||
      std::memcmp(&found, &wanted, sizeof(found)) != 0) {
    fail(ErrorCode::kInvalidArgument,
         "int8_conv: the weights were packed for another convolution: {} of {} channels in {} groups, kernel "
         "{}x{}x{}, {} and {} bits",
         header.n, found.in_channels, header.group, found.kernel[0], found.kernel[1], found.kernel[2],
         found.activation_bits, header.format);
  }
  ConvBlockParts parts = conv_block_parts(p, tile);
  place_parts(parts, block);
  parts.packed.shallow = found.shallow != 0;
  return parts.packed;
}

void check_int8_conv_packed(const Int8ConvProblem& problem, const int8_t* w, Int8ConvTile tile,
                            const void* block) {
  check_packed_header(kInt8ConvKind, conv_header(problem, tile), block);
  const Int8ConvPacked stored = open_int8_conv_packed(problem, block, tile);
  const bool depthwise = stored.layout == Int8ConvLayout::kDepthwise;
  check_conv_panels(stored, tile.deep && !depthwise);
  if (problem.shape.out_channels == 0) return;
  const int64_t oc = problem.shape.out_channels - 1;
  const int64_t ocg = depthwise ? problem.shape.out_channels : problem.shape.group_out_channels();
  const int64_t column = oc / ocg * stored.group_columns + oc % ocg;
  std::vector<int8_t> panel(static_cast<size_t>(stored.panel_bytes));
  std::vector<int32_t> sum(static_cast<size_t>(stored.taps));
  pack_column(problem, w, oc, tile.n, stored.layout, panel.data(), sum.data(), 1);
  Int8ConvPacked made = stored;
  const int32_t no_extras = 0;
  made.panels = panel.data();
  made.extras = &no_extras;
  if (conv_column(stored, column, tile.n) != conv_column(made, 0, tile.n))
    fail(ErrorCode::kInvalidArgument, "int8_conv: a weight of the stored block is not what the weights give");
  // Of the other channels only that no multiple of a sum overflows.
  const int64_t largest = 128 * problem.shape.group_in_channels() * problem.shape.taps();
  const std::span all(stored.sum, static_cast<size_t>(stored.taps * stored.groups * stored.group_columns));
  for (const int64_t each : all) {
    if (each < -largest || each > largest)
      fail(ErrorCode::kInvalidArgument, "int8_conv: a sum of the stored block is not what weights can give");
  }
  for (int64_t tap = 0; tap < stored.taps; ++tap) {
    if (stored.sum[tap * stored.groups * stored.group_columns + column] != sum[static_cast<size_t>(tap)])
      fail(ErrorCode::kInvalidArgument, "int8_conv: a sum of the stored block is not what the weights give");
  }
}

}  // namespace halftone::kernels
