#include "quant/weight/differentiable_linear.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/errors.h"

namespace halftone {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor below_autograd(const at::Tensor& x, const std::optional<at::Tensor>& bias,
                          const LinearGradient& gradient) {
  const at::AutoDispatchBelowADInplaceOrView below;
  return gradient.forward(x, bias);
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const std::optional<at::Tensor>& bias,
                            const std::shared_ptr<LinearGradient>& gradient) {
    context->save_for_backward(gradient->parts);
    context->saved_data["x_type"] = x.scalar_type();
    if (bias.has_value() && bias->defined()) context->saved_data["bias_type"] = bias->scalar_type();
    context->saved_data["dequantize"] =
        c10::IValue::make_capsule(c10::make_intrusive<Dequantize>(gradient->dequantize));
    return below_autograd(x, bias, *gradient);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor& dy = gradients.at(0);
    variable_list result(3);
    if (!dy.defined()) return result;
    const auto capsule = context->saved_data["dequantize"].toCapsule();
    const auto& dequantize = static_cast<Dequantize&>(*capsule).function;
    // Products of half precision are summed in float32, as in the forward.
    const at::Tensor wide = dy.scalar_type() == at::kDouble ? dy : dy.to(at::kFloat);
    if (context->needs_input_grad(0)) {
      const at::Tensor weight = dequantize(context->get_saved_variables()).to(wide.scalar_type());
      result[0] = wide.matmul(weight).to(context->saved_data["x_type"].toScalarType());
    }
    const auto bias_type = context->saved_data.find("bias_type");
    if (bias_type != context->saved_data.end() && context->needs_input_grad(1)) {
      const at::Tensor sum = wide.dim() == 1 ? wide : wide.flatten(0, -2).sum(0);
      result[1] = sum.to(bias_type->second.toScalarType());
    }
    return result;
  }

 private:
  struct Dequantize : torch::CustomClassHolder {
    explicit Dequantize(decltype(LinearGradient::dequantize) f) : function(std::move(f)) {}
    decltype(LinearGradient::dequantize) function;
  };
};

bool wants_gradient(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() && tensor->defined() && tensor->requires_grad();
}

void refuse_forward_mode(const std::optional<at::Tensor>& tensor, const char* name) {
  if (tensor.has_value() && tensor->defined() && tensor->_fw_grad(0).defined()) {
    fail(ErrorCode::kUnsupported, "{} has no forward-mode derivative", name);
  }
}

}  // namespace

at::Tensor differentiable_linear(const at::Tensor& x, const std::optional<at::Tensor>& bias,
                                 LinearGradient gradient) {
  refuse_forward_mode(x, gradient.name);
  refuse_forward_mode(bias, gradient.name);
  if (!at::GradMode::is_enabled()) return below_autograd(x, bias, gradient);
  for (const at::Tensor& part : gradient.parts) {
    if (wants_gradient(part)) {
      fail(ErrorCode::kInvalidArgument,
           "{}: a part of the quantized weight requires a gradient; they are constants, only x and bias have "
           "gradients",
           gradient.name);
    }
  }
  if (!x.requires_grad() && !wants_gradient(bias)) return below_autograd(x, bias, gradient);
  return LinearFunction::apply(x, bias, std::make_shared<LinearGradient>(std::move(gradient)));
}

}  // namespace halftone
