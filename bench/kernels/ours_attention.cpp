// Our attention as a candidate.
#include "ours_attention.h"

#include <algorithm>
#include <cmath>

#include "data.h"
#include "kernels/attention/attention.h"

namespace halftone::bench {
namespace {

struct State {
  std::vector<float> q, k, v, y;
  Memory workspace{nullptr, std::free};
  kernels::AttentionArgs args;
};

/// The first and the last row of the first head against double precision.
double attention_error(const State& state, const Shape& s) {
  double worst = 0, largest = 0;
  for (int64_t i : {int64_t{0}, s.m - 1}) {
    std::vector<double> weights(static_cast<size_t>(s.n));
    double sum = 0;
    for (int64_t j = 0; j < s.n; ++j) {
      double dot = 0;
      for (int64_t c = 0; c < s.k; ++c) dot += double{state.args.q[i * s.k + c]} * state.args.k[j * s.k + c];
      sum += weights[static_cast<size_t>(j)] = std::exp(dot / std::sqrt(static_cast<double>(s.k)));
    }
    for (int64_t c = 0; c < s.k; ++c) {
      double want = 0;
      for (int64_t j = 0; j < s.n; ++j)
        want += weights[static_cast<size_t>(j)] / sum * state.args.v[j * s.k + c];
      worst = std::max(worst, std::abs(want - state.args.y[i * s.k + c]));
      largest = std::max(largest, std::abs(want));
    }
  }
  return worst / largest;
}

}  // namespace

Candidate attention(const Shape& s, ParallelFor& parallel_for) {
  const kernels::AttentionProblem p{1, kHeads, kHeads, s.m, s.n, s.k, s.k};
  const auto& kernel = kernels::choose_attention(p);
  auto state = std::make_shared<State>();
  state->q = random_floats(kHeads * s.m * s.k, 1);
  state->k = random_floats(kHeads * s.n * s.k, 2);
  state->v = random_floats(kHeads * s.n * s.k, 3);
  state->y.resize(state->q.size());
  kernels::AttentionArgs& a = state->args;
  a.q = state->q.data();
  a.k = state->k.data();
  a.v = state->v.data();
  a.y = state->y.data();
  a.q_strides = a.y_strides = {kHeads * s.m * s.k, s.m * s.k, s.k};
  a.k_strides = a.v_strides = {kHeads * s.n * s.k, s.n * s.k, s.k};
  a.scale = 1.0f / std::sqrt(static_cast<float>(s.k));
  a.workspace_bytes = kernels::attention_workspace_bytes(p, parallel_for.threads());
  state->workspace = allocate(a.workspace_bytes);
  a.workspace = state->workspace.get();
  Candidate c;
  c.label = "attention";
  c.kernel = kernel.name;
  c.rival = kBaselines[1];
  c.peak = Peak::kFma;
  c.macs = 2.0 * static_cast<double>(kHeads * s.m * s.n * s.k);
  c.bytes = static_cast<double>(2 * kHeads * (s.m + s.n) * s.k * 4);
  c.run = [state, p, &kernel, &parallel_for](int) {
    kernels::attention(kernel, p, state->args, parallel_for);
  };
  c.error = [state, s, run = c.run] {
    run(0);
    return attention_error(*state, s);
  };
  c.bound = 1e-4;
  return c;
}

}  // namespace halftone::bench
