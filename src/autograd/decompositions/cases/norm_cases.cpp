// Calls of layer, batch and group norms.
#include <ATen/ATen.h>

#include <array>

#include "autograd/decompositions/cases/case.h"

namespace halftone {
namespace {

using at::randn;
using at::Tensor;
using Mask = std::array<bool, 3>;
const c10::IValue kNone;

Tensor normal(at::IntArrayRef sizes) {
  return randn(sizes, at::kDouble).add(0.5).mul(2);
}
Tensor positive(at::IntArrayRef sizes) {
  return at::rand(sizes, at::kDouble).add(0.5);
}

c10::List<bool> mask_of(const Mask& mask) {
  return c10::List<bool>({mask[0], mask[1], mask[2]});
}

constexpr bool kSums = true;

void add_layer_norms(CaseList& list) {
  struct Shape {
    std::vector<int64_t> sizes;
    std::vector<int64_t> inner;
  };
  const std::vector<Shape> shapes = {{{5, 16}, {16}}, {{2, 3, 4, 6}, {4, 6}}, {{12}, {12}}, {{0, 4}, {4}}};
  for (const auto& [sizes, inner] : shapes) {
    const Tensor x = normal(sizes);
    const Tensor weight = normal(inner);
    const Tensor bias = normal(inner);
    list.add("aten::native_layer_norm", {x, inner, weight, bias, 1e-5}, kSums);
    list.add("aten::native_layer_norm", {x, inner, weight, kNone, 1e-5}, kSums);
    list.add("aten::native_layer_norm", {x, inner, kNone, kNone, 1e-3}, kSums);
    const auto [result, mean, rstd] = at::native_layer_norm(x, inner, weight, bias, 1e-5);
    const Tensor grad = randn(sizes, at::kDouble);
    for (const Mask& mask : {Mask{true, true, true}, Mask{true, false, false}, Mask{false, true, true}}) {
      list.add("aten::native_layer_norm_backward", {grad, x, inner, mean, rstd, weight, bias, mask_of(mask)},
               kSums);
    }
    list.add("aten::native_layer_norm_backward",
             {grad, x, inner, mean, rstd, kNone, kNone, mask_of({true, false, false})}, kSums);
  }
  const Tensor x = normal({3, 8}).to(at::kBFloat16);
  list.add_exact("aten::native_layer_norm", {x, std::vector<int64_t>{8}, positive({8}).to(at::kFloat),
                                             normal({8}).to(at::kFloat), 1e-5});
}

void add_batch_norm_forwards(CaseList& list, const Tensor& x) {
  const int64_t channels = x.size(1);
  const Tensor weight = normal({channels});
  const Tensor bias = normal({channels});
  const Tensor mean = normal({channels});
  const Tensor variance = positive({channels});
  for (const auto& [w, b] :
       std::vector<std::pair<c10::IValue, c10::IValue>>{{weight, bias}, {kNone, kNone}}) {
    list.add("aten::native_batch_norm", {x, w, b, mean, variance, false, 0.1, 1e-5}, kSums);
    list.add("aten::native_batch_norm", {x, w, b, kNone, kNone, true, 0.1, 1e-5}, kSums);
    list.add("aten::_native_batch_norm_legit", {x, w, b, mean, variance, false, 0.1, 1e-5}, kSums);
    list.add("aten::_native_batch_norm_legit.no_stats", {x, w, b, true, 0.1, 1e-5}, kSums);
    list.add("aten::_native_batch_norm_legit_no_training", {x, w, b, mean, variance, 0.1, 1e-5}, kSums);
    for (const bool training : {true, false}) {
      list.add("aten::_native_batch_norm_legit_functional", {x, w, b, mean, variance, training, 0.3, 1e-5},
               kSums);
    }
  }
}

void add_batch_norm_backwards(CaseList& list, const Tensor& x) {
  const int64_t channels = x.size(1);
  const Tensor weight = normal({channels});
  const Tensor mean = normal({channels});
  const Tensor variance = positive({channels});
  const Tensor grad = randn(x.sizes(), at::kDouble).contiguous(x.suggest_memory_format());
  const auto [result, save_mean, save_rstd] =
      at::native_batch_norm(x, weight, {}, mean.clone(), variance.clone(), true, 0.1, 1e-5);
  for (const bool train : {true, false}) {
    for (const Mask& mask : {Mask{true, true, true}, Mask{true, false, false}, Mask{false, true, true}}) {
      list.add("aten::native_batch_norm_backward",
               {grad, x, weight, mean, variance, save_mean, save_rstd, train, 1e-5, mask_of(mask)}, kSums);
    }
    list.add(
        "aten::native_batch_norm_backward",
        {grad, x, kNone, mean, variance, save_mean, save_rstd, train, 1e-5, mask_of({true, false, false})},
        kSums);
  }
}

void add_group_norms(CaseList& list, const Tensor& x, int64_t groups) {
  const int64_t samples = x.size(0);
  const int64_t channels = x.size(1);
  const int64_t places = x.numel() / (samples * channels);
  const Tensor weight = normal({channels});
  const Tensor bias = normal({channels});
  const Tensor grad = randn(x.sizes(), at::kDouble).contiguous(x.suggest_memory_format());
  const auto [result, mean, rstd] =
      at::native_group_norm(x, weight, bias, samples, channels, places, groups, 1e-5);
  list.add("aten::native_group_norm", {x, weight, bias, samples, channels, places, groups, 1e-5}, kSums);
  list.add("aten::native_group_norm", {x, kNone, kNone, samples, channels, places, groups, 1e-3}, kSums);
  for (const Mask& mask : {Mask{true, true, true}, Mask{true, false, false}, Mask{false, true, true}}) {
    // torch 2.13 crashes here if it is asked for no gradient of an operand with channels last.
    if (!mask[0] && !x.is_contiguous()) continue;
    list.add("aten::native_group_norm_backward",
             {grad, x, mean, rstd, weight, samples, channels, places, groups, mask_of(mask)}, kSums);
  }
  list.add("aten::native_group_norm_backward",
           {grad, x, mean, rstd, kNone, samples, channels, places, groups, mask_of({true, false, false})},
           kSums);
}

}  // namespace

void add_norm_cases(CaseList& list) {
  add_layer_norms(list);
  const Tensor image = normal({2, 6, 5, 4});
  const Tensor channels_last = image.contiguous(at::MemoryFormat::ChannelsLast);
  for (const Tensor& x : {image, channels_last, normal({7, 3}), normal({4, 2, 3, 2, 3})}) {
    add_batch_norm_forwards(list, x);
    add_batch_norm_backwards(list, x);
  }
  add_group_norms(list, image, 2);
  add_group_norms(list, image, 6);
  add_group_norms(list, channels_last, 3);
  add_group_norms(list, normal({3, 4, 5}), 1);
}

}  // namespace halftone
