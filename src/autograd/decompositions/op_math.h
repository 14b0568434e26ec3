// The type that elementwise kernels compute in, and small things that many decompositions need.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>

#include <optional>
#include <tuple>
#include <utility>

namespace halftone {

/// `tensor` itself if it has that type already: no operator is called then.
at::Tensor cast(const at::Tensor& tensor, at::ScalarType type);

/// A tensor without dimensions, in the type and on the device of `like`: what `where` takes for a number.
at::Tensor number_like(const at::Tensor& like, const at::Scalar& value);

/// Undefined if there is none. c10 gives "no tensor" as an empty optional or as an undefined tensor.
at::Tensor given(const std::optional<at::Tensor>& tensor);

/// `tensor` itself where it is contiguous.
at::Tensor dense(const at::Tensor& tensor);

/// What at::index takes where only the first dimension is indexed.
c10::List<std::optional<at::Tensor>> first_dimension(const at::Tensor& indices);

/// float for half and bfloat16, else the type itself.
at::ScalarType op_math_type(at::ScalarType type);

/// Elementwise kernels take half and bfloat16 apart into float, compute, and round once. Decompositions do
/// the same with casts around them; for other types they call nothing.
class OpMath {
 public:
  OpMath() = default;
  /// For decompositions that do not cast all of their tensors.
  explicit OpMath(at::ScalarType type) : known_(type) {}

  /// All tensor operands take part in the common type, by the rules of type promotion.
  void see(const at::Tensor& operand);
  void see(const std::optional<at::Tensor>& operand) { see(given(operand)); }
  template <typename Other>
  void see(const Other&) {}

  at::Tensor raise(const at::Tensor& operand) const { return change(operand, op_math_type(type())); }
  std::optional<at::Tensor> raise(const std::optional<at::Tensor>& operand) const {
    return raise(given(operand));
  }
  template <typename Other>
  const Other& raise(const Other& operand) const {
    return operand;
  }

  /// What is real of complex operands (a variance) stays so.
  at::Tensor lower(const at::Tensor& result) const {
    const bool is_real = result.defined() && !result.is_complex();
    return change(result, is_real ? c10::toRealValueType(type()) : type());
  }
  template <typename... Results>
  std::tuple<Results...> lower(const std::tuple<Results...>& results) const {
    return std::apply([this](const Results&... each) { return std::tuple<Results...>(lower(each)...); },
                      results);
  }

 private:
  static at::Tensor change(const at::Tensor& tensor, at::ScalarType type) {
    return tensor.defined() ? cast(tensor, type) : tensor;
  }
  at::ScalarType type() const;

  std::optional<at::ScalarType> known_;
  at::native::ResultTypeState seen_;
};

}  // namespace halftone
