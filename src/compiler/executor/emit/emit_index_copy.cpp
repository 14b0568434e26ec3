// index_copy: rows of a tensor replaced by others, in place where the tensor is the session's.
#include <algorithm>
#include <cstring>
#include <optional>

#include "base/errors.h"
#include "compiler/executor/emit.h"

namespace halftone::compiler {

namespace {

/// Less is copied by one thread: starting the others takes as long.
constexpr int64_t kBytesForThreads = 256 << 10;

/// The tensor as [outer, length, inner] around `dim`, with inner elements next to each other. Strides count bytes.
struct IndexedRows {
  int64_t outer = 1, length = 1, inner_bytes = 0;
  int64_t outer_stride = 0, stride = 0;
};

std::optional<IndexedRows> try_indexed_rows(const Slot& slot, size_t dim) {
  const auto sizes = slot.sizes();
  const auto strides = slot.strides();
  const auto element = static_cast<int64_t>(slot.meta.element_size());
  IndexedRows blocks{.length = sizes[dim], .inner_bytes = element, .stride = strides[dim] * element};
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > dim + 1;) {
    if (sizes[i] != 1 && strides[i] != expected) return std::nullopt;
    expected *= sizes[i];
    blocks.inner_bytes *= sizes[i];
  }
  int64_t next = -1;  // the stride that the next dimension outwards must have to be merged
  for (size_t i = dim; i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (next < 0) {
      blocks.outer_stride = strides[i] * element;
    } else if (strides[i] != next) {
      return std::nullopt;
    }
    next = strides[i] * sizes[i];
    blocks.outer *= sizes[i];
  }
  return blocks;
}

class IndexCopyStep final : public Step {
 public:
  Operand self, index, source, result;
  IndexedRows target, rows;  ///< of the result and of the source
  int64_t bytes = 0;         ///< of the whole result
  bool in_place = false;

  void run(Frame& frame) const override {
    const auto* places = frame.at<const int64_t>(index);
    // All of them before the first write: a refused call leaves the tensor as it was.
    for (int64_t i = 0; i < rows.length; ++i) {
      if (places[i] < 0 || places[i] >= target.length) {
        fail(ErrorCode::kInvalidArgument, "index {} (element {}) is out of range of {} rows", places[i], i,
             target.length);
      }
    }
    auto* out = frame.at<std::byte>(result);
    if (!in_place) std::memcpy(out, frame.at<const std::byte>(self), static_cast<size_t>(bytes));
    const auto* from = frame.at<const std::byte>(source);
    // Rows in their order, so that the last of two with one index stays, for every number of threads.
    const auto copy = [&](int64_t block, int) {
      for (int64_t i = 0; i < rows.length; ++i) {
        std::memcpy(out + block * target.outer_stride + places[i] * target.stride,
                    from + block * rows.outer_stride + i * rows.stride,
                    static_cast<size_t>(rows.inner_bytes));
      }
    };
    if (rows.outer > 1 && rows.outer * rows.length * rows.inner_bytes >= kBytesForThreads) {
      frame.parallel_for->run(rows.outer, copy);
    } else {
      for (int64_t block = 0; block < rows.outer; ++block) copy(block, 0);
    }
  }
  std::string kernel() const override { return in_place ? "index_copy_in_place" : "index_copy"; }
};

}  // namespace

std::unique_ptr<Step> emit_index_copy(const Node& node, Planner& planner, std::string& reason) {
  const Slot* self = planner.tensor(node, "self");
  const Slot* index = planner.tensor(node, "index");
  const Slot* source = planner.tensor(node, "source");
  if (!self || !index || !source) {
    reason = "an operand is no tensor";
    return nullptr;
  }
  const int64_t rank = self->meta.dim();
  if (rank == 0 || source->meta.dim() != rank || index->dtype() != at::kLong ||
      !index->meta.is_contiguous() || self->dtype() != source->dtype() || !self->meta.is_contiguous()) {
    reason =
        "a tensor without dimensions, indices that are not dense int64, or a tensor that is not contiguous";
    return nullptr;
  }
  if (self->meta.is_conj() || self->meta.is_neg() || source->meta.is_conj() || source->meta.is_neg()) {
    reason = "a lazy conjugate or negative";
    return nullptr;
  }
  int64_t dim = planner.constant(node, "dim").toInt();
  if (dim < 0) dim += rank;
  const std::optional<IndexedRows> target = try_indexed_rows(*self, static_cast<size_t>(dim));
  const std::optional<IndexedRows> rows = try_indexed_rows(*source, static_cast<size_t>(dim));
  if (!target || !rows || target->outer != rows->outer || target->inner_bytes != rows->inner_bytes ||
      rows->length != index->numel()) {
    reason = "the strides of the new rows";
    return nullptr;
  }
  auto step = std::make_unique<IndexCopyStep>();
  step->self = self->operand();
  step->index = index->operand();
  step->source = source->operand();
  step->target = *target;
  step->rows = *rows;
  step->bytes = self->numel() * static_cast<int64_t>(self->meta.element_size());
  const Slot old = *self;
  step->in_place = planner.try_define_over_state(node, node.output(), node.try_input("self")->value());
  step->result = step->in_place ? old.operand() : planner.define(node.output(), old.dtype(), old.sizes());
  return step;
}

}  // namespace halftone::compiler
