// halftone::norm and halftone::quantize_rows.
#include "compiler/executor/emit.h"
#include "kernels/common/kernel_table.h"
#include "kernels/norm/norm.h"
#include "kernels/quantize_rows/quantize_rows.h"

namespace halftone::compiler {

namespace {

using kernels::OutputType;
using kernels::RowFormat;

/// x's rows to bytes, scales and zero points.
struct RowQuantizer {
  const kernels::QuantizeRowsKernel* chosen = nullptr;
  kernels::QuantizeRowsProblem problem;
  RowFormat format = RowFormat::kU8;
  Operand q, scale, zero_point;

  void run(const Frame& frame, const float* x, int64_t x_stride) const {
    kernels::QuantizeRowsArgs args;
    args.x = x;
    args.x_stride = x_stride;
    args.q = frame.at<uint8_t>(q);
    args.q_stride = problem.k;
    args.scale = frame.at<float>(scale);
    args.zero_point = frame.at<int32_t>(zero_point);
    args.format = format;
    kernels::quantize_rows(*chosen, problem, args, *frame.parallel_for);
  }
};

/// Outputs `first` … `first + 2` of the node as quantized rows.
RowQuantizer define_quantized(const Node& node, Planner& planner, size_t first, const Rows& rows,
                              c10::IntArrayRef sizes) {
  RowQuantizer quantizer;
  quantizer.problem = {rows.rows, rows.k};
  quantizer.chosen =
      &kernels::choose_kernel(kernels::quantize_rows_kernels(), quantizer.problem, active_isa());
  const bool symmetric = planner.constant(node, "symmetric").toBool();
  quantizer.format = symmetric ? RowFormat::kS8 : RowFormat::kU8;
  quantizer.q = planner.define(node.output(first), symmetric ? at::kChar : at::kByte, sizes);
  quantizer.scale = planner.define(node.output(first + 1), at::kFloat, {rows.rows});
  quantizer.zero_point = planner.define(node.output(first + 2), at::kInt, {rows.rows});
  return quantizer;
}

class QuantizeRowsStep final : public Step {
 public:
  QuantizeRowsStep(RowQuantizer quantizer, Rows x) : quantizer_(quantizer), x_(x) {}
  void run(Frame& frame) const override {
    quantizer_.run(frame, frame.at<const float>(x_.operand), x_.stride);
  }
  std::string kernel() const override { return quantizer_.chosen->name; }

 private:
  RowQuantizer quantizer_;
  Rows x_;
};

class NormStep final : public Step {
 public:
  const kernels::NormKernel* chosen = nullptr;
  kernels::NormProblem problem;
  Rows x, residual;
  at::Tensor gamma, beta;
  float eps = 0;
  Operand y, sum, workspace;
  RowQuantizer quantizer;  ///< q not valid: none
  size_t workspace_bytes = 0;

  /// The kernel writes quantized rows itself if the floats have no reader.
  bool only_quantized() const { return !y.valid() && quantizer.q.valid(); }

  void run(Frame& frame) const override {
    kernels::NormArgs args;
    args.x = frame.at<const float>(x.operand);
    args.x_stride = x.stride;
    args.residual = frame.at<const float>(residual.operand);
    args.residual_stride = residual.stride;
    args.sum = frame.at<float>(sum);
    args.sum_stride = args.out_stride = problem.k;
    args.gamma = gamma.defined() ? gamma.const_data_ptr<float>() : nullptr;
    args.beta = beta.defined() ? beta.const_data_ptr<float>() : nullptr;
    args.eps = eps;
    args.workspace = frame.at<void>(workspace);
    args.workspace_bytes = workspace_bytes;
    args.type = only_quantized() ? OutputType::kQuantizedRows : OutputType::kFloat32;
    args.out = only_quantized() ? frame.at<void>(quantizer.q) : frame.at<void>(y);
    args.row_format = quantizer.format;
    args.out_scale = frame.at<float>(quantizer.scale);
    args.out_zero_point = frame.at<int32_t>(quantizer.zero_point);
    kernels::norm(*chosen, problem, args, *frame.parallel_for);
    if (!only_quantized() && quantizer.q.valid()) quantizer.run(frame, frame.at<const float>(y), problem.k);
  }
  std::string kernel() const override { return chosen->name; }
};

/// An optional float32 weight as long as a row; false if it is something else.
bool read_weight(const Node& node, Planner& planner, std::string_view name, int64_t k, at::Tensor& weight) {
  const Slot* slot = planner.tensor(node, name);
  if (!slot) return true;
  weight = planner.weight(*slot);
  if (!weight.defined() || weight.scalar_type() != at::kFloat || weight.sizes() != c10::IntArrayRef{k})
    return false;
  weight = weight.contiguous();
  return true;
}

}  // namespace

std::unique_ptr<Step> emit_quantize_rows(const Node& node, Planner& planner, std::string& reason) {
  const Slot* x = planner.tensor(node, "x");
  if (x->dtype() != at::kFloat) {
    reason = "not float32";
    return nullptr;
  }
  const std::vector<int64_t> sizes = x->sizes().vec();
  const Rows rows = planner.rows(*x, node);
  return std::make_unique<QuantizeRowsStep>(define_quantized(node, planner, 0, rows, sizes), rows);
}

std::unique_ptr<Step> emit_norm(const Node& node, Planner& planner, std::string& reason) {
  auto step = std::make_unique<NormStep>();
  const Slot* x = planner.tensor(node, "x");
  const Slot* residual = planner.tensor(node, "residual");
  if (x->dtype() != at::kFloat || (residual && residual->dtype() != at::kFloat)) {
    reason = "not float32";
    return nullptr;
  }
  const int64_t k = x->sizes().back();
  if (!read_weight(node, planner, "gamma", k, step->gamma) ||
      !read_weight(node, planner, "beta", k, step->beta)) {
    reason = "gamma or beta is not a float32 constant as long as a row";
    return nullptr;
  }
  if (residual && residual->sizes() != x->sizes()) {
    reason = "the residual is broadcast";
    return nullptr;
  }
  const std::vector<int64_t> sizes = x->sizes().vec();
  step->x = planner.rows(*x, node);
  if (residual) step->residual = planner.rows(*residual, node);
  const bool rms = planner.constant(node, "kind").toStringRef() == "rms";
  step->problem = {step->x.rows, step->x.k, rms ? kernels::NormKind::kRms : kernels::NormKind::kLayer};
  step->chosen = &kernels::choose_kernel(kernels::norm_kernels(), step->problem, active_isa());
  step->eps = static_cast<float>(planner.constant(node, "eps").toDouble());
  const bool quantized = planner.is_used(node.output(2));
  const bool floats = planner.is_used(node.output(0)) || !quantized;
  if (floats) step->y = planner.define(node.output(0), at::kFloat, sizes);
  if (planner.is_used(node.output(1))) step->sum = planner.define(node.output(1), at::kFloat, sizes);
  if (quantized) step->quantizer = define_quantized(node, planner, 2, step->x, sizes);
  if (step->x.rows == 0 || step->x.k == 0) return std::make_unique<NothingStep>();
  const bool x_is_dense =
      step->x.stride == step->x.k && step->x.operand.buffer != step->residual.operand.buffer;
  if (floats && x_is_dense && !step->sum.valid()) planner.may_overwrite(step->y, step->x.operand);
  step->workspace_bytes = kernels::norm_workspace_bytes(
      step->problem, planner.threads(),
      step->only_quantized() ? OutputType::kQuantizedRows : OutputType::kFloat32);
  step->workspace = planner.scratch(step->workspace_bytes);
  return step;
}

}  // namespace halftone::compiler
