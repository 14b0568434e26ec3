// Activations, add, mul, softmax, and copies to another layout or dtype.
#include <algorithm>
#include <numeric>
#include <optional>

#include "compiler/executor/copy_step.h"
#include "compiler/executor/emit.h"
#include "cpu/chunked_parallel_for.h"
#include "kernels/common/kernel_table.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/softmax/softmax.h"

namespace halftone::compiler {

namespace {

using kernels::Activation;

const kernels::ElementwiseKernel& elementwise_kernel(int64_t count) {
  return kernels::choose_kernel(kernels::elementwise_kernels(), kernels::ElementwiseProblem{count},
                                active_isa());
}

class ActivationStep final : public Step {
 public:
  ActivationStep(Activation activation, Operand x, Operand y, int64_t count)
      : activation_(activation), x_(x), y_(y), count_(count), kernel_(elementwise_kernel(count)) {}
  void run(Frame& frame) const override {
    kernels::activate_all(kernel_, frame.at<const float>(x_), frame.at<float>(y_), count_, activation_,
                          *frame.parallel_for);
  }
  std::string kernel() const override { return kernel_.name; }

 private:
  Activation activation_;
  Operand x_, y_;
  int64_t count_;
  const kernels::ElementwiseKernel& kernel_;
};

/// How a broadcast operand lies beside the whole one: `outer` blocks of `period` elements, each used `times`
/// times in a row.
struct Repeat {
  int64_t outer = 1, times = 1, period = 1;
};

/// y = a ∘ b, where b is as long as a, or repeats.
class BinaryStep final : public Step {
 public:
  BinaryStep(bool multiply, Operand a, Operand b, Operand y, const Repeat& repeat)
      : multiply_(multiply),
        a_(a),
        b_(b),
        y_(y),
        repeat_(repeat),
        kernel_(elementwise_kernel(repeat.outer * repeat.times * repeat.period)) {}

  void run(Frame& frame) const override {
    const auto* a = frame.at<const float>(a_);
    const auto* b = frame.at<const float>(b_);
    auto* y = frame.at<float>(y_);
    const int64_t period = repeat_.period, blocks = repeat_.outer * repeat_.times;
    if (repeat_.times == 1) {
      (multiply_ ? kernels::mul_all : kernels::add_all)(kernel_, a, b, y, blocks * period,
                                                        *frame.parallel_for);
      return;
    }
    const auto function = multiply_ ? kernel_.mul : kernel_.add;
    chunked_parallel_for(*frame.parallel_for, blocks, kTaskElements / period,
                         [&](int64_t first, int64_t last) {
                           for (int64_t i = first; i < last; ++i)
                             function(a + i * period, b + i / repeat_.times * period, y + i * period, period);
                         });
  }
  std::string kernel() const override { return kernel_.name; }

 private:
  static constexpr int64_t kTaskElements = 16384;
  bool multiply_;
  Operand a_, b_, y_;
  Repeat repeat_;
  const kernels::ElementwiseKernel& kernel_;
};

class SoftmaxStep final : public Step {
 public:
  SoftmaxStep(Rows x, Operand y)
      : x_(x),
        y_(y),
        kernel_(kernels::choose_kernel(kernels::softmax_kernels(), kernels::SoftmaxProblem{x.rows, x.k},
                                       active_isa())) {}
  void run(Frame& frame) const override {
    kernels::SoftmaxArgs args;
    args.x = frame.at<const float>(x_.operand);
    args.x_stride = x_.stride;
    args.y = frame.at<float>(y_);
    args.y_stride = x_.k;
    kernels::softmax(kernel_, {x_.rows, x_.k}, args, *frame.parallel_for);
  }
  std::string kernel() const override { return kernel_.name; }

 private:
  Rows x_;
  Operand y_;
  const kernels::SoftmaxKernel& kernel_;
};

/// All elements of a block of memory, in whatever order the strides say.
bool is_dense_float(const Slot& slot) {
  return slot.dtype() == at::kFloat && slot.meta.is_non_overlapping_and_dense();
}

/// The dimensions as they lie in memory, the innermost last.
std::vector<int64_t> memory_order_of(const Slot& slot) {
  std::vector<int64_t> order(slot.sizes().size());
  std::iota(order.begin(), order.end(), int64_t{0});
  if (slot.meta.is_contiguous()) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return slot.meta.stride(i) > slot.meta.stride(j); });
  return order;
}

/// `part` with as many dimensions as `whole` has, in that one's order in memory.
Slot in_order_of(const Slot& part, const Slot& whole) {
  at::Tensor meta = part.meta;
  while (meta.dim() < whole.meta.dim()) meta = meta.unsqueeze(0);
  return {part.buffer, meta.permute(memory_order_of(whole))};
}

/// Both in the order of memory; nothing if the part does not repeat in blocks.
std::optional<Repeat> try_repeat(c10::IntArrayRef part, c10::IntArrayRef whole) {
  Repeat repeat;
  size_t i = whole.size();
  for (; i > 0 && part[i - 1] == whole[i - 1]; --i) repeat.period *= whole[i - 1];
  for (; i > 0 && part[i - 1] == 1; --i) repeat.times *= whole[i - 1];
  for (; i > 0 && part[i - 1] == whole[i - 1]; --i) repeat.outer *= whole[i - 1];
  return i == 0 ? std::optional(repeat) : std::nullopt;
}

}  // namespace

std::unique_ptr<Step> emit_activation(const Node& node, Planner& planner, std::string& reason) {
  const Slot* x = planner.tensor(node, "self");
  if (!x || !is_dense_float(*x)) {
    reason = "not a dense float32 tensor";
    return nullptr;
  }
  Activation activation = Activation::kSilu;
  if (node.is("aten::relu")) activation = Activation::kRelu;
  if (node.is("aten::gelu")) {
    const std::string approximate = planner.constant(node, "approximate").toStringRef();
    if (approximate != "none" && approximate != "tanh") {
      reason = "there is no such approximation";
      return nullptr;
    }
    activation = approximate == "tanh" ? Activation::kGeluTanh : Activation::kGeluErf;
  }
  const Slot input = *x;
  const Operand y = planner.define_strided(node.output(), at::kFloat, input.sizes(), input.strides());
  planner.may_overwrite(y, input.operand());
  return std::make_unique<ActivationStep>(activation, input.operand(), y, input.numel());
}

std::unique_ptr<Step> emit_binary(const Node& node, Planner& planner, std::string& reason) {
  const bool multiply = node.is("aten::mul.Tensor");
  const Slot* left = planner.tensor(node, "self");
  const Slot* right = planner.tensor(node, "other");
  if (!left || !right || left->dtype() != at::kFloat || right->dtype() != at::kFloat) {
    reason = "not two float32 tensors";
    return nullptr;
  }
  if (!multiply && !planner.constant(node, "alpha").toScalar().equal(1)) {
    reason = "alpha is not 1";
    return nullptr;
  }
  const std::vector<int64_t> sizes = planner.sizes_of(node.output());
  // Both operations commute: the longer operand comes first.
  Slot a = *left, b = *right;
  if (a.sizes() != sizes || (b.sizes() == sizes && !is_dense_float(b))) std::swap(a, b);
  if (a.sizes() != sizes || b.meta.dim() > a.meta.dim()) {
    reason = "broadcast in a way that has no kernel";
    return nullptr;
  }
  if (!is_dense_float(b)) {
    reason = "an operand that is broadcast is not dense, or neither is";
    return nullptr;
  }
  // A part of a larger tensor, such as one of several linears that were joined, is copied first: below.
  const Slot given = a;
  if (!is_dense_float(a)) a.meta = a.meta.new_empty(a.sizes());
  const Slot ordered = in_order_of(b, a);
  const auto repeat = try_repeat(ordered.sizes(), in_order_of(a, a).sizes());
  const bool whole = a.sizes() == b.sizes();
  if (!repeat || (!whole && !ordered.meta.is_contiguous())) {
    reason = "broadcast in a way that has no kernel";
    return nullptr;
  }
  if (repeat->period == 1 && a.numel() > 1) {
    reason = "broadcast of a single element has no kernel";
    return nullptr;
  }
  if (!is_dense_float(given)) a = planner.contiguous_copy(given, node);
  // Operands in two orders: one of them is turned around first.
  const Operand second =
      whole && !ordered.meta.is_contiguous() ? planner.rows(ordered, node).operand : b.operand();
  const Operand y = planner.define_strided(node.output(), at::kFloat, sizes, a.strides());
  if (a.numel() == 0) return std::make_unique<NothingStep>();
  // Not over an operand that the other one is another part of: that would be read after it was written.
  if (a.buffer != second.buffer) {
    planner.may_overwrite(y, a.operand());
    if (repeat->times == 1) planner.may_overwrite(y, second);
  }
  return std::make_unique<BinaryStep>(multiply, a.operand(), second, y, *repeat);
}

std::unique_ptr<Step> emit_softmax(const Node& node, Planner& planner, std::string& reason) {
  const Slot* x = planner.tensor(node, "self");
  const int64_t dim = planner.constant(node, "dim").toInt();
  const bool last = x && (dim == -1 || dim + 1 == x->meta.dim());
  if (!x || x->dtype() != at::kFloat || !last || x->meta.dim() == 0) {
    reason = "not over the last dimension of a float32 tensor";
    return nullptr;
  }
  if (planner.sizes_of(node.output()) != x->sizes() || node.output()->meta()->dtype != at::kFloat) {
    reason = "another dtype is asked for";
    return nullptr;
  }
  const std::vector<int64_t> sizes = x->sizes().vec();
  const Rows rows = planner.rows(*x, node);
  const Operand y = planner.define(node.output(), at::kFloat, sizes);
  if (rows.stride == rows.k) planner.may_overwrite(y, rows.operand);
  return std::make_unique<SoftmaxStep>(rows, y);
}

std::unique_ptr<Step> emit_copy(const Node& node, Planner& planner, std::string& reason) {
  const Slot* x = planner.tensor(node, "self");
  const std::vector<int64_t> sizes = planner.sizes_of(node.output());
  if (!x || sizes.empty()) {
    reason = "a single element";
    return nullptr;
  }
  const c10::ScalarType dtype = node.output()->meta()->dtype;
  if (c10::isComplexType(dtype) != c10::isComplexType(x->dtype())) {
    reason = "between complex and real";
    return nullptr;
  }
  const Slot from = *x;
  // What keeps the sizes may keep or choose strides; all else is row-major.
  if (from.sizes() == sizes) {
    planner.define_strided(node.output(), dtype, sizes, planner.dense_strides_of(node.output()));
  } else {
    planner.define(node.output(), dtype, sizes);
  }
  Slot to = *planner.tensor_of(node.output());
  // The same elements in row-major order: the copy may be written in the source's sizes.
  if (from.sizes() != sizes) to.meta = to.meta.view(from.sizes());
  return make_copy_step(from, to);
}

std::unique_ptr<Step> emit_cat(const Node& node, Planner& planner, std::string& reason) {
  const std::vector<Slot> parts = planner.tensor_list(node, "tensors");
  const std::vector<int64_t> sizes = planner.sizes_of(node.output());
  const c10::ScalarType dtype = node.output()->meta()->dtype;
  const int64_t rank = static_cast<int64_t>(sizes.size());
  int64_t dim = planner.constant(node, "dim").toInt();
  if (dim < 0) dim += rank;
  for (const Slot& part : parts) {
    // Empty vectors may stand among tensors of any rank: a habit of old that ATen knows.
    if (part.dtype() != dtype || part.meta.dim() != rank || part.meta.is_conj() || part.meta.is_neg()) {
      reason = "parts of several dtypes or ranks";
      return nullptr;
    }
  }
  if (!planner.try_define_cat(node.output()))
    planner.define_strided(node.output(), dtype, sizes, planner.dense_strides_of(node.output()));
  const Slot whole = *planner.tensor_of(node.output());
  std::vector<std::unique_ptr<Step>> copies;
  int64_t at = 0;
  for (const Slot& part : parts) {
    Slot piece = whole;
    piece.meta = whole.meta.narrow(dim, at, part.meta.size(dim));
    at += part.meta.size(dim);
    const bool there =
        part.buffer == piece.buffer && part.operand().byte_offset == piece.operand().byte_offset;
    if (there) continue;  // its step has put it there
    copies.push_back(make_copy_step(part, piece));
  }
  if (copies.empty()) return std::make_unique<NothingStep>();
  return make_copies_step(std::move(copies));
}

}  // namespace halftone::compiler
