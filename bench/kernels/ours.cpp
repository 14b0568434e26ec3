// Our kernels as contenders, one for each operation and weight format.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>

#include "contender.h"
#include "kernels/fp32_linear/fp32_linear.h"
#include "kernels/int4_weight_only_linear/int4_weight_only_linear.h"
#include "kernels/int8_linear/int8_linear.h"
#include "kernels/int8_weight_only_linear/int8_weight_only_linear.h"

namespace halftone::bench {
namespace {

using Memory = std::unique_ptr<void, void (*)(void*)>;

Memory allocate(size_t bytes) {
  return Memory(std::aligned_alloc(64, (bytes + 63) / 64 * 64), std::free);
}

std::vector<float> normal(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = distribution(engine);
  return values;
}

// Compares the first and the last row with double-precision sums of the same float weights and activations.
double error_of(const std::vector<float>& y, const std::vector<float>& x,
                const std::function<float(int64_t, int64_t)>& w, const Shape& s) {
  double worst = 0, largest = 0;
  for (int64_t i : {int64_t{0}, s.m - 1}) {
    for (int64_t j = 0; j < s.n; j += std::max<int64_t>(1, s.n / 64)) {
      double sum = 0;
      for (int64_t k = 0; k < s.k; ++k) sum += double{x[static_cast<size_t>(i * s.k + k)]} * w(j, k);
      worst = std::max(worst, std::abs(sum - y[static_cast<size_t>(i * s.n + j)]));
      largest = std::max(largest, std::abs(sum));
    }
  }
  return worst / largest;
}

struct Int8State {
  kernels::Int8LinearProblem problem;
  const kernels::Int8LinearKernel* kernel;
  std::vector<float> x, y, scale;
  std::vector<int8_t> w;
  std::vector<Memory> packed;
  Memory workspace{nullptr, std::free};
  kernels::Int8LinearArgs args;
  Splitter* splitter;

  Int8State(const Shape& s, int bits, Splitter& sp) : problem{s.m, s.n, s.k, bits}, splitter(&sp) {
    kernel = &kernels::choose_int8_linear(problem);
    x = normal(s.m * s.k, 1);
    y.resize(static_cast<size_t>(s.m * s.n));
    scale.assign(static_cast<size_t>(s.n), 0.01f);
    w.resize(static_cast<size_t>(s.n * s.k));
    std::mt19937 engine(2);
    const int most = bits == 8 ? 127 : 64;
    for (int8_t& v : w)
      v = static_cast<int8_t>(static_cast<int>(engine() % static_cast<unsigned>(2 * most + 1)) - most);
    const size_t bytes = kernels::int8_packed_bytes(s.n, s.k, kernel->tile);
    for (int i = 0; i < rotations(s.n * s.k); ++i) {
      packed.push_back(allocate(bytes));
      kernels::pack_int8_weights({w.data(), s.k, scale.data(), s.n, s.k, bits}, kernel->tile,
                                 packed.back().get());
    }
    const size_t scratch =
        kernels::int8_linear_workspace_bytes(*kernel, problem, sp.threads(), kernels::OutputType::kFloat32);
    workspace = allocate(scratch);
    args.x = x.data();
    args.x_stride = s.k;
    args.workspace = workspace.get();
    args.workspace_bytes = scratch;
    args.epilogue.out = y.data();
    args.epilogue.out_stride = s.n;
  }

  void run(int turn) {
    args.weights = packed[static_cast<size_t>(turn) % packed.size()].get();
    kernels::int8_linear(*kernel, problem, args, *splitter);
  }
};

Contender int8_contender(const Shape& s, int bits, Splitter& splitter) {
  auto state = std::make_shared<Int8State>(s, bits, splitter);
  Contender c;
  c.name = state->kernel->name;
  c.peak = bits == 7 ? Peak::kChain : Peak::kExact8;
  c.weight_bytes = s.n * s.k;
  c.run = [state](int turn) { state->run(turn); };
  c.error = [state, s] {
    state->run(0);
    return error_of(
        state->y, state->x,
        [&](int64_t j, int64_t k) { return 0.01f * state->w[static_cast<size_t>(j * s.k + k)]; }, s);
  };
  return c;
}

struct Fp32State {
  kernels::Fp32LinearProblem problem;
  const kernels::Fp32LinearKernel* kernel;
  std::vector<float> x, y, w;
  std::vector<Memory> packed;
  Memory workspace{nullptr, std::free};
  kernels::Fp32LinearArgs args;
  Splitter* splitter;

  Fp32State(const Shape& s, Splitter& sp) : problem{s.m, s.n, s.k}, splitter(&sp) {
    kernel = &kernels::choose_fp32_linear(problem);
    x = normal(s.m * s.k, 1);
    w = normal(s.n * s.k, 2);
    y.resize(static_cast<size_t>(s.m * s.n));
    for (int i = 0; i < rotations(s.n * s.k * 4); ++i) {
      packed.push_back(allocate(kernels::fp32_packed_bytes(s.n, s.k, kernel->tile_n)));
      kernels::pack_fp32_weights({w.data(), s.k, s.n, s.k}, kernel->tile_n, packed.back().get());
    }
    args.workspace_bytes =
        kernels::fp32_linear_workspace_bytes(*kernel, problem, sp.threads(), kernels::OutputType::kFloat32);
    workspace = allocate(args.workspace_bytes);
    args.workspace = workspace.get();
    args.x = x.data();
    args.x_stride = s.k;
    args.epilogue.out = y.data();
    args.epilogue.out_stride = s.n;
  }

  void run(int turn) {
    args.weights = packed[static_cast<size_t>(turn) % packed.size()].get();
    kernels::fp32_linear(*kernel, problem, args, *splitter);
  }
};

Contender fp32_contender(const Shape& s, Splitter& splitter) {
  auto state = std::make_shared<Fp32State>(s, splitter);
  Contender c;
  c.name = state->kernel->name;
  c.peak = Peak::kFma;
  c.weight_bytes = s.n * s.k * 4;
  c.run = [state](int turn) { state->run(turn); };
  c.error = [state, s] {
    state->run(0);
    return error_of(
        state->y, state->x, [&](int64_t j, int64_t k) { return state->w[static_cast<size_t>(j * s.k + k)]; },
        s);
  };
  return c;
}

struct WeightOnlyState {
  kernels::Int8WeightOnlyProblem problem;
  const kernels::Int8WeightOnlyKernel* kernel;
  std::vector<float> x, y, scale;
  std::vector<int8_t> w;
  std::vector<Memory> packed;
  Memory workspace{nullptr, std::free};
  kernels::Fp32LinearArgs args;
  Splitter* splitter;

  WeightOnlyState(const Shape& s, Splitter& sp) : problem{s.m, s.n, s.k}, splitter(&sp) {
    kernel = &kernels::choose_int8_weight_only(problem);
    x = normal(s.m * s.k, 1);
    y.resize(static_cast<size_t>(s.m * s.n));
    scale.assign(static_cast<size_t>(s.n), 0.01f);
    w.resize(static_cast<size_t>(s.n * s.k));
    std::mt19937 engine(2);
    for (int8_t& v : w) v = static_cast<int8_t>(engine());
    for (int i = 0; i < rotations(s.n * s.k); ++i) {
      packed.push_back(allocate(kernels::int8_weight_only_packed_bytes(s.n, s.k, kernel->tile_n)));
      kernels::pack_int8_weight_only({w.data(), s.k, scale.data(), s.n, s.k}, kernel->tile_n,
                                     packed.back().get());
    }
    args.workspace_bytes =
        kernels::int8_weight_only_workspace_bytes(problem, sp.threads(), kernels::OutputType::kFloat32);
    workspace = allocate(args.workspace_bytes);
    args.workspace = workspace.get();
    args.x = x.data();
    args.x_stride = s.k;
    args.epilogue.out = y.data();
    args.epilogue.out_stride = s.n;
  }

  void run(int turn) {
    args.weights = packed[static_cast<size_t>(turn) % packed.size()].get();
    kernels::int8_weight_only_linear(*kernel, problem, args, *splitter);
  }
};

Contender weight_only_contender(const Shape& s, Splitter& splitter) {
  auto state = std::make_shared<WeightOnlyState>(s, splitter);
  Contender c;
  c.name = state->kernel->name;
  c.peak = Peak::kFma;
  c.weight_bytes = s.n * s.k;
  c.run = [state](int turn) { state->run(turn); };
  c.error = [state, s] {
    state->run(0);
    return error_of(
        state->y, state->x,
        [&](int64_t j, int64_t k) { return 0.01f * state->w[static_cast<size_t>(j * s.k + k)]; }, s);
  };
  return c;
}

constexpr int kGroup = 32;

struct Int4State {
  kernels::Int4WeightOnlyProblem problem;
  const kernels::Int4WeightOnlyKernel* kernel;
  std::vector<float> x, y, scale;
  std::vector<int8_t> w;
  std::vector<Memory> packed;
  Memory workspace{nullptr, std::free};
  kernels::Fp32LinearArgs args;
  Splitter* splitter;

  Int4State(const Shape& s, Splitter& sp) : problem{s.m, s.n, s.k, kGroup}, splitter(&sp) {
    kernel = &kernels::choose_int4_weight_only(problem);
    x = normal(s.m * s.k, 1);
    y.resize(static_cast<size_t>(s.m * s.n));
    scale.assign(static_cast<size_t>(s.n * s.k / kGroup), 0.01f);
    w.resize(static_cast<size_t>(s.n * s.k));
    std::mt19937 engine(2);
    for (int8_t& v : w) v = static_cast<int8_t>(static_cast<int>(engine() % 16) - 8);
    for (int i = 0; i < rotations(s.n * s.k / 2); ++i) {
      packed.push_back(
          allocate(kernels::int4_weight_only_packed_bytes(s.n, s.k, kGroup, false, kernel->tile_n)));
      kernels::pack_int4_weight_only({w.data(), s.k, scale.data(), nullptr, s.n, s.k, kGroup}, kernel->tile_n,
                                     packed.back().get());
    }
    args.workspace_bytes =
        kernels::int4_weight_only_workspace_bytes(problem, sp.threads(), kernels::OutputType::kFloat32);
    workspace = allocate(args.workspace_bytes);
    args.workspace = workspace.get();
    args.x = x.data();
    args.x_stride = s.k;
    args.epilogue.out = y.data();
    args.epilogue.out_stride = s.n;
  }

  void run(int turn) {
    args.weights = packed[static_cast<size_t>(turn) % packed.size()].get();
    kernels::int4_weight_only_linear(*kernel, problem, args, *splitter);
  }
};

Contender int4_contender(const Shape& s, Splitter& splitter) {
  auto state = std::make_shared<Int4State>(s, splitter);
  Contender c;
  c.name = state->kernel->name;
  c.peak = Peak::kFma;
  c.weight_bytes = s.n * s.k / 2 + s.n * s.k / kGroup * 4;  // scales are read too
  c.run = [state](int turn) { state->run(turn); };
  c.error = [state, s] {
    state->run(0);
    return error_of(
        state->y, state->x,
        [&](int64_t j, int64_t k) { return 0.01f * state->w[static_cast<size_t>(j * s.k + k)]; }, s);
  };
  return c;
}

}  // namespace

int rotations(int64_t weight_bytes) {
  return static_cast<int>(
      std::clamp<int64_t>((int64_t{96} << 20) / std::max<int64_t>(weight_bytes, 1), 1, 16));
}

std::vector<Contender> our_contenders(const Shape& s, Splitter& splitter) {
  std::vector<Contender> all;
  all.push_back(int8_contender(s, 7, splitter));
  all.push_back(int8_contender(s, 8, splitter));
  all.push_back(fp32_contender(s, splitter));
  all.push_back(weight_only_contender(s, splitter));
  if (s.k % kGroup == 0) all.push_back(int4_contender(s, splitter));
  return all;
}

}  // namespace halftone::bench
