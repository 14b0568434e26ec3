// Rows of a table by index: float32, bfloat16, int8 and int4 tables.
#include <cstring>

#include "base/errors.h"
#include "compiler/executor/emit.h"
#include "kernels/embedding_rows/embedding_rows.h"

namespace halftone::compiler {

namespace {

/// Chunks of rows: a task of one row would cost more to start than to copy.
constexpr int64_t kEmbeddingTaskBytes = 64 << 10;

class FloatEmbeddingStep final : public Step {
 public:
  at::Tensor table;
  Operand indices, y;
  int64_t count = 0;
  bool wide = true;  ///< indices are int64, else int32

  void run(Frame& frame) const override {
    const int64_t rows = table.size(0), width = table.size(1);
    auto* out = frame.at<float>(y);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = index_at(frame, i);
      if (index < 0 || index >= rows) {
        fail(ErrorCode::kInvalidArgument, "index {} (element {}) is out of range of a table of {} rows",
             index, i, rows);
      }
    }
    const int64_t chunk = std::max<int64_t>(1, kEmbeddingTaskBytes / (width * 4 + 1));
    frame.parallel_for->run((count + chunk - 1) / chunk, [&](int64_t task, int) {
      for (int64_t i = task * chunk; i < std::min(count, (task + 1) * chunk); ++i) {
        copy_row(index_at(frame, i) * width, width, out + i * width);
      }
    });
  }
  std::string kernel() const override { return halves() ? "embedding_bf16" : "embedding_f32"; }

 private:
  bool halves() const { return table.scalar_type() == at::kBFloat16; }

  void copy_row(int64_t start, int64_t width, float* out) const {
    if (!halves()) {
      std::memcpy(out, table.const_data_ptr<float>() + start, static_cast<size_t>(width) * 4);
      return;
    }
    const auto* row = table.const_data_ptr<at::BFloat16>() + start;
    for (int64_t c = 0; c < width; ++c) out[c] = static_cast<float>(row[c]);
  }

  int64_t index_at(const Frame& frame, int64_t i) const {
    return wide ? frame.at<const int64_t>(indices)[i] : frame.at<const int32_t>(indices)[i];
  }
};

class QuantizedEmbeddingStep final : public Step {
 public:
  const kernels::EmbeddingRowsKernel* chosen = nullptr;
  kernels::EmbeddingRowsProblem problem;
  at::Tensor table, scale, zero_point;
  Operand indices, y;
  bool wide = true;

  void run(Frame& frame) const override {
    kernels::EmbeddingRowsArgs args;
    (wide ? reinterpret_cast<const void*&>(args.index64) : reinterpret_cast<const void*&>(args.index32)) =
        frame.at<const void>(indices);
    args.table = table.const_data_ptr();
    args.row_stride = problem.row_bytes();
    args.scale = scale.const_data_ptr<float>();
    args.zero_point = zero_point.defined() ? zero_point.const_data_ptr<int8_t>() : nullptr;
    args.out = frame.at<void>(y);
    args.out_stride = problem.width;
    kernels::embedding_rows(*chosen, problem, args, *frame.parallel_for);
  }
  std::string kernel() const override { return chosen->name; }
};

std::unique_ptr<Step> emit_float(const Node& node, Planner& planner, const Slot& indices,
                                 const at::Tensor& table) {
  auto step = std::make_unique<FloatEmbeddingStep>();
  step->table = table.contiguous();
  step->indices = indices.operand();
  step->count = indices.numel();
  step->wide = indices.dtype() == at::kLong;
  std::vector<int64_t> sizes = indices.sizes().vec();
  sizes.push_back(table.size(1));
  step->y = planner.define(node.output(), at::kFloat, sizes);
  return step;
}

/// The scales or zero points of a table, where they are constant too.
at::Tensor table_part(const Node& node, const Planner& planner, std::string_view name) {
  const Slot* slot = planner.tensor(node, name);
  const at::Tensor part = slot ? planner.weight(*slot) : at::Tensor();
  return part.defined() ? part.contiguous() : part;
}

std::unique_ptr<Step> emit_quantized(const Node& node, Planner& planner, const Slot& indices,
                                     const at::Tensor& table, std::string& reason) {
  auto step = std::make_unique<QuantizedEmbeddingStep>();
  const bool int4 = node.is("halftone::int4_embedding");
  step->table = table.contiguous();
  step->scale = table_part(node, planner, "scale");
  if (int4) step->zero_point = table_part(node, planner, "zero_point");
  const bool has_zeros = int4 && planner.tensor(node, "zero_point");
  if (!step->scale.defined() || step->zero_point.defined() != has_zeros) {
    reason = "scales or zero points are not constant";
    return nullptr;
  }
  step->problem.count = indices.numel();
  step->problem.rows = table.size(0);
  const int64_t inputs = int4 ? planner.constant(node, "in_features").toInt() : 0;
  step->problem.width = inputs != 0 ? inputs : table.size(1) * (int4 ? 2 : 1);
  step->problem.format = int4 ? kernels::EmbeddingFormat::kInt4 : kernels::EmbeddingFormat::kInt8;
  step->problem.group = int4 ? static_cast<int>(planner.constant(node, "group_size").toInt()) : 0;
  step->chosen = &kernels::choose_embedding_rows(step->problem);
  step->indices = indices.operand();
  step->wide = indices.dtype() == at::kLong;
  std::vector<int64_t> sizes = indices.sizes().vec();
  sizes.push_back(step->problem.width);
  step->y = planner.define(node.output(), at::kFloat, sizes);
  return step;
}

}  // namespace

std::unique_ptr<Step> emit_embedding(const Node& node, Planner& planner, std::string& reason) {
  const Slot* slot = planner.tensor(node, "indices");
  const Slot* weight = planner.tensor(node, "weight");
  const at::Tensor table = weight ? planner.weight(*weight) : at::Tensor();
  const bool index_type = slot && (slot->dtype() == at::kLong || slot->dtype() == at::kInt);
  if (!index_type || !slot->meta.is_contiguous()) {
    reason = "indices are not dense integers";
    return nullptr;
  }
  if (!table.defined() || node.output()->meta()->dtype != at::kFloat) {
    reason = "the table is not constant, or float32 is not wanted";
    return nullptr;
  }
  const Slot indices = *slot;
  if (node.is("halftone::bf16_embedding") && table.scalar_type() == at::kBFloat16) {
    return emit_float(node, planner, indices, table);
  }
  if (!node.is("aten::embedding")) return emit_quantized(node, planner, indices, table, reason);
  if (table.scalar_type() != at::kFloat) {
    reason = "the table is not float32";
    return nullptr;
  }
  return emit_float(node, planner, indices, table);
}

}  // namespace halftone::compiler
