// halftone::fused_linear on the kernels of its format.
#include "base/errors.h"
#include "compiler/executor/emit.h"
#include "compiler/ops/activations.h"
#include "compiler/ops/formats.h"
#include "kernels/common/kernel_table.h"
#include "kernels/int8_linear/int8_linear.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "quant/weight/pack_weights.h"

namespace halftone::compiler {

namespace {

using kernels::Activation;
using kernels::Epilogue;
using kernels::OutputType;
using kernels::RowFormat;

/// Where results go and what happens on the way.
struct Output {
  at::Tensor bias;
  Rows residual;  ///< operand not valid: none
  Activation activation = Activation::kNone;
  Operand y;  ///< not valid: it has no reader
  Operand q, scale, zero_point;
  RowFormat row_format = RowFormat::kU8;
  int64_t n = 0;

  /// The kernel's own way to quantized rows serves only if the floats are not wanted too.
  OutputType type() const { return y.valid() ? OutputType::kFloat32 : OutputType::kQuantizedRows; }

  Epilogue epilogue(const Frame& frame) const {
    Epilogue epilogue;
    epilogue.bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
    epilogue.residual = frame.at<const float>(residual.operand);
    epilogue.residual_stride = residual.stride;
    epilogue.activation = activation;
    epilogue.type = type();
    epilogue.out_stride = n;
    epilogue.out = y.valid() ? frame.at<void>(y) : frame.at<void>(q);
    epilogue.row_format = row_format;
    epilogue.out_scale = frame.at<float>(scale);
    epilogue.out_zero_point = frame.at<int32_t>(zero_point);
    return epilogue;
  }

  void quantize_too(const Frame& frame, int64_t rows) const {
    if (!y.valid() || !q.valid()) return;
    const kernels::QuantizeRowsProblem problem{rows, n};
    kernels::QuantizeRowsArgs args;
    args.x = frame.at<const float>(y);
    args.x_stride = args.q_stride = n;
    args.q = frame.at<uint8_t>(q);
    args.scale = frame.at<float>(scale);
    args.zero_point = frame.at<int32_t>(zero_point);
    args.format = row_format;
    kernels::quantize_rows(kernels::choose_kernel(kernels::quantize_rows_kernels(), problem, active_isa()),
                           problem, args, *frame.parallel_for);
  }
};

class FloatLinearStep final : public Step {
 public:
  FloatLinearStep(ReadyLinear kernel, Rows x, Operand workspace, Output output)
      : kernel_(std::move(kernel)), x_(x), workspace_(workspace), output_(std::move(output)) {}

  void run(Frame& frame) const override {
    kernels::Fp32LinearArgs args;
    args.x = frame.at<const float>(x_.operand);
    args.x_stride = x_.stride;
    args.weights = kernel_.block.const_data_ptr();
    args.epilogue = output_.epilogue(frame);
    args.workspace = frame.at<void>(workspace_);
    args.workspace_bytes = kernel_.workspace_bytes;
    kernel_.call(args, *frame.parallel_for);
    output_.quantize_too(frame, x_.rows);
  }
  std::string kernel() const override { return kernel_.name; }

 private:
  ReadyLinear kernel_;
  Rows x_;
  Operand workspace_;
  Output output_;
};

class Int8LinearStep final : public Step {
 public:
  const kernels::Int8LinearKernel* chosen = nullptr;
  kernels::Int8LinearProblem problem;
  at::Tensor block;
  Rows x;  ///< floats, or bytes where `scale` is valid
  Operand scale, zero_point, workspace;
  RowFormat x_format = RowFormat::kU8;
  size_t workspace_bytes = 0;
  Output output;

  void run(Frame& frame) const override {
    kernels::Int8LinearArgs args;
    args.x_format = x_format;
    if (scale.valid()) {
      args.q = frame.at<const uint8_t>(x.operand);
      args.q_stride = x.stride;
      args.q_scale = frame.at<const float>(scale);
      args.q_zero_point = frame.at<const int32_t>(zero_point);
    } else {
      args.x = frame.at<const float>(x.operand);
      args.x_stride = x.stride;
    }
    args.weights = block.const_data_ptr();
    args.epilogue = output.epilogue(frame);
    args.workspace = frame.at<void>(workspace);
    args.workspace_bytes = workspace_bytes;
    kernels::int8_linear(*chosen, problem, args, *frame.parallel_for);
    output.quantize_too(frame, x.rows);
  }
  std::string kernel() const override { return chosen->name; }
};

const FusedFormat& format_named(const std::string& name) {
  if (const FusedFormat* format = try_fused_format(name)) return *format;
  fail(ErrorCode::kInvalidArgument, "fused_linear has no format \"{}\"", name);
}

/// Reads one node; fills `reason` if it cannot be done natively.
class LinearEmitter {
 public:
  LinearEmitter(const Node& node, Planner& planner, std::string& reason)
      : node_(node), planner_(planner), reason_(reason) {}

  std::unique_ptr<Step> emit() {
    if (!read()) return nullptr;
    x_ = planner_.rows(*planner_.tensor(node_, "x"), node_);
    if (const Slot* residual = planner_.tensor(node_, "residual"))
      output_.residual = planner_.rows(*residual, node_);
    define_outputs();
    const Rows& residual = output_.residual;
    if (residual.operand.valid() && residual.operand.buffer != x_.operand.buffer &&
        residual.stride == output_.n)
      planner_.may_overwrite(output_.y, residual.operand);
    if (x_.rows == 0 || output_.n == 0) return std::make_unique<NothingStep>();
    problem_ = {x_.rows, output_.n, x_.k, planner_.threads(), output_.type()};
    return format_->takes_quantized_rows ? int8_step() : float_step();
  }

 private:
  bool refuse(const char* why) {
    reason_ = why;
    return false;
  }

  bool read() {
    const Slot* x = planner_.tensor(node_, "x");
    quantized_ = planner_.tensor(node_, "x_scale") != nullptr;
    const bool bytes = x->dtype() == at::kByte || x->dtype() == at::kChar;
    if (quantized_ ? !bytes : x->dtype() != at::kFloat) return refuse("activations are not float32");
    for (const Slot& part : planner_.tensor_list(node_, "weight")) {
      parts_.push_back(planner_.weight(part));
      if (!parts_.back().defined()) return refuse("the weight is not constant");
    }
    if (const Slot* bias = planner_.tensor(node_, "bias")) {
      output_.bias = planner_.weight(*bias);
      if (!output_.bias.defined() || output_.bias.scalar_type() != at::kFloat)
        return refuse("the bias is not constant");
      output_.bias = output_.bias.contiguous();
    }
    if (parts_.empty() || parts_[0].dim() != 2) return refuse("the weight is no matrix");
    output_.n = parts_[0].size(0);
    if (output_.bias.defined() && output_.bias.sizes() != c10::IntArrayRef{output_.n})
      return refuse("the bias is broadcast");
    const Slot* residual = planner_.tensor(node_, "residual");
    if (residual && residual->dtype() != at::kFloat) return refuse("the residual is not float32");
    if (residual && residual->sizes() != c10::IntArrayRef(result_sizes()))
      return refuse("the residual is broadcast");
    if (quantized_ && (!planner_.tensor(node_, "x_scale")->meta.is_contiguous() ||
                       !planner_.tensor(node_, "x_zero_point")->meta.is_contiguous()))
      return refuse("scales or zero points of rows are no neighbours");
    format_ = &format_named(planner_.constant(node_, "format").toStringRef());
    attributes_ = planner_.constant(node_, "attributes").toIntVector();
    output_.activation = *ops::linear_activation(planner_.constant(node_, "activation").toStringRef()).linear;
    output_.row_format = planner_.constant(node_, "symmetric").toBool() ? RowFormat::kS8 : RowFormat::kU8;
    const char* refusal = format_->refuse != nullptr ? format_->refuse(parts_, attributes_) : nullptr;
    return refusal == nullptr || refuse(refusal);
  }

  std::vector<int64_t> result_sizes() const {
    std::vector<int64_t> sizes = planner_.tensor(node_, "x")->sizes().vec();
    sizes.back() = output_.n;
    return sizes;
  }

  void define_outputs() {
    const std::vector<int64_t> sizes = result_sizes();
    if (planner_.is_used(node_.output(0))) output_.y = planner_.define(node_.output(0), at::kFloat, sizes);
    if (!planner_.is_used(node_.output(1))) return;
    const auto bytes = output_.row_format == RowFormat::kS8 ? at::kChar : at::kByte;
    output_.q = planner_.define(node_.output(1), bytes, sizes);
    output_.scale = planner_.define(node_.output(2), at::kFloat, {x_.rows});
    output_.zero_point = planner_.define(node_.output(3), at::kInt, {x_.rows});
  }

  std::unique_ptr<Step> int8_step() {
    auto step = std::make_unique<Int8LinearStep>();
    step->problem = {problem_.m, problem_.n, problem_.k, static_cast<int>(attributes_.at(0))};
    step->chosen = &kernels::choose_int8_linear(step->problem);
    step->block = packed_int8(parts_[0], parts_[1], step->problem.weight_bits, step->chosen->tile);
    step->x = x_;
    step->x_format = attributes_.at(1) != 0 ? RowFormat::kS8 : RowFormat::kU8;
    if (quantized_) {
      step->scale = planner_.tensor(node_, "x_scale")->operand();
      step->zero_point = planner_.tensor(node_, "x_zero_point")->operand();
    }
    step->workspace_bytes =
        kernels::int8_linear_workspace_bytes(*step->chosen, step->problem, problem_.threads, problem_.type);
    step->workspace = planner_.scratch(step->workspace_bytes);
    step->output = std::move(output_);
    return step;
  }

  std::unique_ptr<Step> float_step() {
    ReadyLinear kernel = format_->ready(parts_, attributes_, problem_);
    const Operand workspace = planner_.scratch(kernel.workspace_bytes);
    return std::make_unique<FloatLinearStep>(std::move(kernel), x_, workspace, std::move(output_));
  }

  const Node& node_;
  Planner& planner_;
  std::string& reason_;
  const FusedFormat* format_ = nullptr;
  std::vector<int64_t> attributes_;
  std::vector<at::Tensor> parts_;
  bool quantized_ = false;
  Rows x_;
  Output output_;
  LinearProblem problem_;
};

}  // namespace

std::unique_ptr<Step> emit_linear(const Node& node, Planner& planner, std::string& reason) {
  return LinearEmitter(node, planner, reason).emit();
}

}  // namespace halftone::compiler
