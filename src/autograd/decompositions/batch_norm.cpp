// Decompositions of batch norm, in training and inference.
#include <ATen/TensorOperators.h>

#include <array>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/norm_dimensions.h"
#include "autograd/decompositions/tables.h"
#include "base/errors.h"

namespace halftone {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<at::Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

/// Statistics of the batch, or those that were gathered in training.
struct BatchNorm {
  Tensor normalized;  ///< in op-math type
  Tensor mean;        ///< [C], undefined if the gathered ones were used
  Tensor rstd;
  Tensor variance;  ///< [C], of the batch: the biased one
};

BatchNorm normalize_by_batch(const Tensor& x, double eps) {
  const std::vector<int64_t> dims = all_but_channels(x.dim());
  const auto [variance, mean] = variance_and_mean(x, dims);
  const Tensor rstd = variance.add(eps).rsqrt();
  return {.normalized = (x - mean) * rstd,
          .mean = at::squeeze(mean, dims),
          .rstd = at::squeeze(rstd, dims),
          .variance = at::squeeze(variance, dims)};
}

BatchNorm normalize_by_running(const Tensor& x, const Tensor& mean, const Tensor& variance, double eps) {
  const OpMath math(x.scalar_type());
  const Tensor rstd = math.raise(variance).add(eps).rsqrt();
  return {.normalized = (x - beside_channels(math.raise(mean), x.dim())) * beside_channels(rstd, x.dim())};
}

Tensor scale_and_shift(Tensor x, const OptionalTensor& weight, const OptionalTensor& bias) {
  if (given(weight).defined()) x = x * beside_channels(*weight, x.dim());
  if (given(bias).defined()) x = x + beside_channels(*bias, x.dim());
  return x;
}

/// Statistics have the type of the parameters, which may be wider than the operand's.
at::ScalarType statistics_type(const Tensor& input, const OptionalTensor& weight,
                               const OptionalTensor& running) {
  if (given(weight).defined()) return weight->scalar_type();
  return given(running).defined() ? running->scalar_type() : input.scalar_type();
}

Three results_of(const BatchNorm& norm, const Tensor& input, const OptionalTensor& weight,
                 const OptionalTensor& bias, const OptionalTensor& running) {
  const at::ScalarType type = statistics_type(input, weight, running);
  const Tensor result = cast(scale_and_shift(norm.normalized, weight, bias), input.scalar_type());
  // The kernel gives empty tensors if it has no statistics of the batch.
  const auto given_or_empty = [&](const Tensor& x) {
    return x.defined() ? cast(x, type) : input.new_zeros({0}, at::TensorOptions(type));
  };
  return {result, given_or_empty(norm.mean), given_or_empty(norm.rstd)};
}

Tensor op_math_of(const Tensor& input) {
  return OpMath(input.scalar_type()).raise(input);
}

/// (1 - momentum)·running + momentum·seen
Tensor moved(const Tensor& running, const Tensor& seen, double momentum) {
  return cast(seen.mul(momentum) + running.mul(1 - momentum), running.scalar_type());
}

/// Gives the new running statistics as two more results.
Five functional_batch_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                           const Tensor& mean, const Tensor& variance, bool training, double momentum,
                           double eps) {
  const Tensor x = op_math_of(input);
  if (!training) {
    const BatchNorm norm = normalize_by_running(x, mean, variance, eps);
    return std::tuple_cat(results_of(norm, input, weight, bias, mean),
                          std::make_tuple(at::clone(mean), at::clone(variance)));
  }
  const BatchNorm norm = normalize_by_batch(x, eps);
  const double count = static_cast<double>(input.numel()) / static_cast<double>(input.size(1));
  const Tensor unbiased = norm.variance.mul(count / (count - 1));
  return std::tuple_cat(
      results_of(norm, input, weight, bias, mean),
      std::make_tuple(moved(mean, norm.mean, momentum), moved(variance, unbiased, momentum)));
}

Three batch_norm_in_evaluation(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                               const Tensor& mean, const Tensor& variance, double /*momentum*/, double eps) {
  const BatchNorm norm = normalize_by_running(op_math_of(input), mean, variance, eps);
  return results_of(norm, input, weight, bias, mean);
}

Three batch_norm_without_statistics(const Tensor& input, const OptionalTensor& weight,
                                    const OptionalTensor& bias, bool training, double /*momentum*/,
                                    double eps) {
  if (!training) {
    fail(ErrorCode::kInvalidArgument, "batch_norm: in evaluation it needs running_mean and running_var");
  }
  return results_of(normalize_by_batch(op_math_of(input), eps), input, weight, bias, std::nullopt);
}

/// A decomposition never writes, but this operator in training does (and says so only in one of its forms).
Three batch_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                 const OptionalTensor& mean, const OptionalTensor& variance, bool training, double momentum,
                 double eps) {
  const bool has_statistics = given(mean).defined() && given(variance).defined();
  if (!has_statistics) return batch_norm_without_statistics(input, weight, bias, training, momentum, eps);
  if (training) {
    fail(ErrorCode::kUnsupported,
         "batch_norm in training writes its running statistics: trace _native_batch_norm_legit_functional, "
         "which gives them as results");
  }
  return batch_norm_in_evaluation(input, weight, bias, *mean, *variance, momentum, eps);
}

}  // namespace

void add_batch_norm(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::native_batch_norm", boxed(batch_norm)},
      {"aten::_native_batch_norm_legit",
       boxed([](const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                const Tensor& mean, const Tensor& variance, bool training, double momentum, double eps) {
         return batch_norm(input, weight, bias, mean, variance, training, momentum, eps);
       })},
      {"aten::_native_batch_norm_legit.no_stats", boxed(batch_norm_without_statistics)},
      {"aten::_native_batch_norm_legit_functional", boxed(functional_batch_norm)},
      {"aten::_native_batch_norm_legit_no_training", boxed(batch_norm_in_evaluation)},
  });
}

}  // namespace halftone
