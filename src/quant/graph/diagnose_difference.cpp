#include "quant/graph/diagnose_difference.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/errors.h"

namespace halftone {
namespace {

// More than two orders of summation can do.
constexpr double kRounding = 1e-4;

at::Tensor flat_numbers(const at::Tensor& tensor) {
  const at::Tensor real = tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
  return real.reshape({-1}).to(c10::ScalarType::Double);
}

int64_t count_of(const at::Tensor& mask) {
  return mask.sum().item<int64_t>();
}

/// Those of the graph that draw random numbers, each once.
std::vector<std::string> random_operators(const Graph& graph) {
  std::vector<std::string> found;
  for (const auto& node : graph.nodes()) {
    if (node->op() == nullptr || !node->op()->hasTag(at::Tag::nondeterministic_seeded)) continue;
    if (std::find(found.begin(), found.end(), node->target()) == found.end()) found.push_back(node->target());
  }
  return found;
}

}  // namespace

void Difference::add(const at::Tensor& expected, const at::Tensor& got) {
  if (expected.numel() == 0) return;
  at::Tensor x = flat_numbers(expected), y = flat_numbers(got);
  const at::Tensor both = at::isfinite(x).logical_and(at::isfinite(y));
  const int64_t finite = count_of(both);
  finite_ += finite;
  if (finite < x.numel()) {
    const at::Tensor same = at::eq(x, y).logical_or(at::isnan(x).logical_and(at::isnan(y)));
    const int64_t equal = count_of(same.logical_and(both.logical_not()));
    same_not_finite_ += equal;
    differing_ += x.numel() - finite - equal;
    const at::Tensor zero = at::zeros_like(x);
    x = at::where(both, x, zero);
    y = at::where(both, y, zero);
  }
  const at::Tensor difference = x.sub(y);
  signal_ += at::dot(x, x).item<double>();
  other_ += at::dot(y, y).item<double>();
  both_ += at::dot(x, y).item<double>();
  noise_ += at::dot(difference, difference).item<double>();
  largest_ = std::max(largest_, difference.abs().max().item<double>());
}

double Difference::cosine() const {
  if (signal_ == 0 || other_ == 0) return signal_ == other_ ? 1 : 0;
  return both_ / std::sqrt(signal_) / std::sqrt(other_);
}

double Difference::relative_error() const {
  return signal_ > 0 ? std::sqrt(noise_ / signal_) : std::sqrt(noise_);
}

ErrorMeasure Difference::measure() const {
  ErrorMeasure result;
  result.snr_db = noise_ > 0 ? 10 * std::log10(signal_ / noise_) : std::numeric_limits<double>::infinity();
  result.cosine = cosine();
  result.max_error = largest_;
  result.same_not_finite = same_not_finite_;
  result.differing_not_finite = differing_;
  result.finite = finite_;
  return result;
}

ErrorMeasure compare_tensors(const at::Tensor& expected, const at::Tensor& got) {
  if (expected.sizes() != got.sizes())
    fail(ErrorCode::kInvalidArgument, "tensors of other sizes cannot be compared: [{}] and [{}]",
         fmt::join(expected.sizes(), ", "), fmt::join(got.sizes(), ", "));
  Difference difference;
  difference.add(expected, got);
  return difference.measure();
}

std::string describe_two_answers(const GraphModule& module) {
  const std::vector<std::string> operators = random_operators(module.graph());
  return operators.empty()
             ? std::string("this model gives another answer to the same call: results cannot be compared")
             : fmt::format("this model draws random numbers ({}): results cannot be compared",
                           fmt::join(operators, ", "));
}

void require_same_answers(const GraphModule& module, const std::vector<at::Tensor>& first,
                          const std::vector<at::Tensor>& second) {
  bool same = first.size() == second.size();
  for (size_t i = 0; same && i < first.size(); ++i) {
    Difference difference;
    same = first[i].sizes() == second[i].sizes();
    if (!same) break;
    difference.add(first[i], second[i]);
    same = difference.differing() == 0 && difference.relative_error() <= kRounding;
  }
  if (!same) fail(ErrorCode::kUnsupported, "{}: {}", module.name, describe_two_answers(module));
}

}  // namespace halftone
