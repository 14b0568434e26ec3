// Decompositions of group norm and its gradient.
#include <ATen/TensorOperators.h>

#include <array>

#include "autograd/decompositions/boxed.h"
#include "autograd/decompositions/norm_dimensions.h"
#include "autograd/decompositions/tables.h"

namespace halftone {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<at::Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

/// How N·C·P numbers are grouped: P places, D = C/G channels in a group.
struct Grouping {
  int64_t samples;
  int64_t channels;
  int64_t places;
  int64_t groups;

  int64_t in_group() const { return channels / groups; }
  double count() const { return static_cast<double>(in_group() * places); }
  /// [N, C] as [N, G, D].
  Tensor split(const Tensor& x) const { return x.view({samples, groups, in_group()}); }
  /// [C] as [1, G, D].
  Tensor split_parameter(const Tensor& x) const { return x.view({1, groups, in_group()}); }
};

/// Dense results with the order of dimensions that `like` has in memory.
Tensor as_in(const Tensor& like, const Tensor& result) {
  return like.is_contiguous() ? result : at::clone(result, like.suggest_memory_format());
}

/// [N, G, 1] for each channel: [N, C].
Tensor for_channels(const Tensor& x, const Grouping& by) {
  const Tensor wide = x.expand({by.samples, by.groups, by.in_group()});
  return at::clone(wide, at::MemoryFormat::Contiguous).view({by.samples, by.channels});
}

/// One factor and one summand for each sample and channel, so that x keeps its strides.
Three group_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                 int64_t samples, int64_t channels, int64_t places, int64_t groups, double eps) {
  const Grouping by{samples, channels, places, groups};
  const OpMath math(input.scalar_type());
  const Tensor x = math.raise(input);
  const Tensor grouped = dense(x).view({samples, groups, by.in_group() * places});
  const auto [variance, mean] = variance_and_mean(grouped, {2});  // [N, G, 1]
  const Tensor rstd = variance.add(eps).rsqrt();
  const bool weighted = given(weight).defined();
  const OpMath statistics(weighted ? weight->scalar_type() : input.scalar_type());
  const auto with_statistics = [&](const Tensor& result) -> Three {
    return {math.lower(result), statistics.lower(at::squeeze(mean, 2)),
            statistics.lower(at::squeeze(rstd, 2))};
  };
  if (!weighted && !given(bias).defined()) {
    return with_statistics(as_in(x, ((grouped - mean) * rstd).view(x.sizes())));
  }
  const Tensor factor = weighted ? rstd * by.split_parameter(*weight) : rstd;
  const bool biased = given(bias).defined();
  const Tensor summand = biased ? by.split_parameter(*bias) - mean * factor : (mean * factor).neg();
  const auto spread = [&](const Tensor& each) {
    const Tensor flat =
        each.size(2) == by.in_group() ? each.view({samples, channels}) : for_channels(each, by);
    return beside_channels(flat, x.dim());
  };
  return with_statistics(x * spread(factor) + spread(summand));
}

/// Σg·x and Σg over the places: [N, C].
struct PlaceSums {
  Tensor product;
  Tensor grad;
};

/// rstd·w·g + a·x + b with a and b of each group: the chain rule through mean and variance.
Tensor group_norm_grad_input(const Tensor& grad, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                             const Tensor& weight, const PlaceSums& sums, const Grouping& by) {
  const auto of_groups = [&](const Tensor& each) {
    return (weight.defined() ? by.split(each) * by.split_parameter(weight) : by.split(each)).sum(2);
  };
  const Tensor product = of_groups(sums.product);
  const Tensor total = of_groups(sums.grad);
  const Tensor slope = ((total * mean - product) * rstd * rstd * rstd).mul(1 / by.count());
  const Tensor offset = (slope * mean).neg() - (total * rstd).mul(1 / by.count());
  const Tensor each_rstd = rstd.unsqueeze(-1);
  const Tensor factor = weight.defined() ? each_rstd * by.split_parameter(weight) : each_rstd;
  const std::vector<int64_t> sizes = {by.samples, by.groups, by.in_group(), by.places};
  const auto beside = [](const Tensor& group) { return group.unsqueeze(-1).unsqueeze(-1); };
  const Tensor grouped = grad.view(sizes) * factor.unsqueeze(-1) + x.view(sizes) * beside(slope);
  return (grouped + beside(offset)).view(x.sizes());
}

Three group_norm_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean,
                          const Tensor& rstd, const OptionalTensor& weight, int64_t samples, int64_t channels,
                          int64_t places, int64_t groups, std::array<bool, 3> wanted) {
  const Grouping by{samples, channels, places, groups};
  const OpMath math(input.scalar_type());
  const Tensor grad = dense(math.raise(grad_output));
  const Tensor x = dense(math.raise(input));
  const Tensor wide_mean = math.raise(mean);
  const Tensor wide_rstd = math.raise(rstd);
  const PlaceSums sums{.product = (grad * x).view({samples, channels, places}).sum(2),
                       .grad = grad.view({samples, channels, places}).sum(2)};
  const at::ScalarType type = given(weight).defined() ? weight->scalar_type() : input.scalar_type();
  Three results;
  if (wanted[0]) {
    const Tensor grad_input =
        group_norm_grad_input(grad, x, wide_mean, wide_rstd, math.raise(given(weight)), sums, by);
    std::get<0>(results) = math.lower(as_in(input, grad_input));
  }
  if (wanted[1]) {
    const Tensor centred = by.split(sums.product) - by.split(sums.grad) * wide_mean.unsqueeze(-1);
    std::get<1>(results) = cast((centred * wide_rstd.unsqueeze(-1)).sum(0).view(channels), type);
  }
  if (wanted[2]) std::get<2>(results) = cast(sums.grad.sum(0), type);
  return results;
}

}  // namespace

void add_group_norm(DecompositionTable& table) {
  table.merge(DecompositionTable{
      {"aten::native_group_norm", boxed(group_norm)},
      {"aten::native_group_norm_backward", boxed(group_norm_backward)},
  });
}

}  // namespace halftone
