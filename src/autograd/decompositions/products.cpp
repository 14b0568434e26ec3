// Decompositions of products with a bias or a factor: addmm, baddbmm, addmv, addcmul, addcdiv, lerp, rsub.
#include <ATen/TensorOperators.h>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/tables.h"

namespace halftone {
namespace {

using at::Scalar;
using at::Tensor;

/// Without an operator where the factor is 1.
Tensor scaled(const Tensor& x, const Scalar& factor) {
  return factor.equal(1) ? x : x.mul(factor);
}

using Product = Tensor (*)(const Tensor&, const Tensor&);

/// β·bias + α·product. With β = 0 the bias is not read at all, even if it is NaN.
template <Product product>
Decomposition product_with_bias() {
  return boxed([](const Tensor& bias, const Tensor& left, const Tensor& right, const Scalar& beta,
                  const Scalar& alpha) {
    const OpMath math(left.scalar_type());
    const Tensor result = scaled(product(math.raise(left), math.raise(right)), alpha);
    return math.lower(beta.equal(0) ? result : result + scaled(math.raise(bias), beta));
  });
}

/// From the nearer end, as the kernel does: both ends are reached exactly.
Tensor lerp_scalar(const Tensor& from, const Tensor& to, const Scalar& weight) {
  const double share = weight.toDouble();
  const Tensor way = to - from;
  return std::abs(share) < 0.5 ? from + way.mul(share) : to - way.mul(1 - share);
}

Tensor lerp_tensor(const Tensor& from, const Tensor& to, const Tensor& weight) {
  const Tensor is_far = weight.abs().ge(0.5);
  return at::where(is_far, weight.sub(1), weight) * (to - from) + at::where(is_far, to, from);
}

}  // namespace

void add_products(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::addmm", product_with_bias<at::mm>()},
      {"aten::addmv", product_with_bias<at::mv>()},
      {"aten::baddbmm", product_with_bias<at::bmm>()},
      {"aten::addcdiv", in_op_math([](const Tensor& x, const Tensor& top, const Tensor& bottom,
                                      const Scalar& value) { return x + scaled(top, value) / bottom; })},
      {"aten::addcmul", in_op_math([](const Tensor& x, const Tensor& left, const Tensor& right,
                                      const Scalar& value) { return x + scaled(left, value) * right; })},
      {"aten::lerp.Scalar", in_op_math(lerp_scalar)},
      {"aten::lerp.Tensor", in_op_math(lerp_tensor)},
      {"aten::native_dropout_backward", boxed([](const Tensor& grad, const Tensor& mask, double scale) {
         return grad * cast(mask, grad.scalar_type()).mul(scale);
       })},
      {"aten::rsub.Tensor", boxed([](const Tensor& x, const Tensor& other, const Scalar& alpha) {
         return at::sub(other, x, alpha);
       })},
  });
}

}  // namespace halftone
