// Calls of softmaxes, products, statistics and backwards of indexing.
#include <ATen/ATen.h>

#include <limits>

#include "autograd/decompositions/cases/case.h"

namespace halftone {
namespace {

using at::randn;
using at::Tensor;
using Dims = std::vector<int64_t>;
const c10::IValue kNone;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor normal(at::IntArrayRef sizes) {
  return randn(sizes, at::kDouble);
}

void add_softmax_backward(CaseList& list, const std::string& op, const Tensor& x, int64_t dim) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const Tensor y = op == "_softmax" ? at::softmax(x, dim) : at::log_softmax(x, dim);
    list.add_exact("aten::" + op + "_backward_data",
                   {normal(x.sizes()).to(type), y.to(type), dim, static_cast<int64_t>(type)});
  }
}

void add_softmaxes(CaseList& list) {
  for (const auto& [x, dim] : std::vector<std::pair<Tensor, int64_t>>{{normal({3, 8}), -1},
                                                                      {normal({2, 3, 4}).mul(20), 1},
                                                                      {normal({}), 0},
                                                                      {normal({0, 3}), 1},
                                                                      {normal({4, 5}).t(), 0}}) {
    for (const std::string op : {"_softmax", "_log_softmax"}) {
      list.add("aten::" + op, {x, dim, false});
      add_softmax_backward(list, op, x, dim);
    }
    list.add("aten::_safe_softmax", {x, dim});
    list.add("aten::logsumexp", {x, Dims{dim}, false});
    list.add("aten::logsumexp", {x, Dims{dim}, true});
  }
  Tensor masked = normal({3, 4});
  masked[1].fill_(-kInfinity);
  masked[2][0] = -kInfinity;
  list.add("aten::_safe_softmax", {masked, -1});
  list.add("aten::_softmax", {masked, -1, false});
  list.add("aten::logsumexp", {masked, Dims{0, 1}, false});
  list.add("aten::logsumexp", {masked, Dims{1}, false});
  list.add_exact("aten::logsumexp", {at::arange(4), Dims{0}, false});
}

void add_products(CaseList& list) {
  const std::vector<std::pair<c10::IValue, c10::IValue>> factors = {{1, 1}, {0.5, 2.0}, {0, 1}, {1, 3}};
  for (const auto& [beta, alpha] : factors) {
    for (const Tensor& bias : {normal({6}), normal({4, 6}), normal({4, 1})}) {
      list.add("aten::addmm", {bias, normal({4, 5}), normal({5, 6}), beta, alpha});
    }
    list.add("aten::addmm", {normal({6}), normal({4, 0}), normal({0, 6}), beta, alpha});
    list.add("aten::baddbmm", {normal({2, 3, 4}), normal({2, 3, 5}), normal({2, 5, 4}), beta, alpha});
    list.add("aten::addmv", {normal({3}), normal({3, 5}), normal({5}), beta, alpha});
  }
  list.add_exact("aten::addmm",
                 {at::arange(3), at::arange(6).view({2, 3}), at::arange(9).view({3, 3}), 2, 3});
  for (const c10::IValue& value : std::vector<c10::IValue>{1, 0.3}) {
    list.add("aten::addcmul", {normal({4, 3}), normal({4, 1}), normal({3}), value});
    list.add("aten::addcdiv", {normal({4, 3}), normal({4, 1}), normal({3}).abs().add(1), value});
  }
  for (const double weight : {0.0, 0.3, 0.5, 0.8, 1.0, -2.0}) {
    list.add("aten::lerp.Scalar", {normal({4, 3}), normal({4, 3}), weight});
  }
  list.add("aten::lerp.Tensor", {normal({4, 3}), normal({4, 3}), normal({4, 3})});
  list.add("aten::lerp.Tensor", {normal({4, 3}), normal({4, 3}), at::full({}, 0.3, at::kDouble)});
  list.add("aten::native_dropout_backward", {normal({4, 3}), normal({4, 3}).gt(0), 2.0});
  list.add("aten::rsub.Tensor", {normal({4, 3}), normal({3}), 1});
  list.add("aten::rsub.Tensor", {normal({4, 3}), normal({3}), 2.5});
}

void add_statistics(CaseList& list) {
  const Tensor x = normal({3, 4, 5}).add(2);
  const std::vector<c10::IValue> dims = {kNone, Dims{}, Dims{1}, Dims{-1, 0}};
  for (const std::string op : {"var", "std", "var_mean", "std_mean"}) {
    for (const c10::IValue& dim : dims) {
      for (const c10::IValue& correction : std::vector<c10::IValue>{kNone, 0, 2, 1.5}) {
        list.add("aten::" + op + ".correction", {x, dim, correction, false});
      }
      list.add("aten::" + op + ".correction", {x, dim, 1, true});
    }
    list.add("aten::" + op + ".correction", {normal({}), kNone, 0, false});
  }
  for (const double order : {0.0, 1.0, 2.0, 3.5, -1.0, kInfinity, -kInfinity}) {
    for (const c10::IValue& dim : std::vector<c10::IValue>{kNone, Dims{1}, Dims{0, 2}}) {
      list.add("aten::linalg_vector_norm", {x, order, dim, false, kNone});
      list.add("aten::linalg_vector_norm", {x, order, dim, true, kNone});
    }
  }
  const auto in_double = static_cast<int64_t>(at::kDouble);
  list.add_exact("aten::linalg_vector_norm", {x.to(at::kFloat), 2.0, kNone, false, in_double});
  list.add_exact("aten::linalg_vector_norm", {randn({6}, at::kComplexDouble), 2.0, kNone, false, kNone});
  list.add_exact("aten::var.correction", {randn({6}, at::kComplexDouble), kNone, 1, false});
}

void add_indexing(CaseList& list) {
  const Tensor grad = normal({2, 3, 4});
  const Tensor indices = at::tensor({0, 2, 2, 4, 0, 2}, at::kLong).view({2, 3});
  for (const int64_t padding : {-1, 2}) {
    for (const bool by_frequency : {false, true}) {
      list.add("aten::embedding_dense_backward", {grad, indices, 5, padding, by_frequency});
    }
  }
  list.add("aten::embedding_dense_backward", {normal({0, 4}), at::zeros({0}, at::kLong), 5, -1, false});
  const Dims sizes = {5, 6};
  list.add("aten::slice_backward", {normal({5, 2}), sizes, 1, 1, 3, 1});
  list.add("aten::slice_backward", {normal({3, 6}), sizes, 0, 0, std::numeric_limits<int64_t>::max(), 2});
  list.add("aten::slice_backward", {normal({2, 6}), sizes, -2, -2, 5, 1});
  list.add("aten::select_backward", {normal({5}), sizes, 1, 2});
  list.add("aten::select_backward", {normal({6}), sizes, 0, -1});
  list.add("aten::diagonal_backward", {normal({5}), sizes, 0, 0, 1});
  list.add("aten::diagonal_backward", {normal({4}), sizes, -1, 0, 1});
}

}  // namespace

void add_other_cases(CaseList& list) {
  add_softmaxes(list);
  add_products(list);
  add_statistics(list);
  add_indexing(list);
}

}  // namespace halftone
