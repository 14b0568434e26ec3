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

// ATen's own weight-only kernels with fp32 activations; int4 in groups of 32.
Contender int8_pack_mm(const Shape& s, const at::Tensor& x) {
  struct State {
    at::Tensor x, y, w, scale;
    std::vector<at::Tensor> packed;
  };
  auto state = std::make_shared<State>();
  state->x = x;
  state->w = at::randint(-127, 128, {s.n, s.k}, at::kChar);
  state->scale = at::full({s.n}, 0.01);
  for (int i = 0; i < rotations(s.n * s.k); ++i) state->packed.push_back(state->w.clone());
  Contender c;
  c.name = "peer: _weight_int8pack_mm fp32";
  c.peak = Peak::kFma;
  c.weight_bytes = s.n * s.k;
  c.run = [state](int turn) {
    c10::InferenceMode guard;
    state->y = at::_weight_int8pack_mm(
        state->x, state->packed[static_cast<size_t>(turn) % state->packed.size()], state->scale);
  };
  c.error = [state, run = c.run] {
    run(0);
    return relative_error(state->y, state->x, state->w.to(at::kFloat) * 0.01);
  };
  return c;
}

Contender int4_pack_mm(const Shape& s, const at::Tensor& x) {
  struct State {
    at::Tensor x, y, w, scale;
    std::vector<at::Tensor> packed;
  };
  auto state = std::make_shared<State>();
  state->x = x;
  state->w = at::randint(0, 16, {s.n, s.k}, at::kInt);
  state->scale = at::stack({at::full({s.k / 32, s.n}, 0.01), at::zeros({s.k / 32, s.n})}, 2).contiguous();
  for (int i = 0; i < rotations(s.n * s.k / 2); ++i)
    state->packed.push_back(at::_convert_weight_to_int4pack_for_cpu(state->w, 2));
  Contender c;
  c.name = "peer: _weight_int4pack_mm_for_cpu fp32";
  c.peak = Peak::kFma;
  c.weight_bytes = s.n * s.k / 2 + s.n * s.k / 32 * 8;
  c.run = [state](int turn) {
    c10::InferenceMode guard;
    state->y = at::_weight_int4pack_mm_for_cpu(
        state->x, state->packed[static_cast<size_t>(turn) % state->packed.size()], 32, state->scale);
  };
  c.error = [state, run = c.run] {
    run(0);
    return relative_error(state->y, state->x, (state->w.to(at::kFloat) - 8) * 0.01);
  };
  return c;
}

}  // namespace

std::vector<Contender> peer_contenders(const Shape& s, int threads) {
  at::set_num_threads(threads);
  const at::Tensor x = at::randn({s.m, s.k});
  std::vector<Contender> peers = {mkl(s, x), fbgemm(s, x)};
  // These two take seconds for a large case on a CPU without AVX-512: only where a call stays short.
  if (s.m * s.n * s.k <= int64_t{1} << 25) {
    peers.push_back(int8_pack_mm(s, x));
    peers.push_back(int4_pack_mm(s, x));
  }
  return peers;
}

}  // namespace halftone::bench
