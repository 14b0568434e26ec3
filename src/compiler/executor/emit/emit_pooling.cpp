// Pooling on tensors with the channels last: every operator is a list of runs in each dimension.
#include <numeric>

#include "compiler/executor/channels_last.h"
#include "compiler/executor/emit.h"
#include "kernels/common/kernel_table.h"
#include "kernels/pooling/pooling.h"

namespace halftone::compiler {

namespace {

using kernels::kConvDims;
using kernels::PoolKind;
using kernels::PoolProblem;
using kernels::PoolRun;
using Runs = std::vector<PoolRun>;

class PoolStep final : public Step {
 public:
  PoolProblem problem;
  Rows x;
  Operand y;
  int64_t y_stride = 0;  ///< from pixel to pixel
  Runs runs[kConvDims];
  const kernels::PoolKernel* chosen = nullptr;

  void run(Frame& frame) const override {
    kernels::PoolArgs args;
    args.x = frame.at<const float>(x.operand);
    args.x_stride = x.stride;
    args.y = frame.at<float>(y);
    args.y_stride = y_stride;
    for (size_t d = 0; d < kConvDims; ++d) args.runs[d] = runs[d];
    kernels::pool(*chosen, problem, args, *frame.parallel_for);
  }
  std::string kernel() const override { return chosen->name; }
};

/// One dimension of a window that moves.
struct Window {
  int64_t size = 1, stride = 1, pad = 0, step = 1;
};

Runs max_runs(const Window& window, int64_t in, int64_t out) {
  Runs runs;
  for (int64_t o = 0; o < out; ++o) {
    const int64_t start = o * window.stride - window.pad;
    const int64_t skipped = start < 0 ? (-start + window.step - 1) / window.step : 0;
    const int64_t first = start + skipped * window.step;
    const int64_t fit = first < in ? (in - 1 - first) / window.step + 1 : 0;
    runs.push_back({first, std::max<int64_t>(0, std::min(window.size - skipped, fit)), 1});
  }
  return runs;
}

Runs mean_runs(const Window& window, int64_t in, int64_t out, bool count_padding) {
  Runs runs;
  for (int64_t o = 0; o < out; ++o) {
    const int64_t start = o * window.stride - window.pad;
    const int64_t end = std::min(start + window.size, in + window.pad);
    const int64_t first = std::max<int64_t>(start, 0),
                  count = std::max<int64_t>(0, std::min(end, in) - first);
    runs.push_back({first, count, std::max<int64_t>(1, count_padding ? end - start : count)});
  }
  return runs;
}

/// As adaptive pooling cuts its input: pieces of nearly the same size, which may overlap.
Runs adaptive_runs(int64_t in, int64_t out) {
  Runs runs;
  for (int64_t o = 0; o < out; ++o) {
    const int64_t first = o * in / out, end = ((o + 1) * in + out - 1) / out;
    runs.push_back({first, end - first, end - first});
  }
  return runs;
}

class PoolEmitter {
 public:
  PoolEmitter(const Node& node, Planner& planner, std::string& reason)
      : node_(node), planner_(planner), reason_(reason) {}

  std::unique_ptr<Step> emit() {
    const Slot* x = planner_.tensor(node_, "self");
    if (!x || x->dtype() != at::kFloat || x->meta.dim() < 3 || x->meta.dim() > 5)
      return refuse("not float32");
    if (node_.outputs().size() > 1 && planner_.is_used(node_.output(1))) return refuse("indices are wanted");
    const bool reduces = node_.is("aten::mean.dim") || node_.is("aten::amax");
    const int64_t wanted = reduces ? x->meta.dim() : pooled_rank();
    if (x->meta.dim() != wanted) return refuse("not a batch");
    // Runs are listed for each pixel, also if there is no channel.
    if (x->numel() == 0 || c10::multiply_integers(planner_.sizes_of(node_.output())) == 0)
      return refuse("an empty tensor");
    const auto rows = try_rows(channels_at_the_end(*x));
    if (!rows) return refuse("the channels are not last in memory");
    step_->x = *rows;
    step_->problem.batch = x->sizes()[0];
    step_->problem.channels = x->sizes()[1];
    step_->problem.in = extent_of(x->sizes().slice(2), 1);
    if (!(reduces ? read_reduction(*x) : read_windows())) return nullptr;
    define();
    step_->chosen = &kernels::choose_kernel(kernels::pool_kernels(), step_->problem, active_isa());
    return std::move(step_);
  }

 private:
  std::nullptr_t refuse(const char* why) {
    reason_ = why;
    return nullptr;
  }

  /// Dimensions of a batch, by the operator's name.
  int64_t pooled_rank() const {
    const std::string& target = node_.target();
    return target.find("1d") != std::string::npos ? 3 : target.find("2d") != std::string::npos ? 4 : 5;
  }

  bool read_reduction(const Slot& x) {
    std::vector<bool> reduced(static_cast<size_t>(x.meta.dim()), false);
    const c10::IValue dims = planner_.constant(node_, "dim");
    if (dims.isNone()) return reason_ = "over all dimensions", false;
    for (const int64_t dim : dims.toIntVector())
      reduced[static_cast<size_t>(dim < 0 ? dim + x.meta.dim() : dim)] = true;
    const bool pixels = !reduced[0] && !reduced[1] && std::count(reduced.begin(), reduced.end(), false) == 2;
    if (!pixels || node_.output()->meta()->dtype != at::kFloat || x.numel() == 0) {
      reason_ = "not over all pixels of float32";
      return false;
    }
    const bool mean = node_.is("aten::mean.dim");
    step_->problem.kind = mean ? PoolKind::kMean : PoolKind::kMax;
    for (size_t d = 0; d < kConvDims; ++d) step_->runs[d] = adaptive_runs(step_->problem.in[d], 1);
    return true;
  }

  bool read_windows() {
    const std::vector<int64_t> sizes = planner_.sizes_of(node_.output());
    PoolProblem& problem = step_->problem;
    problem.out = extent_of(c10::IntArrayRef(sizes).slice(2), 1);
    const bool max = node_.target().find("max_pool") != std::string::npos;
    problem.kind = max ? PoolKind::kMax : PoolKind::kMean;
    if (node_.target().find("adaptive") != std::string::npos) {
      for (size_t d = 0; d < kConvDims; ++d) step_->runs[d] = adaptive_runs(problem.in[d], problem.out[d]);
      return true;
    }
    if (max) problem.step = numbers("dilation", 1);
    const auto size = numbers("kernel_size", 1), pad = numbers("padding", 0);
    const bool given = !planner_.constant(node_, "stride").toIntVector().empty();
    const auto stride = given ? numbers("stride", 1) : size;
    const bool count_padding = max || planner_.constant(node_, "count_include_pad").toBool();
    for (size_t d = 0; d < kConvDims; ++d) {
      const Window window{size[d], stride[d], pad[d], problem.step[d]};
      step_->runs[d] = max ? max_runs(window, problem.in[d], problem.out[d])
                           : mean_runs(window, problem.in[d], problem.out[d], count_padding);
    }
    return max || pooled_rank() == 3 || read_divisor();
  }

  /// A divisor of the model's own takes the place of the window's size.
  bool read_divisor() {
    const c10::IValue divisor = planner_.constant(node_, "divisor_override");
    if (divisor.isNone()) return true;
    if (divisor.toInt() < 1) {
      reason_ = "a divisor that is not positive";
      return false;
    }
    for (size_t d = 0; d < kConvDims; ++d) {
      for (PoolRun& run : step_->runs[d]) run.divide = d == 0 ? divisor.toInt() : 1;
    }
    return true;
  }

  kernels::ConvExtent numbers(std::string_view name, int64_t otherwise) const {
    std::vector<int64_t> values = planner_.constant(node_, name).toIntVector();
    // A single number counts for each dimension.
    const size_t dims = static_cast<size_t>(planner_.tensor(node_, "self")->meta.dim()) - 2;
    if (values.size() == 1) values.resize(dims, values[0]);
    return extent_of(values, otherwise);
  }

  void define() {
    const std::vector<int64_t> sizes = planner_.sizes_of(node_.output());
    if (sizes.size() < 3) {
      step_->y = planner_.define(node_.output(), at::kFloat, sizes);
      step_->y_stride = step_->problem.channels;
      return;
    }
    const Slot y = planner_.define_channels_last(node_.output(), sizes);
    step_->y = y.operand();
    step_->y_stride = y.strides().back();
  }

  const Node& node_;
  Planner& planner_;
  std::string& reason_;
  std::unique_ptr<PoolStep> step_ = std::make_unique<PoolStep>();
};

}  // namespace

std::unique_ptr<Step> emit_pooling(const Node& node, Planner& planner, std::string& reason) {
  return PoolEmitter(node, planner, reason).emit();
}

}  // namespace halftone::compiler
