#include "kernels/int8_conv/sources.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace halftone::kernels {
namespace {

Int8ConvAxis transposed_axis(const ConvShape& s, int d, int64_t residue) {
  const int64_t stride = s.stride[d], dilation = s.dilation[d], reach = residue + s.pad[d];
  Int8ConvAxis axis;
  axis.out_first = residue;
  axis.out_step = stride;
  axis.out_count = (s.out[d] - residue + stride - 1) / stride;
  axis.tap_step = stride / std::gcd(stride, dilation);
  axis.base_step = -(axis.tap_step * dilation / stride);
  axis.taps = 0;
  for (int64_t t = 0; t < std::min(s.kernel[d], axis.tap_step); ++t) {
    if ((reach - t * dilation) % stride != 0) continue;
    axis.tap_first = t;
    axis.taps = (s.kernel[d] - t + axis.tap_step - 1) / axis.tap_step;
    axis.base = (reach - t * dilation) / stride;
    break;
  }
  return axis;
}

// Where output `o` of dimension d reads for tap t, or -1 for nowhere.
int64_t source_of(const ConvShape& s, int d, int64_t o, int64_t t) {
  int64_t at =
      s.transposed ? o + s.pad[d] - t * s.dilation[d] : o * s.stride[d] - s.pad[d] + t * s.dilation[d];
  if (s.transposed) {
    if (at < 0 || at % s.stride[d] != 0) return -1;
    at /= s.stride[d];
  }
  return at >= 0 && at < s.in[d] ? at : -1;
}

struct PixelPlace {
  int64_t image, at[kConvDims];
};

PixelPlace place_of(int64_t pixel, const ConvExtent& extent) {
  PixelPlace p;
  p.at[2] = pixel % extent[2];
  pixel /= extent[2];
  p.at[1] = pixel % extent[1];
  pixel /= extent[1];
  p.at[0] = pixel % extent[0];
  p.image = pixel / extent[0];
  return p;
}

int64_t residues(const ConvShape& s, int d) {
  return std::min(s.stride[d], s.out[d]);
}

// Calls each(tap, input row of the tap's first column or -1) for every row of taps.
template <typename Each>
void for_tap_rows(const ConvShape& s, const PixelPlace& p, Each each) {
  for (int64_t td = 0; td < s.kernel[0]; ++td) {
    const int64_t d = source_of(s, 0, p.at[0], td);
    for (int64_t th = 0; th < s.kernel[1]; ++th) {
      const int64_t h = source_of(s, 1, p.at[1], th);
      const bool inside = d >= 0 && h >= 0;
      each((td * s.kernel[1] + th) * s.kernel[2],
           inside ? ((p.image * s.in[0] + d) * s.in[1] + h) * s.in[2] : int64_t{-1});
    }
  }
}

// Whole vectors of constant size: many times faster than memcpy for the few bytes of a row of taps.
void copy_wide(uint8_t* to, const uint8_t* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kPatchSlack) std::memcpy(to + at, from + at, kPatchSlack);
}

// `count` neighbours in one row of the output. Taps of one row are copied for all of them before the next
// row's.
void copy_row_of_patches(const ConvShape& s, const Int8ConvInput& input, const PixelPlace& p, int64_t count,
                         const Int8ConvPatches& to, uint8_t* patches) {
  const int64_t channels = to.channels, run = s.kernel[2] * channels;
  // A row of taps is one piece of memory where pixels follow each other and all are inside.
  const bool pieces = !s.transposed && s.dilation[2] == 1 && input.stride == channels;
  for_tap_rows(s, p, [&](int64_t tap, int64_t row) {
    uint8_t* patch = patches + tap * channels;
    for (int64_t i = 0; i < count; ++i, patch += to.patch_stride) {
      const int64_t left = (p.at[2] + i) * s.stride[2] - s.pad[2];
      if (pieces && row >= 0 && left >= 0 && left + s.kernel[2] <= s.in[2]) {
        const uint8_t* from = input.x + (row + left) * channels;
        if (from + run + kPatchSlack <= to.readable) {
          copy_wide(patch, from, run);
        } else {
          std::memcpy(patch, from, static_cast<size_t>(run));
        }
        continue;
      }
      for (int64_t t = 0; t < s.kernel[2]; ++t) {
        const int64_t x = row < 0 ? -1 : source_of(s, 2, p.at[2] + i, t);
        std::memcpy(patch + t * channels, x < 0 ? input.zero : input.x + (row + x) * input.stride,
                    static_cast<size_t>(channels));
      }
    }
  });
}

}  // namespace

int64_t int8_conv_phases(const ConvShape& s) {
  return s.transposed ? residues(s, 0) * residues(s, 1) * residues(s, 2) : 1;
}

Int8ConvPhase int8_conv_phase(const ConvShape& s, int64_t index) {
  Int8ConvPhase phase;
  for (int d = kConvDims - 1; d >= 0; --d) {
    if (s.transposed) {
      phase.axis[d] = transposed_axis(s, d, index % residues(s, d));
      index /= residues(s, d);
    } else {
      phase.axis[d] = {0, 1, s.out[d], s.stride[d], 0, 1, s.kernel[d], -s.pad[d], s.dilation[d]};
    }
  }
  return phase;
}

void list_taps(const ConvShape& s, const Int8ConvPhase& phase, int32_t* tap) {
  const Int8ConvAxis &d = phase.axis[0], &h = phase.axis[1], &w = phase.axis[2];
  for (int64_t i = 0; i < d.taps; ++i) {
    for (int64_t j = 0; j < h.taps; ++j) {
      for (int64_t k = 0; k < w.taps; ++k) {
        const int64_t row = (d.tap_first + i * d.tap_step) * s.kernel[1] + h.tap_first + j * h.tap_step;
        *tap++ = static_cast<int32_t>(row * s.kernel[2] + w.tap_first + k * w.tap_step);
      }
    }
  }
}

void point_at_rows(const ConvShape& s, const Int8ConvPhase& phase, const Int8ConvInput& input, int64_t first,
                   int count, int64_t rows_stride, const uint8_t** rows, int64_t* pixel) {
  const Int8ConvAxis &d = phase.axis[0], &h = phase.axis[1], &w = phase.axis[2];
  PixelPlace p = place_of(first, {d.out_count, h.out_count, w.out_count});
  for (int r = 0; r < count; ++r) {
    pixel[r] = ((p.image * s.out[0] + d.out_first + p.at[0] * d.out_step) * s.out[1] + h.out_first +
                p.at[1] * h.out_step) *
                   s.out[2] +
               w.out_first + p.at[2] * w.out_step;
    const uint8_t** to = rows + r;
    for (int64_t i = 0; i < d.taps; ++i) {
      const int64_t z = p.at[0] * d.in_step + d.base + i * d.base_step;
      for (int64_t j = 0; j < h.taps; ++j) {
        const int64_t y = p.at[1] * h.in_step + h.base + j * h.base_step;
        const bool inside = z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1];
        const int64_t row = ((p.image * s.in[0] + z) * s.in[1] + y) * s.in[2];
        int64_t x = p.at[2] * w.in_step + w.base;
        for (int64_t k = 0; k < w.taps; ++k, x += w.base_step, to += rows_stride)
          *to = inside && x >= 0 && x < s.in[2] ? input.x + (row + x) * input.stride : input.zero;
      }
    }
    if (++p.at[2] < w.out_count) continue;
    p.at[2] = 0;
    if (++p.at[1] < h.out_count) continue;
    p.at[1] = 0;
    if (++p.at[0] < d.out_count) continue;
    p.at[0] = 0;
    ++p.image;
  }
}

void point_at_taps(const ConvShape& s, const Int8ConvInput& input, int64_t pixel, const uint8_t** rows) {
  const PixelPlace p = place_of(pixel, s.out);
  for_tap_rows(s, p, [&](int64_t tap, int64_t row) {
    for (int64_t t = 0; t < s.kernel[2]; ++t) {
      const int64_t x = row < 0 ? -1 : source_of(s, 2, p.at[2], t);
      rows[tap + t] = x < 0 ? input.zero : input.x + (row + x) * input.stride;
    }
  });
}

void copy_patches(const ConvShape& s, const Int8ConvInput& input, int64_t first, int count,
                  const Int8ConvPatches& to) {
  for (int64_t done = 0; done < count;) {
    const PixelPlace p = place_of(first + done, s.out);
    const int64_t together = std::min<int64_t>(count - done, s.out[2] - p.at[2]);
    copy_row_of_patches(s, input, p, together, to, to.patches + done * to.patch_stride);
    done += together;
  }
}

}  // namespace halftone::kernels
