// PyTorch's own kernels: MKL's fp32 through at::linear, FBGEMM's int8 through
// quantized::linear_dynamic, ATen's own weight-only kernels and its attention.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>

#include "candidate.h"
#include "graph/aten/aten_parallel_for.h"

namespace halftone::bench {
namespace {

/// A peer's weights (in the peer's own form), its call, and the weights that its answer is compared with.
struct Peer {
  at::Tensor x, y, weights;
  std::vector<c10::IValue> packed;
  std::function<at::Tensor(const at::Tensor& x, const c10::IValue& packed)> call;

  void run(int turn) {
    const c10::InferenceMode guard;
    y = call(x, packed[static_cast<size_t>(turn) % packed.size()]);
  }
  double error() {
    run(0);
    const at::Tensor want = at::matmul(x.narrow(0, 0, 1).to(at::kDouble), weights.to(at::kDouble).t());
    const at::Tensor difference = (y.narrow(0, 0, 1).to(at::kDouble) - want).abs().max();
    return (difference / want.abs().max()).item<double>();
  }
};

Candidate candidate(std::shared_ptr<Peer> peer, const Shape& s, const char* label, const char* kernel,
                    double bytes) {
  Candidate c;
  c.label = label;
  c.kernel = kernel;
  c.ours = false;
  c.macs = static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  c.bytes = bytes;
  c.run = [peer](int turn) { peer->run(turn); };
  c.error = [peer] { return peer->error(); };
  return c;
}

Candidate mkl(const Shape& s, const at::Tensor& x) {
  auto peer = std::make_shared<Peer>();
  peer->x = x;
  peer->weights = at::randn({s.n, s.k});
  const int64_t bytes = s.n * s.k * 4;
  for (int i = 0; i < rotations(bytes); ++i) peer->packed.emplace_back(peer->weights.clone());
  peer->call = [](const at::Tensor& x, const c10::IValue& w) { return at::linear(x, w.toTensor()); };
  Candidate c = candidate(peer, s, kBaselines[0], "at::linear fp32 (MKL)", static_cast<double>(bytes));
  c.peak = Peak::kFma;
  return c;
}

Candidate fbgemm(const Shape& s, const at::Tensor& x) {
  auto& dispatcher = c10::Dispatcher::singleton();
  auto peer = std::make_shared<Peer>();
  peer->x = x;
  peer->weights = at::randn({s.n, s.k});
  const at::Tensor quantized =
      at::quantize_per_channel(peer->weights, (peer->weights.abs().amax(1) / 127).to(at::kDouble),
                               at::zeros({s.n}, at::kLong), 0, at::kQInt8);
  const auto prepack = dispatcher.findSchemaOrThrow("quantized::linear_prepack", "");
  for (int i = 0; i < rotations(s.n * s.k); ++i) {
    std::vector<c10::IValue> stack{quantized, c10::IValue()};
    prepack.callBoxed(stack);
    peer->packed.push_back(stack[0]);
  }
  const auto op = dispatcher.findSchemaOrThrow("quantized::linear_dynamic", "");
  peer->call = [op](const at::Tensor& x, const c10::IValue& w) {
    std::vector<c10::IValue> stack{x, w, false};
    op.callBoxed(stack);
    return stack[0].toTensor();
  };
  Candidate c =
      candidate(peer, s, "FBGEMM int8", "quantized::linear_dynamic (FBGEMM)", static_cast<double>(s.n * s.k));
  c.peak = Peak::kExact7;
  return c;
}

Candidate int8_pack_mm(const Shape& s, const at::Tensor& x) {
  auto peer = std::make_shared<Peer>();
  peer->x = x;
  const at::Tensor w = at::randint(-127, 128, {s.n, s.k}, at::kChar);
  peer->weights = w.to(at::kFloat) * 0.01;
  for (int i = 0; i < rotations(s.n * s.k); ++i) peer->packed.emplace_back(w.clone());
  peer->call = [scale = at::full({s.n}, 0.01)](const at::Tensor& x, const c10::IValue& w) {
    return at::_weight_int8pack_mm(x, w.toTensor(), scale);
  };
  Candidate c =
      candidate(peer, s, "ATen int8pack", "_weight_int8pack_mm fp32", static_cast<double>(s.n * s.k));
  c.peak = Peak::kFma;
  return c;
}

Candidate int4_pack_mm(const Shape& s, const at::Tensor& x) {
  auto peer = std::make_shared<Peer>();
  peer->x = x;
  const at::Tensor w = at::randint(0, 16, {s.n, s.k}, at::kInt);
  peer->weights = (w.to(at::kFloat) - 8) * 0.01;
  const at::Tensor packed = at::_convert_weight_to_int4pack_for_cpu(w, 2);
  for (int i = 0; i < rotations(s.n * s.k / 2); ++i) peer->packed.emplace_back(packed.clone());
  const at::Tensor scale =
      at::stack({at::full({s.k / 32, s.n}, 0.01), at::zeros({s.k / 32, s.n})}, 2).contiguous();
  peer->call = [scale](const at::Tensor& x, const c10::IValue& w) {
    return at::_weight_int4pack_mm_for_cpu(x, w.toTensor(), 32, scale);
  };
  Candidate c = candidate(peer, s, "ATen int4pack", "_weight_int4pack_mm_for_cpu fp32, groups of 32",
                          static_cast<double>(s.n * s.k / 2 + s.n * s.k / 32 * 8));
  c.peak = Peak::kFma;
  return c;
}

// q, k and v stay as they are: activations come from the cache in a model too.
Candidate sdpa(const Shape& s) {
  struct State {
    at::Tensor q, k, v, y;
  };
  auto state = std::make_shared<State>();
  state->q = at::randn({1, kHeads, s.m, s.k});
  state->k = at::randn({1, kHeads, s.n, s.k});
  state->v = at::randn({1, kHeads, s.n, s.k});
  Candidate c;
  c.label = kBaselines[1];
  c.kernel = "at::scaled_dot_product_attention";
  c.ours = false;
  c.peak = Peak::kFma;
  c.macs = 2.0 * static_cast<double>(kHeads * s.m * s.n * s.k);
  c.bytes = static_cast<double>(2 * kHeads * (s.m + s.n) * s.k * 4);
  c.run = [state](int) {
    const c10::InferenceMode guard;
    state->y = at::scaled_dot_product_attention(state->q, state->k, state->v);
  };
  c.error = [state, run = c.run, s] {
    run(0);
    const at::Tensor q = state->q.to(at::kDouble), k = state->k.to(at::kDouble), v = state->v.to(at::kDouble);
    const at::Tensor scores = at::matmul(q, k.transpose(-1, -2)) / std::sqrt(static_cast<double>(s.k));
    const at::Tensor want = at::matmul(at::softmax(scores, -1), v);
    return ((state->y.to(at::kDouble) - want).abs().max() / want.abs().max()).item<double>();
  };
  return c;
}

}  // namespace

std::vector<Candidate> peer_candidates(const Case& c) {
  const Shape& s = c.shape;
  std::vector<Candidate> peers;
  if (c.suite == Suite::kAttention) {
    peers.push_back(sdpa(s));
    return peers;
  }
  const at::Tensor x = at::randn({s.m, s.k});
  peers.push_back(mkl(s, x));
  peers.push_back(fbgemm(s, x));
  // These two take seconds for a large case on a CPU without AVX-512: only if a call stays short.
  if (s.m * s.n * s.k <= int64_t{1} << 26) {
    peers.push_back(int8_pack_mm(s, x));
    if (s.k % 32 == 0) peers.push_back(int4_pack_mm(s, x));
  }
  return peers;
}

std::unique_ptr<ParallelFor> make_parallel_for(int threads) {
  at::set_num_threads(threads);
  return std::make_unique<AtenParallelFor>();
}

}  // namespace halftone::bench
