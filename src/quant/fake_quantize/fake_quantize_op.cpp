// halftone::fake_quantize and its two backward operators.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "base/errors.h"
#include "halftone/quant/qat.h"
#include "quant/fake_quantize/operators.h"
#include "quant/weight/arithmetic/fake_affine.h"

namespace halftone {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using OptionalType = std::optional<c10::ScalarType>;
using ops::FakeGrid;
constexpr const char* kName = "halftone::fake_quantize";
constexpr int64_t kLowest = -128, kHighest = 255;

void check_grid(const at::Tensor& x, const FakeGrid& grid) {
  if (!x.is_floating_point())
    fail(ErrorCode::kInvalidArgument, "{}: x must be floating-point, not {}", kName,
         c10::toString(x.scalar_type()));
  if (grid.quant_min < kLowest || grid.quant_max > kHighest || grid.quant_min >= grid.quant_max)
    fail(ErrorCode::kInvalidArgument, "{}: integers from {} to {}; they must be in [{}, {}], at least two",
         kName, grid.quant_min, grid.quant_max, kLowest, kHighest);
  if (grid.group_size < 0)
    fail(ErrorCode::kInvalidArgument, "{}: a group size of {}", kName, grid.group_size);
}

/// float32 or int32 [n, groups] of a scale or zero point that was given as one number, [n] or [n, groups].
at::Tensor per_group(const char* what, const at::Tensor& tensor, c10::ScalarType type, int64_t n,
                     int64_t groups) {
  const bool fits = tensor.numel() == n * groups && tensor.is_cpu() &&
                    (tensor.dim() == 2 ? tensor.size(0) == n : groups == 1 && tensor.dim() <= 1);
  if (!fits)
    fail(ErrorCode::kInvalidArgument, "{}: {} has sizes {}; here it takes one number, [{}] or [{}, {}]",
         kName, what, c10::str(tensor.sizes()), n, n, groups);
  return tensor.detach().to(type).contiguous().view({n, groups});
}

/// A call as the arithmetic takes it.
struct Prepared {
  at::Tensor x;  ///< float32 [n, k]
  AffineScales scales;
  AffineRule rule;
};

Prepared prepare(const at::Tensor& x, const at::Tensor& scale, const OptionalTensor& zero_point,
                 const FakeGrid& grid) {
  check_grid(x, grid);
  const bool per_tensor = scale.numel() == 1 && scale.dim() < 2;
  if (per_tensor && grid.group_size != 0)
    fail(ErrorCode::kInvalidArgument, "{}: one scale for the whole tensor, and groups of {}", kName,
         grid.group_size);
  const int64_t n = per_tensor || x.dim() == 0 ? 1 : x.size(0);
  const int64_t k = n == 0 ? 0 : x.numel() / n;
  const int64_t groups = affine_groups(k, grid.group_size);
  Prepared call;
  call.x = x.detach().to(at::kFloat).contiguous().view({n, k});
  call.scales.scale = per_group("scale", scale, at::kFloat, n, groups);
  if (zero_point.has_value() && zero_point->defined())
    call.scales.zero_point = per_group("zero_point", *zero_point, at::kInt, n, groups);
  call.scales.group = grid.group_size;
  call.rule.low = static_cast<int>(grid.quant_min);
  call.rule.high = static_cast<int>(grid.quant_max);
  call.rule.math_type = grid.arithmetic.value_or(at::kFloat);
  return call;
}

at::Tensor gradient_rows(const Prepared& call, const at::Tensor& dy, const at::Tensor& x) {
  if (dy.sizes() != x.sizes())
    fail(ErrorCode::kInvalidArgument, "{}: the gradient's sizes are not those of x", kName);
  return dy.to(at::kFloat).contiguous().view(call.x.sizes());
}

at::Tensor cpu(const at::Tensor& x, const at::Tensor& scale, const OptionalTensor& zero_point,
               int64_t group_size, int64_t quant_min, int64_t quant_max, double, OptionalType arithmetic) {
  const Prepared call = prepare(x, scale, zero_point, {group_size, quant_min, quant_max, arithmetic});
  return fake_quantize_with(call.x, call.scales, call.rule).view(x.sizes()).to(x.scalar_type());
}

at::Tensor backward_cpu(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& scale,
                        const OptionalTensor& zero_point, int64_t group_size, int64_t quant_min,
                        int64_t quant_max, OptionalType arithmetic) {
  const Prepared call = prepare(x, scale, zero_point, {group_size, quant_min, quant_max, arithmetic});
  const at::Tensor rows = gradient_rows(call, dy, x);
  return fake_quantize_gradient(rows, call.x, call.scales, call.rule).view(x.sizes()).to(x.scalar_type());
}

at::Tensor scale_backward_cpu(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& scale,
                              const OptionalTensor& zero_point, int64_t group_size, int64_t quant_min,
                              int64_t quant_max, double scale_gradient, OptionalType arithmetic) {
  const Prepared call = prepare(x, scale, zero_point, {group_size, quant_min, quant_max, arithmetic});
  const at::Tensor rows = gradient_rows(call, dy, x);
  const at::Tensor dscale = fake_quantize_scale_gradient(rows, call.x, call.scales, call.rule);
  return dscale.mul_(scale_gradient).view(scale.sizes()).to(scale.scalar_type());
}

at::Tensor like(const at::Tensor& x) {
  return at::empty_symint(x.sym_sizes(), x.options());
}

at::Tensor meta(const at::Tensor& x, const at::Tensor&, const OptionalTensor&, int64_t group_size,
                int64_t quant_min, int64_t quant_max, double, OptionalType arithmetic) {
  check_grid(x, {group_size, quant_min, quant_max, arithmetic});
  return like(x);
}

at::Tensor backward_meta(const at::Tensor&, const at::Tensor& x, const at::Tensor&, const OptionalTensor&,
                         int64_t, int64_t, int64_t, OptionalType) {
  return like(x);
}

at::Tensor scale_backward_meta(const at::Tensor&, const at::Tensor&, const at::Tensor& scale,
                               const OptionalTensor&, int64_t, int64_t, int64_t, double, OptionalType) {
  return like(scale);
}

template <typename Function>
auto operator_of(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class FakeQuantizeFunction : public torch::autograd::Function<FakeQuantizeFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& scale,
                            const OptionalTensor& zero_point, int64_t group_size, int64_t quant_min,
                            int64_t quant_max, double scale_gradient, int64_t arithmetic) {
    context->save_for_backward({x, scale, zero_point.value_or(at::Tensor())});
    context->saved_data["numbers"] = std::vector<int64_t>{group_size, quant_min, quant_max, arithmetic};
    context->saved_data["scale_gradient"] = scale_gradient;
    const at::AutoDispatchBelowADInplaceOrView below;
    return ops::fake_quantize(x, scale, zero_point, {group_size, quant_min, quant_max, type_of(arithmetic)},
                              scale_gradient);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    static const auto of_x = operator_of<decltype(backward_cpu)>("halftone::fake_quantize_backward");
    static const auto of_scale =
        operator_of<decltype(scale_backward_cpu)>("halftone::fake_quantize_scale_backward");
    variable_list result(8);
    const at::Tensor& dy = gradients.at(0);
    if (!dy.defined()) return result;
    const variable_list saved = context->get_saved_variables();
    const std::vector<int64_t> numbers = context->saved_data["numbers"].toIntVector();
    const OptionalTensor zero_point = saved[2].defined() ? OptionalTensor(saved[2]) : std::nullopt;
    const OptionalType arithmetic = type_of(numbers[3]);
    const at::AutoDispatchBelowADInplaceOrView below;
    if (context->needs_input_grad(0))
      result[0] =
          of_x.call(dy, saved[0], saved[1], zero_point, numbers[0], numbers[1], numbers[2], arithmetic);
    if (context->needs_input_grad(1))
      result[1] = of_scale.call(dy, saved[0], saved[1], zero_point, numbers[0], numbers[1], numbers[2],
                                context->saved_data["scale_gradient"].toDouble(), arithmetic);
    return result;
  }

  /// The context keeps numbers only.
  static int64_t number_of(OptionalType type) { return type ? static_cast<int64_t>(*type) : -1; }

 private:
  static OptionalType type_of(int64_t number) {
    return number < 0 ? OptionalType() : static_cast<c10::ScalarType>(number);
  }
};

at::Tensor autograd(const at::Tensor& x, const at::Tensor& scale, const OptionalTensor& zero_point,
                    int64_t group_size, int64_t quant_min, int64_t quant_max, double scale_gradient,
                    OptionalType arithmetic) {
  if (zero_point.has_value() && zero_point->defined() && zero_point->requires_grad())
    fail(ErrorCode::kInvalidArgument, "{}: the zero point requires a gradient, and only x and scale have one",
         kName);
  if (!at::GradMode::is_enabled() || (!x.requires_grad() && !scale.requires_grad())) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return ops::fake_quantize(x, scale, zero_point, {group_size, quant_min, quant_max, arithmetic},
                              scale_gradient);
  }
  return FakeQuantizeFunction::apply(x, scale, zero_point, group_size, quant_min, quant_max, scale_gradient,
                                     FakeQuantizeFunction::number_of(arithmetic));
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def(
      "fake_quantize(Tensor x, Tensor scale, Tensor? zero_point=None, *, int group_size=0, int quant_min, "
      "int "
      "quant_max, float scale_gradient=1., ScalarType? arithmetic=None) -> Tensor");
  m.def(
      "fake_quantize_backward(Tensor dy, Tensor x, Tensor scale, Tensor? zero_point=None, *, int "
      "group_size=0, int quant_min, int quant_max, ScalarType? arithmetic=None) -> Tensor");
  m.def(
      "fake_quantize_scale_backward(Tensor dy, Tensor x, Tensor scale, Tensor? zero_point=None, *, int "
      "group_size=0, int quant_min, int quant_max, float scale_gradient=1., ScalarType? arithmetic=None) -> "
      "Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("fake_quantize", cpu);
  m.impl("fake_quantize_backward", backward_cpu);
  m.impl("fake_quantize_scale_backward", scale_backward_cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("fake_quantize", meta);
  m.impl("fake_quantize_backward", backward_meta);
  m.impl("fake_quantize_scale_backward", scale_backward_meta);
}
TORCH_LIBRARY_IMPL(halftone, Autograd, m) {
  m.impl("fake_quantize", autograd);
}

}  // namespace

at::Tensor ops::fake_quantize(const at::Tensor& x, const at::Tensor& scale, const OptionalTensor& zero_point,
                              const FakeGrid& grid, double scale_gradient) {
  static const auto op = operator_of<decltype(cpu)>(kName);
  return op.call(x, scale, zero_point, grid.group_size, grid.quant_min, grid.quant_max, scale_gradient,
                 grid.arithmetic);
}

at::Tensor fake_quantize(const at::Tensor& x, const at::Tensor& scale, const OptionalTensor& zero_point,
                         const FakeQuantizeOptions& options) {
  return ops::fake_quantize(x, scale, zero_point,
                            {options.group_size, options.quant_min, options.quant_max, std::nullopt},
                            options.scale_gradient);
}

}  // namespace halftone
