// halftone::conv against the plain ATen operators that it stands for.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "compiler/ops/ops.h"
#include "halftone/base/error.h"

namespace halftone {
namespace {

using Numbers = std::vector<int64_t>;

bool has_channels_last(const at::Tensor& y) {
  return y.movedim(1, -1).is_contiguous();
}

TEST(Conv, BiasThenResidualThenActivation) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({2, 4, 9, 7}), w = at::randn({6, 2, 3, 3}), b = at::randn({6}),
                   r = at::randn({2, 6, 5, 4});
  const Numbers stride = {2, 2}, padding = {1, 1}, dilation = {1, 1}, zeros = {0, 0};
  const at::Tensor s = at::conv2d(x, w, b, stride, padding, dilation, 2) + r;
  const std::vector<std::pair<std::string, at::Tensor>> cases = {{"none", s},
                                                                 {"relu", at::relu(s)},
                                                                 {"clamp", at::clamp(s, -1.0, 6.0)},
                                                                 {"gelu", at::gelu(s)},
                                                                 {"gelu_tanh", at::gelu(s, "tanh")},
                                                                 {"silu", at::silu(s)},
                                                                 {"hardswish", at::hardswish(s)},
                                                                 {"sigmoid", at::sigmoid(s)},
                                                                 {"hardsigmoid", at::hardsigmoid(s)}};
  for (const auto& [activation, expected] : cases) {
    const at::Tensor y =
        ops::conv(x, w, b, r, {stride, padding, dilation, false, zeros, 2, activation, -1, 6});
    EXPECT_TRUE(at::allclose(y, expected, 1e-5, 1e-5)) << activation;
    EXPECT_TRUE(has_channels_last(y));
  }
  EXPECT_THROW(ops::conv(x, w, b, r, {stride, padding, dilation, false, zeros, 2, "tanh"}), Error);
  EXPECT_THROW(ops::conv(x, w, b, r, {{2}, padding, dilation, false, zeros, 2}), Error);
  EXPECT_THROW(ops::conv(x[0], w[0], b, r, {stride, padding, dilation, false, zeros, 2}), Error);
}

TEST(Conv, OneToThreeDimensionsPlainAndTransposed) {
  at::manual_seed(2);
  const Numbers x1 = {2, 4, 6}, w1 = {4, 4, 3}, x2 = {2, 4, 6, 5}, w2 = {4, 4, 3, 2}, x3 = {2, 4, 6, 5, 4},
                w3 = {4, 4, 3, 2, 3};
  for (const auto& [sizes, weight] : {std::pair{x1, w1}, {x2, w2}, {x3, w3}}) {
    const size_t dims = sizes.size() - 2;
    const Numbers stride(dims, 2), padding(dims, 1), dilation(dims, 1), zeros(dims, 0), ones(dims, 1);
    const at::Tensor x = at::randn(sizes), w = at::randn(weight);
    for (const bool transposed : {false, true}) {
      const Numbers& behind = transposed ? ones : zeros;
      const at::Tensor expected = at::convolution(x, w, {}, stride, padding, dilation, transposed, behind, 1);
      const ops::ConvNumbers how{stride, padding, dilation, transposed, behind, 1, "none"};
      const at::Tensor y = ops::conv(x, w, {}, {}, how);
      EXPECT_TRUE(at::allclose(y, expected, 1e-5, 1e-5));
      EXPECT_TRUE(has_channels_last(y));
      const at::Tensor meta = ops::conv(x.to(at::kMeta), w.to(at::kMeta), {}, {}, how);
      EXPECT_EQ(meta.sizes(), y.sizes());
      EXPECT_EQ(meta.strides(), y.strides());
    }
  }
}

TEST(Conv, PaddingThatDiffersInFrontAndBehind) {
  at::manual_seed(3);
  const at::Tensor x = at::randn({2, 4, 9, 7}), w = at::randn({6, 4, 3, 2});
  const Numbers ones = {1, 1}, zeros = {0, 0}, padding = {2, 0, 1, 3};
  const ops::ConvNumbers how{ones, padding, ones, false, zeros, 1, "none"};
  const at::Tensor y = ops::conv(x, w, {}, {}, how);
  EXPECT_TRUE(at::allclose(y, at::conv2d(at::constant_pad_nd(x, {0, 3, 2, 1}), w), 1e-5, 1e-5));
  EXPECT_EQ(ops::conv(x.to(at::kMeta), w.to(at::kMeta), {}, {}, how).sizes(), y.sizes());
  EXPECT_THROW(ops::conv(x, w, {}, {}, {ones, padding, ones, true, zeros, 1, "none"}), Error);
}

}  // namespace
}  // namespace halftone
