// The input pixels that the taps of output pixels read.
#include <algorithm>

#include "kernels/fp32_conv/drivers.h"

namespace halftone::kernels {
namespace {

bool inside(int64_t at, int64_t size) {
  return static_cast<uint64_t>(at) < static_cast<uint64_t>(size);
}

// A tap's pointers for `count` pixels that are neighbours in one row of the output.
void gather_row(const float* line, int64_t at, int64_t step, int64_t size, int64_t stride, const float* zeros,
                int64_t count, const float** rows) {
  for (int64_t i = 0; i < count; ++i, at += step) rows[i] = inside(at, size) ? line + at * stride : zeros;
}

// One row of a pixel's taps, [taps][channels].
void copy_taps(const float* line, int64_t at, const ConvPhase& phase, const Fp32ConvCall& call,
               int64_t channels, float* to) {
  const ConvStrides& strides = call.args.x_strides;
  const int64_t step = phase.in_tap_step[2], width = call.shape.in[2], taps = phase.taps[2];
  for (int64_t t = 0; t < taps; ++t, at += step, to += channels) {
    if (!inside(at, width)) {
      std::fill(to, to + channels, 0.0f);
      continue;
    }
    const float* x = line + at * strides.pixel[2];
    for (int64_t c = 0; c < channels; ++c) to[c] = x[c * strides.channel];
  }
}

}  // namespace

void gather_pixels(const Fp32ConvCall& call, const ConvPhase& phase, const float* zeros, int64_t first,
                   int64_t count, const float** rows, int64_t* out) {
  const ConvShape& s = call.shape;
  const ConvStrides& strides = call.args.x_strides;
  for (int64_t done = 0; done < count;) {
    const ConvPixelWalk walk(s, phase, first + done);
    const int64_t run = std::min(walk.left_in_row(), count - done);
    for (int64_t i = 0; i < run; ++i) out[done + i] = walk.out() + i * phase.step[2];
    const float* image = call.args.x + walk.image() * strides.batch;
    const float** to = rows + done;
    for (int64_t d = 0, z = walk.in(0); d < phase.taps[0]; ++d, z += phase.in_tap_step[0]) {
      for (int64_t h = 0, y = walk.in(1); h < phase.taps[1]; ++h, y += phase.in_tap_step[1]) {
        const bool row_inside = inside(z, s.in[0]) && inside(y, s.in[1]);
        const float* line = row_inside ? image + z * strides.pixel[0] + y * strides.pixel[1] : zeros;
        for (int64_t w = 0, x = walk.in(2); w < phase.taps[2]; ++w, x += phase.in_tap_step[2], to += count)
          gather_row(line, x, phase.in_step[2], row_inside ? s.in[2] : 0, strides.pixel[2], zeros, run, to);
      }
    }
    done += run;
  }
}

bool conv_lines_are_neighbours(const Fp32ConvCall& call, const ConvPhase& phase) {
  const ConvStrides& strides = call.args.x_strides;
  return call.shape.groups == 1 && strides.channel == 1 && strides.pixel[2] == call.shape.in_channels &&
         phase.in_tap_step[2] == 1;
}

void gather_lines(const Fp32ConvCall& call, const ConvPhase& phase, const float* zeros, int64_t first,
                  int64_t count, const float** rows, int64_t* out, float* edges) {
  const ConvShape& s = call.shape;
  const ConvStrides& strides = call.args.x_strides;
  ConvPixelWalk walk(s, phase, first);
  for (int64_t i = 0; i < count; ++i, walk.next()) {
    out[i] = walk.out();
    const float* image = call.args.x + walk.image() * strides.batch;
    const bool whole = walk.in(2) >= 0 && walk.in(2) + phase.taps[2] <= s.in[2];
    const float** to = rows + i;
    for (int64_t d = 0, z = walk.in(0); d < phase.taps[0]; ++d, z += phase.in_tap_step[0]) {
      for (int64_t h = 0, y = walk.in(1); h < phase.taps[1]; ++h, y += phase.in_tap_step[1], to += count) {
        const float* line = image + z * strides.pixel[0] + y * strides.pixel[1];
        if (!inside(z, s.in[0]) || !inside(y, s.in[1])) {
          *to = zeros;
        } else if (whole) {
          *to = line + walk.in(2) * strides.pixel[2];
        } else {
          copy_taps(line, walk.in(2), phase, call, s.in_channels, edges);
          *to = edges;
          edges += phase.taps[2] * s.in_channels;
        }
      }
    }
  }
}

void copy_channels_last(const Fp32ConvCall& call, int64_t row, float* dense) {
  const ConvShape& s = call.shape;
  const ConvStrides& strides = call.args.x_strides;
  const int64_t height = row % s.in[1], depth = row / s.in[1] % s.in[0], image = row / s.in[1] / s.in[0];
  const float* x = call.args.x + image * strides.batch + depth * strides.pixel[0] + height * strides.pixel[1];
  float* to = dense + row * s.in[2] * s.in_channels;
  for (int64_t w = 0; w < s.in[2]; ++w, x += strides.pixel[2])
    for (int64_t c = 0; c < s.in_channels; ++c) *to++ = x[c * strides.channel];
}

void gather_patches(const Fp32ConvCall& call, const ConvPhase& phase, int64_t group, int64_t first,
                    int64_t count, float* patches) {
  const ConvShape& s = call.shape;
  const ConvStrides& strides = call.args.x_strides;
  const int64_t channels = s.group_in_channels(), line_floats = phase.taps[2] * channels;
  ConvPixelWalk walk(s, phase, first);
  for (int64_t i = 0; i < count; ++i, walk.next()) {
    const float* image = call.args.x + walk.image() * strides.batch + group * channels * strides.channel;
    for (int64_t d = 0, z = walk.in(0); d < phase.taps[0]; ++d, z += phase.in_tap_step[0]) {
      for (int64_t h = 0, y = walk.in(1); h < phase.taps[1]; ++h, y += phase.in_tap_step[1]) {
        if (inside(z, s.in[0]) && inside(y, s.in[1])) {
          copy_taps(image + z * strides.pixel[0] + y * strides.pixel[1], walk.in(2), phase, call, channels,
                    patches);
        } else {
          std::fill(patches, patches + line_floats, 0.0f);
        }
        patches += line_floats;
      }
    }
  }
}

}  // namespace halftone::kernels
