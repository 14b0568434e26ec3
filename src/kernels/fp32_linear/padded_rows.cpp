#include "kernels/fp32_linear/padded_rows.h"

#include <algorithm>

#include "kernels/common/workspace.h"

namespace halftone::kernels {
namespace {

constexpr int64_t kRowsPerTask = 32;

template <typename T>
void copy_rows(const T* x, int64_t stride, int64_t first, int64_t last, int64_t k, int64_t padded, T* out) {
  for (int64_t row = first; row < last; ++row) {
    std::copy_n(x + row * stride, k, out + row * padded);
    std::fill_n(out + row * padded + k, padded - k, T{});
  }
}

}  // namespace

size_t padded_rows_bytes(int64_t m, int64_t k, int64_t padded) {
  if (k == padded) return 0;
  Workspace count;
  count.take<float>(m * padded);
  return count.bytes_needed();
}

Fp32LinearArgs pad_rows(const Fp32LinearArgs& args, int64_t m, int64_t k, int64_t padded,
                        ParallelFor& parallel_for) {
  if (k == padded) return args;
  Workspace space(args.workspace, args.workspace_bytes);
  auto* rows = space.take<float>(m * padded);
  auto* rest = space.take<char>(0);
  auto* halves = reinterpret_cast<uint16_t*>(rows);
  parallel_for.run((m + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task, int) {
    const int64_t first = task * kRowsPerTask, last = std::min(m, first + kRowsPerTask);
    if (args.x != nullptr) {
      copy_rows(args.x, args.x_stride, first, last, k, padded, rows);
    } else {
      copy_rows(args.x_bfloat16, args.x_stride, first, last, k, padded, halves);
    }
  });
  Fp32LinearArgs result = args;
  result.x = args.x != nullptr ? rows : nullptr;
  result.x_bfloat16 = args.x != nullptr ? nullptr : halves;
  result.x_stride = padded;
  result.workspace = rest;
  result.workspace_bytes =
      args.workspace_bytes - static_cast<size_t>(rest - static_cast<char*>(args.workspace));
  return result;
}

}  // namespace halftone::kernels
