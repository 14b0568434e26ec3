// What a user of PyTorch has today: MKL's fp32 through at::linear, FBGEMM's int8 through
// quantized::linear_dynamic.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>

#include <memory>

#include "contender.h"

namespace halftone::bench {
namespace {

double relative_error(const at::Tensor& y, const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor want = at::matmul(x.narrow(0, 0, 1).to(at::kDouble), w.to(at::kDouble).t());
  const at::Tensor difference = (y.narrow(0, 0, 1).to(at::kDouble) - want).abs().max();
  return (difference / want.abs().max()).item<double>();
}

Contender mkl(const Shape& s, const at::Tensor& x) {
  struct State {
    at::Tensor x, y;
    std::vector<at::Tensor> w;
  };
  auto state = std::make_shared<State>();
  state->x = x;
  for (int i = 0; i < rotations(s.n * s.k * 4); ++i) state->w.push_back(at::randn({s.n, s.k}));
  Contender c;
  c.name = "peer: at::linear fp32 (MKL)";
  c.peak = Peak::kFma;
  c.weight_bytes = s.n * s.k * 4;
  c.run = [state](int turn) {
    c10::InferenceMode guard;
    state->y = at::linear(state->x, state->w[static_cast<size_t>(turn) % state->w.size()]);
  };
  c.error = [state, run = c.run] {
    run(0);
    return relative_error(state->y, state->x, state->w[0]);
  };
  return c;
}

Contender fbgemm(const Shape& s, const at::Tensor& x) {
  struct State {
    at::Tensor x, y, w;
    std::vector<c10::IValue> packed;
    c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow("quantized::linear_dynamic", "");
  };
  auto state = std::make_shared<State>();
  state->x = x;
  state->w = at::randn({s.n, s.k});
  const at::Tensor quantized = at::quantize_per_channel(state->w, at::full({s.n}, 4.5 / 127, at::kDouble),
                                                        at::zeros({s.n}, at::kLong), 0, at::kQInt8);
  const auto prepack = c10::Dispatcher::singleton().findSchemaOrThrow("quantized::linear_prepack", "");
  for (int i = 0; i < rotations(s.n * s.k); ++i) {
    std::vector<c10::IValue> stack{quantized, c10::IValue()};
    prepack.callBoxed(stack);
    state->packed.push_back(stack[0]);
  }
  Contender c;
  c.name = "peer: quantized::linear_dynamic (FBGEMM)";
  c.weight_bytes = s.n * s.k;
  c.run = [state](int turn) {
    c10::InferenceMode guard;
    std::vector<c10::IValue> stack{state->x, state->packed[static_cast<size_t>(turn) % state->packed.size()],
                                   false};
    state->op.callBoxed(stack);
    state->y = stack[0].toTensor();
  };
  c.error = [state, run = c.run] {
    run(0);
    return relative_error(state->y, state->x, state->w);
  };
  return c;
}

}  // namespace

std::vector<Contender> peer_contenders(const Shape& s, int threads) {
  at::set_num_threads(threads);
  const at::Tensor x = at::randn({s.m, s.k});
  return {mkl(s, x), fbgemm(s, x)};
}

}  // namespace halftone::bench
