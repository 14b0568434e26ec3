// halftone::conv on the kernels of kernels/fp32_conv.
#include "base/errors.h"
#include "compiler/executor/channels_last.h"
#include "compiler/executor/emit.h"
#include "compiler/executor/emit/conv_candidates.h"
#include "compiler/ops/activations.h"
#include "kernels/fp32_conv/fp32_conv.h"
#include "kernels/fp32_conv/pack.h"
#include "quant/weight/packing_cache.h"

namespace halftone::compiler {

namespace {

using kernels::ConvActivation;
using kernels::ConvExtent;
using kernels::ConvShape;
using kernels::kConvDims;

/// An input whose channels are no neighbours in memory is turned around first, unless it has so few that the
/// kernel gathers them as fast.
constexpr int64_t kFewChannels = 4;

class ConvStep final : public Step {
 public:
  const kernels::Fp32ConvKernel* chosen = nullptr;
  ConvShape shape;
  at::Tensor block, bias;
  Operand x, y, workspace;
  int64_t y_stride = 0;  ///< from pixel to pixel
  kernels::ConvStrides x_strides;
  Rows residual;  ///< operand not valid: none
  kernels::ConvActivate activate;
  size_t workspace_bytes = 0;

  void run(Frame& frame) const override {
    kernels::Fp32ConvArgs args;
    args.x = frame.at<const float>(x);
    args.x_strides = x_strides;
    args.weights = block.const_data_ptr();
    args.bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
    args.residual = frame.at<const float>(residual.operand);
    args.residual_stride = residual.stride;
    args.activate = activate;
    args.out = frame.at<float>(y);
    args.out_stride = y_stride;
    args.workspace = frame.at<void>(workspace);
    args.workspace_bytes = workspace_bytes;
    kernels::fp32_conv(*chosen, shape, args, *frame.parallel_for);
  }
  std::string kernel() const override { return chosen->name; }
};

/// Packed as the kernel wants it, once in a process.
at::Tensor packed_conv(const kernels::Fp32ConvKernel& kernel, const ConvShape& shape,
                       const at::Tensor& weight) {
  // One weight may serve as a plain and as a transposed one, and in groups or not: blocks of their own.
  const PackLayout layout{shape.transposed ? "fp32_conv_transposed" : "fp32_conv",
                          static_cast<int>(kernels::kFp32ConvPackVersion), kernel.tile_n,
                          static_cast<int>(kernel.algorithm) + 16 * static_cast<int>(shape.groups)};
  return packed_block({weight}, layout, kernels::fp32_conv_packed_bytes(kernel, shape), [&](void* out) {
    const at::Tensor plain = weight.contiguous();
    kernels::pack_fp32_conv(kernel, shape, plain.const_data_ptr<float>(), out);
  });
}

/// Reads one node; fills `reason` if it cannot be done natively.
class ConvEmitter {
 public:
  ConvEmitter(const Node& node, Planner& planner, std::string& reason)
      : node_(node), planner_(planner), reason_(reason) {}

  std::unique_ptr<Step> emit() {
    if (!read()) return nullptr;
    read_shape();
    kernels::check_conv_shape("halftone::conv", step_->shape);
    if (planner_.convolutions() != ConvChoice::kHalftone && step_->shape.batch > 0) {
      if (auto mkldnn = try_mkldnn_step()) return mkldnn;
    }
    if (const Slot* residual = planner_.tensor(node_, "residual"))
      step_->residual = planner_.rows(channels_at_the_end(*residual), node_);
    bind_input();
    define_output();
    const Rows& residual = step_->residual;
    if (residual.operand.valid() && residual.operand.buffer != step_->x.buffer &&
        residual.stride == step_->y_stride)
      planner_.may_overwrite(step_->y, residual.operand);
    if (step_->shape.batch == 0) return std::make_unique<NothingStep>();
    choose();
    return std::move(step_);
  }

 private:
  bool refuse(const char* why) {
    reason_ = why;
    return false;
  }

  bool read() {
    const Slot* x = planner_.tensor(node_, "x");
    if (!x || x->dtype() != at::kFloat) return refuse("activations are not float32");
    weight_ = planner_.weight(*planner_.tensor(node_, "weight"));
    if (!weight_.defined() || weight_.scalar_type() != at::kFloat)
      return refuse("the weight is not a float32 constant");
    if (const Slot* bias = planner_.tensor(node_, "bias")) {
      step_->bias = planner_.weight(*bias);
      if (!step_->bias.defined() || step_->bias.scalar_type() != at::kFloat)
        return refuse("the bias is not a float32 constant");
      step_->bias = step_->bias.contiguous();
    }
    const Slot* residual = planner_.tensor(node_, "residual");
    if (residual && residual->dtype() != at::kFloat) return refuse("the residual is not float32");
    const std::vector<int64_t> out = planner_.sizes_of(node_.output());
    if (residual && residual->sizes() != c10::IntArrayRef(out)) return refuse("the residual is broadcast");
    if (step_->bias.defined() && step_->bias.sizes() != c10::IntArrayRef{out.at(1)})
      return refuse("the bias is not one number for each channel");
    step_->activate.kind = ops::conv_activation(planner_.constant(node_, "activation").toStringRef()).conv;
    if (step_->activate.kind == ConvActivation::kClamp) {
      step_->activate.lo = static_cast<float>(planner_.constant(node_, "lo").toDouble());
      step_->activate.hi = static_cast<float>(planner_.constant(node_, "hi").toDouble());
    }
    return true;
  }

  ConvExtent numbers(std::string_view name, int64_t otherwise) const {
    std::vector<int64_t> values = planner_.constant(node_, name).toIntVector();
    // Padding in front comes first; what is behind follows from the size of the output.
    values.resize(static_cast<size_t>(weight_.dim()) - 2);
    return extent_of(values, otherwise);
  }

  void read_shape() {
    const c10::IntArrayRef sizes = planner_.tensor(node_, "x")->sizes();
    const std::vector<int64_t> out = planner_.sizes_of(node_.output());
    ConvShape& shape = step_->shape;
    shape.batch = sizes[0];
    shape.in_channels = sizes[1];
    shape.out_channels = out[1];
    shape.groups = planner_.constant(node_, "groups").toInt();
    shape.in = extent_of(sizes.slice(2), 1);
    shape.kernel = extent_of(weight_.sizes().slice(2), 1);
    shape.stride = numbers("stride", 1);
    shape.pad = numbers("padding", 0);
    shape.dilation = numbers("dilation", 1);
    shape.out = extent_of(c10::IntArrayRef(out).slice(2), 1);
    shape.transposed = planner_.constant(node_, "transposed").toBool();
  }

  ConvCandidate candidate() const {
    const std::vector<int64_t> padding = planner_.constant(node_, "padding").toIntVector();
    const auto dims = static_cast<size_t>(weight_.dim()) - 2;
    return {step_->shape,
            dims,
            padding.size() != dims,
            step_->activate,
            weight_,
            step_->bias,
            planner_.tensor(node_, "residual") != nullptr};
  }

  /// mkldnn's, where that was asked for or is faster; what was chosen is noted.
  std::unique_ptr<Step> try_mkldnn_step() {
    const ConvCandidate both = candidate();
    const auto note = [&](const std::string& why) {
      planner_.note_choice(fmt::format("convolution in layer \"{}\": {}", node_.source().layer, why));
    };
    if (const char* refusal = mkldnn_conv_refusal(both)) {
      note(fmt::format("our kernel: {}", refusal));
      return nullptr;
    }
    std::string why = "mkldnn was asked for";
    if (planner_.convolutions() == ConvChoice::kFastest) {
      const auto& kernel = kernels::choose_fp32_conv({both.shape});
      const ConvTimes times =
          time_conv(both, kernel, packed_conv(kernel, both.shape, weight_), planner_.threads());
      why = fmt::format("{} {:.3f} ms, mkldnn {:.3f} ms", kernel.name, times.ours, times.mkldnn);
      if (!times.mkldnn_is_clearly_faster()) {
        note("our kernel: " + why);
        return nullptr;
      }
    }
    note("mkldnn: " + why);
    const Slot x = *planner_.tensor(node_, "x");
    const Slot* residual = planner_.tensor(node_, "residual");
    const Slot kept = residual ? *residual : Slot();  // defining an output moves the planner's values
    return mkldnn_conv_step(both, x, residual ? &kept : nullptr,
                            planner_.define_by_aten(node_, "mkldnn: " + why));
  }

  void bind_input() {
    Slot x = *planner_.tensor(node_, "x");
    const bool neighbours = x.meta.stride(1) == 1 || x.meta.size(1) == 1;
    if (!neighbours && step_->shape.in_channels > kFewChannels) {
      const Rows rows = planner_.rows(channels_at_the_end(x), node_);
      step_->x = rows.operand;
      step_->x_strides = kernels::channels_last_strides(step_->shape, rows.stride);
      return;
    }
    step_->x = x.operand();
    step_->x_strides.batch = x.meta.stride(0);
    step_->x_strides.channel = x.meta.size(1) == 1 ? 1 : x.meta.stride(1);
    step_->x_strides.pixel = extent_of(x.strides().slice(2), 0);
  }

  void define_output() {
    const std::vector<int64_t> sizes = planner_.sizes_of(node_.output());
    const Slot y = planner_.define_channels_last(node_.output(), sizes);
    step_->y = y.operand();
    step_->y_stride = y.strides().back();
  }

  void choose() {
    const kernels::Fp32ConvProblem problem{step_->shape, /*winograd=*/true, step_->x_strides.channel != 1};
    step_->chosen = &kernels::choose_fp32_conv(problem);
    step_->block = packed_conv(*step_->chosen, step_->shape, weight_);
    step_->workspace_bytes =
        kernels::fp32_conv_workspace_bytes(*step_->chosen, step_->shape, planner_.threads());
    step_->workspace = planner_.scratch(step_->workspace_bytes);
  }

  const Node& node_;
  Planner& planner_;
  std::string& reason_;
  at::Tensor weight_;
  std::unique_ptr<ConvStep> step_ = std::make_unique<ConvStep>();
};

}  // namespace

std::unique_ptr<Step> emit_conv(const Node& node, Planner& planner, std::string& reason) {
  return ConvEmitter(node, planner, reason).emit();
}

}  // namespace halftone::compiler
