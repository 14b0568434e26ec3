// Packing of int8_conv's weights: made once from torch's layout, read by every call.
//
// A packed block is a header (packed_block.h), a description of the convolution it belongs to, for each tap
// and column (padded to whole panels) the sum Σ_ic qw, for each panel its depth, then the panels. Output
// channels of one group fill panels of their own. With icg = in_channels / groups, a panel is one of
//   direct     (icg % 4 == 0)     tap, quad, column, i in 0..3  ->  qw[column][4 quad + i][tap]
//   patches    (other icg)        quad, column, i in 0..3       ->  element 4 quad + i of [tap][icg]
//   depthwise  (icg = ocg = 1)    pair of taps, channel, i in 0..1, 16 bits each  ->  qw[channel][2 pair + i]
// and zero beyond the columns, the elements and the taps. (A 1x1 kernel is direct, or patches of one pixel.)
//
// Depth, of tiles with `deep`: how many vpmaddubsw results of a panel may be added in 16 bits, whatever the
// activations are. A sum of products is largest where x is largest and only weights of one sign count, so
// depth d is safe if in each 16-bit lane, for each group of d neighbouring quads, max(Σ positive w, Σ
// -negative w) · x_max < 32768. Two weights of 7 bits and x <= 255, or four and x <= 127, are always safe;
// real weights, most of which are small, go further. If a few lanes stand in the way, what is too much is
// taken out of a quad and becomes an extra quad, multiplied on its own after the others: w = kept + extra, so
// sums stay exact. Each panel gets the depth that costs least.
#pragma once

#include "kernels/common/packed_block.h"
#include "kernels/conv/conv_shape.h"

namespace halftone::kernels {

/// A convolution with 8-bit operands. Fewer bits of either operand are faster without VNNI; the numbers are
/// the caller's promise for activations (a byte above 127 with activation_bits 7 gives a wrong sum, nothing
/// worse) and checked for weights.
struct Int8ConvProblem {
  ConvShape shape;
  int weight_bits = 8;      ///< 8: [-128, 127], 7: [-64, 64]
  int activation_bits = 8;  ///< 8: [0, 255], 7: [0, 127]
};

enum class Int8ConvLayout : uint32_t { kDirect = 0, kPatches = 1, kDepthwise = 2 };

/// How the weights of a problem are laid out; kernels of one layout differ only in their tile.
Int8ConvLayout int8_conv_layout(const ConvShape& shape);

inline constexpr uint32_t kInt8ConvPackVersion = 2;

/// Columns of a panel (16, 32, …), for all layouts; `deep`: for kernels that sum in 16 bits.
struct Int8ConvTile {
  int n = 16;
  bool deep = false;
  friend bool operator==(const Int8ConvTile&, const Int8ConvTile&) = default;
};

/// Bytes of the packed block. Depends on channels, groups, kernel and transposed, not on the images' sizes.
/// Throws kInvalidArgument for problems that int8_conv cannot take.
size_t int8_conv_packed_bytes(const Int8ConvProblem& problem, Int8ConvTile tile);

/// Writes the packed block to `out`, int8_conv_packed_bytes long and aligned to kPackedAlignment. `w` is
/// plain s8 in torch's layout: [oc][ic/g][kd][kh][kw], transposed [ic][oc/g][kd][kh][kw]. Throws
/// kInvalidArgument for a weight outside weight_bits, naming the channel.
void pack_int8_conv(const Int8ConvProblem& problem, const int8_t* w, Int8ConvTile tile, void* out);

/// Which quad an extra one repeats: its tap, and its bytes from the start of the tap's (or the patch's).
struct Int8ExtraQuad {
  int32_t tap;
  int32_t offset;
};

/// A packed block taken apart. Pointers into the block.
struct Int8ConvPacked {
  Int8ConvLayout layout;
  int64_t taps;           ///< of the sums; 1 for layouts without taps of their own
  int64_t quads;          ///< of a tap (direct), of a patch (patches); pairs of taps (depthwise)
  int64_t groups;         ///< 1 for depthwise
  int64_t group_columns;  ///< of one group, padded to whole panels
  int64_t group_panels;
  int64_t panel_bytes;
  const int32_t* sum;     ///< [taps][groups * group_columns]
  const uint8_t* depth;   ///< [groups * group_panels]: 0 (vpmaddubsw itself could saturate), 1, 2, 4 or 8
  const int8_t* panels;   ///< panel_bytes apart
  int64_t max_extras;     ///< of a panel
  const int32_t* extras;  ///< [groups * group_panels]: extra quads of each panel
  const Int8ExtraQuad* extra_quads;  ///< [groups * group_panels][max_extras]
  const int8_t* extra_weights;       ///< [groups * group_panels][max_extras][4 * tile.n]
  bool shallow;                      ///< no depth is safe: all panels have depth 0
};

/// The sizes of a packed block, without one: all pointers null. Throws kInvalidArgument if bytes overflow.
Int8ConvPacked int8_conv_packed_shape(const Int8ConvProblem& problem, Int8ConvTile tile);

/// Throws kInvalidArgument unless `block` is an aligned packed block of this version, tile and convolution.
Int8ConvPacked open_int8_conv_packed(const Int8ConvProblem& problem, const void* block, Int8ConvTile tile);

/// Throws kInvalidArgument unless `block`, int8_conv_packed_bytes long, is what packing `w` would make, as
/// far as packed_block.h says: header and description, all that says where kernels read, the last channel.
void check_int8_conv_packed(const Int8ConvProblem& problem, const int8_t* w, Int8ConvTile tile,
                            const void* block);

}  // namespace halftone::kernels
