#include "tune/accuracy.h"

#include <ATen/ops/eq.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "graph/aten/dtype_text.h"
#include "halftone/graph/tree.h"
#include "quant/graph/diagnose_difference.h"

namespace halftone {
namespace {

void check_alike(const at::Tensor& expected, const at::Tensor& got, size_t index) {
  if (expected.sizes() == got.sizes() && expected.scalar_type() == got.scalar_type()) return;
  fail(ErrorCode::kInternal, "output {} is {} [{}] where eager gives {} [{}]", index,
       dtype_text(got.scalar_type()), fmt::join(got.sizes(), ", "), dtype_text(expected.scalar_type()),
       fmt::join(expected.sizes(), ", "));
}

}  // namespace

void AccuracyCount::add_tensor(const at::Tensor& expected, const at::Tensor& got, size_t index) {
  check_alike(expected, got, index);
  if (expected.numel() == 0) return;
  double cosine = 0;
  if (expected.is_floating_point() || expected.is_complex()) {
    Difference difference;
    difference.add(expected, got);
    worst_.nans += difference.differing();
    cosine = difference.cosine();
    worst_.relative_error = std::max(worst_.relative_error, difference.relative_error());
  } else {
    const double equal = at::eq(expected, got).to(c10::ScalarType::Double).mean().item<double>();
    cosine = equal;
    worst_.relative_error = std::max(worst_.relative_error, 1 - equal);
  }
  worst_.min_cosine = std::min(worst_.min_cosine, cosine);
  cosines_ += cosine;
  ++outputs_;
}

void AccuracyCount::add(const c10::IValue& expected, const c10::IValue& got, const TuneMetric& metric) {
  std::vector<c10::IValue> wanted, given;
  tree_of(expected, wanted);
  tree_of(got, given);
  if (wanted.size() != given.size())
    fail(ErrorCode::kInternal, "{} outputs where eager gives {}", given.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].isTensor() != given[i].isTensor())
      fail(ErrorCode::kInternal, "output {} is {} where eager gives {}", i, given[i].tagKind(),
           wanted[i].tagKind());
    if (wanted[i].isTensor()) add_tensor(wanted[i].toTensor(), given[i].toTensor(), i);
  }
  if (!metric) return;
  const double value = metric(expected, got);
  // A metric that is not a number is no proof of anything: it stays, and is less than every limit.
  if (!worst_.metric || std::isnan(value) || value < *worst_.metric) worst_.metric = value;
}

Accuracy AccuracyCount::result() const {
  Accuracy result = worst_;
  result.mean_cosine = outputs_ > 0 ? cosines_ / static_cast<double>(outputs_) : 1;
  return result;
}

}  // namespace halftone
