// halftone::int8_conv and halftone::int8_static_linear on kernels/int8_conv.
#include "compiler/executor/emit/emit_int8.h"
#include "quant/static_int8/layout.h"
#include "quant/static_int8/product.h"

namespace halftone::compiler {

namespace {

class Int8ProductStep final : public Step {
 public:
  static_int8::Product product;
  Rows x, residual;  ///< residual not valid: none
  Operand y, workspace;
  bool floats = false;

  void run(Frame& frame) const override {
    kernels::Int8ConvArgs args = product.args;
    args.x = frame.at<const uint8_t>(x.operand);
    args.x_stride = x.stride;
    args.residual = frame.at<const uint8_t>(residual.operand);
    if (residual.operand.valid()) args.residual_stride = residual.stride;
    if (floats) {
      args.out_f32 = frame.at<float>(y);
    } else {
      args.out = frame.at<uint8_t>(y);
    }
    args.workspace = frame.at<void>(workspace);
    kernels::int8_conv(*product.kernel, product.problem, args, *frame.parallel_for);
  }
  std::string kernel() const override { return product.kernel->name; }
};

/// Reads one node; fills `reason` if it cannot be done natively.
class Int8ProductEmitter {
 public:
  Int8ProductEmitter(const Node& node, Planner& planner, std::string& reason)
      : node_(node), planner_(planner), reason_(reason) {}

  std::unique_ptr<Step> emit(bool linear) {
    if (!read()) return nullptr;
    const Slot x = *planner_.tensor(node_, "x");
    linear ? read_linear(x) : read_conv(x);
    const auto as_rows = [&](const Slot& slot) {
      return planner_.rows(linear ? slot : channels_at_the_end(slot), node_);
    };
    step_->x = as_rows(x);
    if (const Slot* residual = planner_.tensor(node_, "residual")) step_->residual = as_rows(*residual);
    define_output(linear);
    if (spec_.shape.batch == 0) return std::make_unique<NothingStep>();
    step_->product = static_int8::prepare_product(spec_);
    const static_int8::Product& product = step_->product;
    step_->product.args.workspace_bytes =
        kernels::int8_conv_workspace_bytes(*product.kernel, product.problem, planner_.threads());
    step_->workspace = planner_.scratch(product.args.workspace_bytes);
    count_work(x);
    return std::move(step_);
  }

 private:
  bool refuse(const char* why) {
    reason_ = why;
    return false;
  }
  double real(std::string_view name) const { return planner_.constant(node_, name).toDouble(); }
  int64_t whole(std::string_view name) const { return planner_.constant(node_, name).toInt(); }

  bool read() {
    const Slot* x = planner_.tensor(node_, "x");
    const Slot* residual = planner_.tensor(node_, "residual");
    if (!x || x->dtype() != at::kByte || (residual && residual->dtype() != at::kByte))
      return refuse("activations are not uint8");
    spec_.name = node_.target().c_str();
    spec_.weight = planner_.weight(*planner_.tensor(node_, "weight"));
    spec_.weight_scale = planner_.weight(*planner_.tensor(node_, "weight_scale"));
    if (!spec_.weight.defined() || !spec_.weight_scale.defined()) return refuse("the weight is not constant");
    if (const Slot* bias = planner_.tensor(node_, "bias")) {
      spec_.bias = planner_.weight(*bias);
      if (!spec_.bias.defined()) return refuse("the bias is not constant");
    }
    spec_.x = static_int8::to_params(spec_.name, real("x_scale"), whole("x_zero_point"));
    spec_.x_max = whole("x_max");
    if (residual)
      spec_.residual =
          static_int8::to_params(spec_.name, real("residual_scale"), whole("residual_zero_point"));
    step_->floats = planner_.constant(node_, "float_output").toBool();
    if (!step_->floats)
      spec_.out = static_int8::to_target(spec_.name, real("out_scale"), whole("out_zero_point"),
                                         whole("out_min"), whole("out_max"));
    return true;
  }

  void read_conv(const Slot& x) {
    const auto numbers = [&](std::string_view name) { return planner_.constant(node_, name).toIntVector(); };
    const std::vector<int64_t> stride = numbers("stride"), padding = numbers("padding"),
                               dilation = numbers("dilation"), behind = numbers("output_padding");
    spec_.shape =
        static_int8::conv_shape_of(spec_.name, x.sizes(), spec_.weight.sizes(),
                                   {stride, padding, dilation, behind,
                                    planner_.constant(node_, "transposed").toBool(), whole("groups")});
  }

  void read_linear(const Slot& x) {
    const int64_t k = x.sizes().back();
    spec_.shape = static_int8::linear_shape(k == 0 ? 0 : x.numel() / k, spec_.weight.size(0), k);
  }

  void define_output(bool linear) {
    const std::vector<int64_t> sizes = planner_.sizes_of(node_.output());
    const c10::ScalarType dtype = step_->floats ? at::kFloat : at::kByte;
    step_->y = linear ? planner_.define(node_.output(), dtype, sizes)
                      : planner_.define_strided(node_.output(), dtype, sizes, dense_channels_last(sizes));
    const Rows& residual = step_->residual;
    if (!step_->floats && residual.operand.valid() && residual.operand.buffer != step_->x.operand.buffer &&
        residual.stride == spec_.shape.out_channels)
      planner_.may_overwrite(step_->y, residual.operand);
  }

  void count_work(const Slot& x) {
    const kernels::ConvShape& shape = spec_.shape;
    const int64_t results = shape.batch * shape.out_channels * shape.out_pixels();
    step_->work.bytes = x.numel() + spec_.weight.numel() + results * (step_->floats ? 4 : 1) +
                        (step_->residual.operand.valid() ? results : 0);
    const int64_t products = shape.transposed ? x.numel() * spec_.weight.numel() / shape.in_channels
                                              : results * (spec_.weight.numel() / shape.out_channels);
    step_->work.operations = 2 * products;
    const kernels::Int8ConvProblem& problem = step_->product.problem;
    const bool seven = problem.weight_bits == 7 || problem.activation_bits == 7;
    step_->work.arithmetic = seven ? Arithmetic::kInt7 : Arithmetic::kInt8;
  }

  const Node& node_;
  Planner& planner_;
  std::string& reason_;
  static_int8::ProductSpec spec_;
  std::unique_ptr<Int8ProductStep> step_ = std::make_unique<Int8ProductStep>();
};

}  // namespace

std::unique_ptr<Step> emit_int8_conv(const Node& node, Planner& planner, std::string& reason) {
  if (!is_channels_last_bytes(planner.tensor(node, "x"))) {
    reason = "not a batch of uint8 images";
    return nullptr;
  }
  return Int8ProductEmitter(node, planner, reason).emit(/*linear=*/false);
}

std::unique_ptr<Step> emit_int8_linear(const Node& node, Planner& planner, std::string& reason) {
  const Slot* x = planner.tensor(node, "x");
  if (!x || x->numel() == 0) {
    reason = "no elements";
    return nullptr;
  }
  return Int8ProductEmitter(node, planner, reason).emit(/*linear=*/true);
}

}  // namespace halftone::compiler
