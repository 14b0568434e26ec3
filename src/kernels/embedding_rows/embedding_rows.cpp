#include "kernels/embedding_rows/embedding_rows.h"

#include <algorithm>

#include "base/errors.h"
#include "kernels/common/kernel_table.h"
#include "kernels/embedding_rows/kernels.h"

namespace halftone::kernels {
namespace {

const char* refuse_group(const EmbeddingRowsProblem& p) {
  if (p.group == 0) return nullptr;
  if (p.group != 32 && p.group != 64 && p.group != 128 && p.group != 256) {
    return "the group size is not 32, 64, 128, 256 or 0 for the whole row";
  }
  return nullptr;
}

constexpr EmbeddingRowsKernel kTable[] = {
#if defined(HALFTONE_X86)
    {"embedding_rows_s8s4_1x16_avx2", Isa::kAvx2, refuse_group, embedding_run_avx2},
#endif
    {"embedding_rows_s8s4_1x1_scalar", Isa::kScalar, refuse_group, embedding_run_scalar},
};

constexpr int64_t kElementsPerTask = 16384;  // a few microseconds

int64_t index_at(const EmbeddingRowsArgs& args, int64_t i) {
  return args.index64 != nullptr ? args.index64[i] : args.index32[i];
}

void check(const EmbeddingRowsProblem& p, const EmbeddingRowsArgs& args) {
  if (args.type != OutputType::kFloat32 && args.type != OutputType::kBFloat16) {
    fail(ErrorCode::kInvalidArgument, "embedding_rows: the output is float or bfloat16");
  }
  if ((args.index64 == nullptr) == (args.index32 == nullptr)) {
    fail(ErrorCode::kInvalidArgument, "embedding_rows: give either 64-bit or 32-bit indices");
  }
  if (args.row_stride < p.row_bytes()) {
    fail(ErrorCode::kInvalidArgument, "embedding_rows: rows of {} bytes cannot lie {} bytes apart",
         p.row_bytes(), args.row_stride);
  }
  for (int64_t i = 0; i < p.count; ++i) {
    const int64_t index = index_at(args, i);
    if (index < 0 || index >= p.rows) {
      fail(ErrorCode::kInvalidArgument,
           "embedding_rows: index {} at position {} is outside a table of {} rows", index, i, p.rows);
    }
  }
  if (args.table == nullptr || args.scale == nullptr || args.out == nullptr) {
    fail(ErrorCode::kInvalidArgument, "embedding_rows: no table, no scales or no output");
  }
}

void pick(const EmbeddingRowsKernel& kernel, const EmbeddingRowsProblem& p, const EmbeddingRowsArgs& args,
          int64_t i) {
  const int64_t index = index_at(args, i), groups = p.groups(), width = p.group == 0 ? p.width : p.group;
  const int64_t element = args.type == OutputType::kBFloat16 ? 2 : 4;
  const int64_t bytes = p.format == EmbeddingFormat::kInt8 ? width : width / 2;  // groups are even
  EmbeddingRun run;
  run.q = static_cast<const uint8_t*>(args.table) + index * args.row_stride;
  run.format = p.format;
  run.type = args.type;
  char* out = static_cast<char*>(args.out) + i * args.out_stride * element;
  for (int64_t g = 0; g < groups; ++g, run.q += bytes, out += width * element) {
    run.scale = args.scale[index * groups + g];
    run.zero_point = args.zero_point != nullptr ? args.zero_point[index * groups + g] : 0;
    run.width = std::min(width, p.width - g * width);
    run.out = out;
    kernel.run(run);
  }
}

}  // namespace

std::span<const EmbeddingRowsKernel> embedding_rows_kernels() {
  return kTable;
}

const EmbeddingRowsKernel& choose_embedding_rows(const EmbeddingRowsProblem& p, Isa isa) {
  if (p.count < 0 || p.rows < 0 || p.width < 0) {
    fail(ErrorCode::kInvalidArgument, "embedding_rows: negative size {} of {} x {}", p.count, p.rows,
         p.width);
  }
  if (const char* reason = refuse_group(p)) {
    fail(ErrorCode::kInvalidArgument, "embedding_rows: {} ({} and {})", reason, p.group, p.width);
  }
  return choose_kernel(embedding_rows_kernels(), p, isa);
}

void embedding_rows(const EmbeddingRowsKernel& kernel, const EmbeddingRowsProblem& p,
                    const EmbeddingRowsArgs& args, ParallelFor& parallel_for) {
  if (p.count == 0) return;
  check(p, args);
  if (p.width == 0) return;
  const int64_t per_task = kElementsPerTask / p.width + 1;
  parallel_for.run((p.count + per_task - 1) / per_task, [&](int64_t task, int) {
    for (int64_t i = task * per_task; i < p.count && i < (task + 1) * per_task; ++i) pick(kernel, p, args, i);
  });
}

}  // namespace halftone::kernels
