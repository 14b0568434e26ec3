// halftone::fused_linear on the kernels of its format.
#include <functional>

#include "base/errors.h"
#include "compiler/executor/lower.h"
#include "compiler/ops/activations.h"
#include "kernels/bf16_linear/bf16_linear.h"
#include "kernels/common/kernel_table.h"
#include "kernels/fp8_linear/fp8_linear.h"
#include "kernels/int4_dynamic_linear/int4_dynamic_linear.h"
#include "kernels/int4_weight_only_linear/int4_weight_only_linear.h"
#include "kernels/int8_linear/int8_linear.h"
#include "kernels/int8_weight_only_linear/int8_weight_only_linear.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "quant/weight/bits.h"
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
  Operand y;  ///< not valid: nobody reads it
  Operand q, scale, zero_point;
  RowFormat row_format = RowFormat::kU8;
  int64_t n = 0;

  /// The kernel's own way to quantized rows serves only where the floats are not wanted too.
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
                           problem, args, *frame.splitter);
  }
};

struct Problem {
  int64_t m = 0, n = 0, k = 0;
  int threads = 1;
  OutputType type = OutputType::kFloat32;
};

/// A kernel that takes rows of floats, chosen and ready.
struct FloatKernel {
  const char* name = nullptr;
  at::Tensor block;
  size_t workspace_bytes = 0;
  std::function<void(const kernels::Fp32LinearArgs&, Splitter&)> call;
};

class FloatLinearStep final : public Step {
 public:
  FloatLinearStep(FloatKernel kernel, Rows x, Operand workspace, Output output)
      : kernel_(std::move(kernel)), x_(x), workspace_(workspace), output_(std::move(output)) {}

  void run(Frame& frame) const override {
    kernels::Fp32LinearArgs args;
    args.x = frame.at<const float>(x_.operand);
    args.x_stride = x_.stride;
    args.weights = kernel_.block.const_data_ptr();
    args.epilogue = output_.epilogue(frame);
    args.workspace = frame.at<void>(workspace_);
    args.workspace_bytes = kernel_.workspace_bytes;
    kernel_.call(args, *frame.splitter);
    output_.quantize_too(frame, x_.rows);
  }
  std::string kernel() const override { return kernel_.name; }

 private:
  FloatKernel kernel_;
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
    kernels::int8_linear(*chosen, problem, args, *frame.splitter);
    output.quantize_too(frame, x.rows);
  }
  std::string kernel() const override { return chosen->name; }
};

/// Calls `pack` with the parts of an int4 weight as its packers want them.
template <typename Pack>
at::Tensor pack_int4_parts(const char* kind, const std::vector<at::Tensor>& parts, const Problem& p,
                           Pack pack) {
  const auto integers = [&](int64_t first, int64_t count) {
    return unpack_bits(parts[0].narrow(0, first, count), 4, p.k);
  };
  const at::Tensor zero_point = parts.size() > 2 ? parts[2] : at::Tensor();
  // Undefined ones too: the operators key their blocks by the same three parts.
  return pack({kind, {parts[0], parts[1], zero_point}, p.n, p.k, integers, parts[1], zero_point});
}

FloatKernel fp32_kernel(const std::vector<at::Tensor>& parts, const Problem& p) {
  const kernels::Fp32LinearProblem problem{p.m, p.n, p.k};
  const auto& kernel = kernels::choose_fp32_linear(problem);
  const auto floats = [&](int64_t first, int64_t count) {
    return parts[0].narrow(0, first, count).contiguous();
  };
  return {kernel.name, packed_fp32({"fp32_linear", parts, p.n, p.k, floats}, kernel.tile_n),
          kernels::fp32_linear_workspace_bytes(kernel, problem, p.threads, p.type),
          [&kernel, problem](const kernels::Fp32LinearArgs& args, Splitter& splitter) {
            kernels::fp32_linear(kernel, problem, args, splitter);
          }};
}

FloatKernel int8_weight_only_kernel(const std::vector<at::Tensor>& parts, const Problem& p) {
  const kernels::Int8WeightOnlyProblem problem{p.m, p.n, p.k};
  const auto& kernel = kernels::choose_int8_weight_only(problem);
  const auto integers = [&](int64_t first, int64_t count) {
    return parts[0].narrow(0, first, count).contiguous();
  };
  return {kernel.name,
          packed_int8_weight_only({"int8_weight_only_linear", parts, p.n, p.k, integers, parts[1]},
                                  kernel.tile_n),
          kernels::int8_weight_only_workspace_bytes(problem, p.threads, p.type),
          [&kernel, problem](const kernels::Fp32LinearArgs& args, Splitter& splitter) {
            kernels::int8_weight_only_linear(kernel, problem, args, splitter);
          }};
}

FloatKernel int4_weight_only_kernel(const std::vector<at::Tensor>& parts, const Problem& p, int group) {
  const kernels::Int4WeightOnlyProblem problem{p.m, p.n, p.k, group};
  const auto& kernel = kernels::choose_int4_weight_only(problem);
  return {kernel.name,
          pack_int4_parts("int4_weight_only_linear", parts, p,
                          [&](const PackSource& source) {
                            return packed_int4_weight_only(source, group, kernel.tile_n);
                          }),
          kernels::int4_weight_only_workspace_bytes(problem, p.threads, p.type),
          [&kernel, problem](const kernels::Fp32LinearArgs& args, Splitter& splitter) {
            kernels::int4_weight_only_linear(kernel, problem, args, splitter);
          }};
}

FloatKernel int4_dynamic_kernel(const std::vector<at::Tensor>& parts, const Problem& p, int group) {
  const kernels::Int4DynamicProblem problem{p.m, p.n, p.k, group};
  const auto& kernel = kernels::choose_int4_dynamic(problem);
  return {kernel.name,
          pack_int4_parts(
              "int4_dynamic_linear", parts, p,
              [&](const PackSource& source) { return packed_int4_dynamic(source, group, kernel.tile_n); }),
          kernels::int4_dynamic_workspace_bytes(kernel, problem, p.threads, p.type),
          [&kernel, problem](const kernels::Fp32LinearArgs& args, Splitter& splitter) {
            kernels::int4_dynamic_linear(kernel, problem, args, splitter);
          }};
}

FloatKernel fp8_kernel(const std::vector<at::Tensor>& parts, const Problem& p, bool dynamic) {
  const kernels::Fp8LinearProblem problem{
      p.m, p.n, p.k, dynamic ? kernels::Fp8Activations::kDynamicE4m3 : kernels::Fp8Activations::kFloat32};
  const auto& kernel = kernels::choose_fp8_linear(problem);
  return {kernel.name, packed_fp8(parts[0], parts[1], kernel.tile_n),
          kernels::fp8_linear_workspace_bytes(problem, p.threads, p.type),
          [&kernel, problem](const kernels::Fp32LinearArgs& args, Splitter& splitter) {
            kernels::fp8_linear(kernel, problem, args, splitter);
          }};
}

FloatKernel bf16_kernel(const std::vector<at::Tensor>& parts, const Problem& p) {
  const kernels::Bf16LinearProblem problem{p.m, p.n, p.k};
  const auto& kernel = kernels::choose_bf16_linear(problem);
  return {kernel.name, packed_bf16(parts[0], kernel.tile_n),
          kernels::bf16_linear_workspace_bytes(problem, p.threads, p.type),
          [&kernel, problem](const kernels::Fp32LinearArgs& args, Splitter& splitter) {
            kernels::bf16_linear(kernel, problem, args, splitter);
          }};
}

/// Reads one node; fills `reason` where it cannot be done natively.
class LinearLowering {
 public:
  LinearLowering(const Node& node, Planner& planner, std::string& reason)
      : node_(node), planner_(planner), reason_(reason) {}

  std::unique_ptr<Step> lower() {
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
    return format_ == "int8" ? int8_step() : float_step();
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
    format_ = planner_.constant(node_, "format").toStringRef();
    attributes_ = planner_.constant(node_, "attributes").toIntVector();
    output_.activation = *ops::linear_activation(planner_.constant(node_, "activation").toStringRef()).linear;
    output_.row_format = planner_.constant(node_, "symmetric").toBool() ? RowFormat::kS8 : RowFormat::kU8;
    if (format_ == "fp8" && attributes_.at(0) != 0 && attributes_.at(1) != 0) {
      return refuse("fp8 activations with one scale for all rows: no kernel");
    }
    if (format_ == "fp32" && parts_[0].scalar_type() != at::kFloat)
      return refuse("the weight is not float32");
    return true;
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
    FloatKernel kernel;
    if (format_ == "fp32") {
      kernel = fp32_kernel(parts_, problem_);
    } else if (format_ == "int8_weight_only") {
      kernel = int8_weight_only_kernel(parts_, problem_);
    } else if (format_ == "int4") {
      const int group = static_cast<int>(attributes_.at(0));
      kernel = attributes_.at(1) != 0 ? int4_dynamic_kernel(parts_, problem_, group)
                                      : int4_weight_only_kernel(parts_, problem_, group);
    } else if (format_ == "fp8") {
      kernel = fp8_kernel(parts_, problem_, attributes_.at(0) != 0);
    } else if (format_ == "bf16") {
      kernel = bf16_kernel(parts_, problem_);
    } else {
      fail(ErrorCode::kInvalidArgument, "fused_linear has no format \"{}\"", format_);
    }
    const Operand workspace = planner_.scratch(kernel.workspace_bytes);
    return std::make_unique<FloatLinearStep>(std::move(kernel), x_, workspace, std::move(output_));
  }

  const Node& node_;
  Planner& planner_;
  std::string& reason_;
  std::string format_;
  std::vector<int64_t> attributes_;
  std::vector<at::Tensor> parts_;
  bool quantized_ = false;
  Rows x_;
  Output output_;
  Problem problem_;
};

}  // namespace

std::unique_ptr<Step> lower_linear(const Node& node, Planner& planner, std::string& reason) {
  return LinearLowering(node, planner, reason).lower();
}

}  // namespace halftone::compiler
