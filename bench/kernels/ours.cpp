// Our kernels as candidates, one function for each operation and weight format.
#include <algorithm>

#include "data.h"
#include "kernels/bf16_linear/bf16_linear.h"
#include "kernels/fp32_linear/fp32_linear.h"
#include "kernels/fp8_linear/fp8_linear.h"
#include "kernels/int4_dynamic_linear/int4_dynamic_linear.h"
#include "kernels/int4_weight_only_linear/int4_weight_only_linear.h"
#include "kernels/int8_linear/int8_linear.h"
#include "kernels/int8_weight_only_linear/int8_weight_only_linear.h"
#include "ours_attention.h"

namespace halftone::bench {
namespace {

constexpr float kScale = 0.01f;  // of weights in 8-bit floats
constexpr int kGroup = 32;       // of int4

/// What a linear's candidate keeps: input, output, packed weights and scratch, and the arguments that point
/// to them.
template <typename Args>
struct Linear {
  Shape shape;
  std::vector<float> x, y;
  QuantizedWeights quantized;  // plain weights, of one of the two kinds
  std::vector<float> floats;
  std::unique_ptr<Rotation> packed;
  Memory workspace{nullptr, std::free};
  Args args;

  explicit Linear(const Shape& s) : shape(s), x(random_floats(s.m * s.k, 1)) {
    y.resize(static_cast<size_t>(s.m * s.n));
    args.x = x.data();
    args.x_stride = s.k;
    args.epilogue.out = y.data();
    args.epilogue.out_stride = s.n;
  }
  void set_workspace(size_t bytes) {
    workspace = allocate(bytes);
    args.workspace = workspace.get();
    args.workspace_bytes = bytes;
  }
  float weight(int64_t j, int64_t k) const {
    const auto at = static_cast<size_t>(j * shape.k + k);
    return floats.empty() ? quantized.at(at) : floats[at];
  }
};

/// The part of a candidate that all linears share. `call` runs the kernel on state->args.
template <typename Args, typename Call>
Candidate linear_candidate(std::shared_ptr<Linear<Args>> state, const char* kernel, Call call) {
  const Shape s = state->shape;
  Candidate c;
  c.kernel = kernel;
  c.macs = static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  c.run = [state, call](int turn) {
    state->args.weights = state->packed->at(turn);
    call(state->args);
  };
  c.error = [state, s, run = c.run] {
    run(0);
    return linear_error(
        state->y, state->x, [&](int64_t j, int64_t k) { return state->weight(j, k); }, s);
  };
  return c;
}

Candidate int8(const Shape& s, int bits, ParallelFor& parallel_for) {
  const kernels::Int8LinearProblem p{s.m, s.n, s.k, bits};
  const auto& kernel = kernels::choose_int8_linear(p);
  auto state = std::make_shared<Linear<kernels::Int8LinearArgs>>(s);
  state->quantized = QuantizedWeights(s.n, s.k, s.k, bits == 8 ? 127 : 63, 2);
  const QuantizedWeights& w = state->quantized;
  state->packed =
      std::make_unique<Rotation>(kernels::int8_packed_bytes(s.n, s.k, kernel.tile), [&](void* out) {
        pack_int8_weights({w.integers.data(), s.k, w.scale.data(), s.n, s.k, bits}, kernel.tile, out);
      });
  state->set_workspace(
      kernels::int8_linear_workspace_bytes(kernel, p, parallel_for.threads(), kernels::OutputType::kFloat32));
  Candidate c = linear_candidate(state, kernel.name, [&kernel, p, &parallel_for](const auto& args) {
    kernels::int8_linear(kernel, p, args, parallel_for);
  });
  c.label = bits == 8 ? "int8" : "int8 7-bit";
  c.rival = "FBGEMM int8";
  c.peak = bits == 7 ? Peak::kExact7 : Peak::kExact8;
  c.bytes = static_cast<double>(s.n * s.k);
  c.bound = 0.05;  // activations have 8 bits
  return c;
}

Candidate fp32(const Shape& s, ParallelFor& parallel_for) {
  const kernels::Fp32LinearProblem p{s.m, s.n, s.k};
  const auto& kernel = kernels::choose_fp32_linear(p);
  auto state = std::make_shared<Linear<kernels::Fp32LinearArgs>>(s);
  state->floats = random_floats(s.n * s.k, 2);
  state->packed =
      std::make_unique<Rotation>(kernels::fp32_packed_bytes(s.n, s.k, kernel.tile_n), [&](void* out) {
        kernels::pack_fp32_weights({state->floats.data(), s.k, s.n, s.k}, kernel.tile_n, out);
      });
  state->set_workspace(
      kernels::fp32_linear_workspace_bytes(kernel, p, parallel_for.threads(), kernels::OutputType::kFloat32));
  Candidate c = linear_candidate(state, kernel.name, [&kernel, p, &parallel_for](const auto& args) {
    kernels::fp32_linear(kernel, p, args, parallel_for);
  });
  c.label = "fp32";
  c.peak = Peak::kFma;
  c.bytes = static_cast<double>(s.n * s.k * 4);
  c.bound = 1e-4;
  return c;
}

Candidate bf16(const Shape& s, ParallelFor& parallel_for) {
  const kernels::Bf16LinearProblem p{s.m, s.n, s.k};
  const auto& kernel = kernels::choose_bf16_linear(p);
  auto state = std::make_shared<Linear<kernels::Fp32LinearArgs>>(s);
  state->floats = random_floats(s.n * s.k, 2);
  std::vector<uint16_t> bits;
  for (float& w : state->floats) {
    bits.push_back(kernels::to_bfloat16(w));
    w = kernels::from_bfloat16(bits.back());
  }
  state->packed =
      std::make_unique<Rotation>(kernels::bf16_packed_bytes(s.n, s.k, kernel.tile_n), [&](void* out) {
        kernels::pack_bf16_weights({bits.data(), s.k, s.n, s.k}, kernel.tile_n, out);
      });
  state->set_workspace(
      kernels::bf16_linear_workspace_bytes(p, parallel_for.threads(), kernels::OutputType::kFloat32));
  Candidate c = linear_candidate(state, kernel.name, [&kernel, p, &parallel_for](const auto& args) {
    kernels::bf16_linear(kernel, p, args, parallel_for);
  });
  c.label = "bf16";
  c.peak = Peak::kFma;
  c.bytes = static_cast<double>(s.n * s.k * 2);
  c.bound = 1e-4;
  return c;
}

Candidate int8_weight_only(const Shape& s, ParallelFor& parallel_for) {
  const kernels::Int8WeightOnlyProblem p{s.m, s.n, s.k};
  const auto& kernel = kernels::choose_int8_weight_only(p);
  auto state = std::make_shared<Linear<kernels::Fp32LinearArgs>>(s);
  state->quantized = QuantizedWeights(s.n, s.k, s.k, 127, 2);
  const QuantizedWeights& w = state->quantized;
  state->packed = std::make_unique<
      Rotation>(kernels::int8_weight_only_packed_bytes(s.n, s.k, kernel.tile_n), [&](void* out) {
    kernels::pack_int8_weight_only({w.integers.data(), s.k, w.scale.data(), s.n, s.k}, kernel.tile_n, out);
  });
  state->set_workspace(
      kernels::int8_weight_only_workspace_bytes(p, parallel_for.threads(), kernels::OutputType::kFloat32));
  Candidate c = linear_candidate(state, kernel.name, [&kernel, p, &parallel_for](const auto& args) {
    kernels::int8_weight_only_linear(kernel, p, args, parallel_for);
  });
  c.label = "int8 weight-only";
  c.rival = "ATen int8pack";
  c.peak = Peak::kFma;
  c.bytes = static_cast<double>(s.n * s.k);
  c.bound = 1e-4;
  return c;
}

Candidate int4_weight_only(const Shape& s, ParallelFor& parallel_for) {
  const kernels::Int4WeightOnlyProblem p{s.m, s.n, s.k, kGroup};
  const auto& kernel = kernels::choose_int4_weight_only(p);
  auto state = std::make_shared<Linear<kernels::Fp32LinearArgs>>(s);
  state->quantized = QuantizedWeights(s.n, s.k, kGroup, 7, 2);
  const QuantizedWeights& w = state->quantized;
  state->packed = std::make_unique<Rotation>(
      kernels::int4_weight_only_packed_bytes(s.n, s.k, kGroup, kernels::Int4ZeroPoints::kNone, kernel.tile_n),
      [&](void* out) {
        kernels::pack_int4_weight_only({w.integers.data(), s.k, w.scale.data(), nullptr, s.n, s.k, kGroup},
                                       kernel.tile_n, out);
      });
  state->set_workspace(
      kernels::int4_weight_only_workspace_bytes(p, parallel_for.threads(), kernels::OutputType::kFloat32));
  Candidate c = linear_candidate(state, kernel.name, [&kernel, p, &parallel_for](const auto& args) {
    kernels::int4_weight_only_linear(kernel, p, args, parallel_for);
  });
  c.label = "int4 weight-only";
  c.rival = "ATen int4pack";
  c.peak = Peak::kFma;
  c.bytes = static_cast<double>(s.n * s.k) * (0.5 + 4.0 / kGroup);
  c.bound = 1e-4;
  return c;
}

Candidate int4_dynamic(const Shape& s, ParallelFor& parallel_for) {
  const kernels::Int4DynamicProblem p{s.m, s.n, s.k, kGroup};
  const auto& kernel = kernels::choose_int4_dynamic(p);
  auto state = std::make_shared<Linear<kernels::Fp32LinearArgs>>(s);
  state->quantized = QuantizedWeights(s.n, s.k, kGroup, 7, 2);
  const QuantizedWeights& w = state->quantized;
  state->packed = std::make_unique<Rotation>(
      kernels::int4_dynamic_packed_bytes(s.n, s.k, kGroup, kernels::Int4ZeroPoints::kNone, kernel.tile_n),
      [&](void* out) {
        kernels::pack_int4_dynamic({w.integers.data(), s.k, w.scale.data(), nullptr, s.n, s.k, kGroup},
                                   kernel.tile_n, out);
      });
  state->set_workspace(kernels::int4_dynamic_workspace_bytes(kernel, p, parallel_for.threads(),
                                                             kernels::OutputType::kFloat32));
  Candidate c = linear_candidate(state, kernel.name, [&kernel, p, &parallel_for](const auto& args) {
    kernels::int4_dynamic_linear(kernel, p, args, parallel_for);
  });
  c.label = "int4 dynamic";
  c.rival = "ATen int4pack";
  c.peak = Peak::kInt4;
  c.bytes = static_cast<double>(s.n * s.k) * (0.5 + 4.0 / kGroup);
  c.bound = 0.05;  // activations have 8 bits
  return c;
}

// Weights are the integers of [-8, 8], which e4m3fn holds exactly.
Candidate fp8(const Shape& s, kernels::Fp8Activations activations, ParallelFor& parallel_for) {
  const kernels::Fp8LinearProblem p{s.m, s.n, s.k, activations};
  const auto& kernel = kernels::choose_fp8_linear(p);
  auto state = std::make_shared<Linear<kernels::Fp32LinearArgs>>(s);
  state->floats.resize(static_cast<size_t>(s.n * s.k));
  const std::vector<int8_t> integers = random_bytes(s.n * s.k, -8, 8, 2);
  std::transform(integers.begin(), integers.end(), state->floats.begin(),
                 [](int8_t w) { return kScale * w; });
  state->packed =
      std::make_unique<Rotation>(kernels::fp8_packed_bytes(s.n, s.k, kernel.tile_n), [&](void* out) {
        std::vector<uint8_t> bytes;
        for (int8_t w : integers)
          bytes.push_back(kernels::float8_from_float(w, kernels::Float8Format::kE4m3fn));
        kernels::pack_fp8_weights({bytes.data(), s.k, &kScale, 0, s.n, s.k}, kernel.tile_n, out);
      });
  state->set_workspace(
      kernels::fp8_linear_workspace_bytes(p, parallel_for.threads(), kernels::OutputType::kFloat32));
  Candidate c = linear_candidate(state, kernel.name, [&kernel, p, &parallel_for](const auto& args) {
    kernels::fp8_linear(kernel, p, args, parallel_for);
  });
  const bool dynamic = activations == kernels::Fp8Activations::kDynamicE4m3;
  c.label = dynamic ? "fp8 dynamic" : "fp8 weight-only";
  c.peak = Peak::kFma;
  c.bytes = static_cast<double>(s.n * s.k);
  c.bound = dynamic ? 0.1 : 1e-4;  // e4m3fn has 3 bits of mantissa
  return c;
}

std::vector<Candidate> linear_candidates(const Shape& s, ParallelFor& parallel_for) {
  std::vector<Candidate> all;
  all.push_back(fp32(s, parallel_for));
  all.push_back(bf16(s, parallel_for));
  all.push_back(int8(s, 7, parallel_for));
  all.push_back(int8(s, 8, parallel_for));
  all.push_back(int8_weight_only(s, parallel_for));
  all.push_back(fp8(s, kernels::Fp8Activations::kFloat32, parallel_for));
  all.push_back(fp8(s, kernels::Fp8Activations::kDynamicE4m3, parallel_for));
  if (s.k % kGroup == 0) {
    all.push_back(int4_weight_only(s, parallel_for));
    all.push_back(int4_dynamic(s, parallel_for));
  }
  return all;
}

}  // namespace

std::vector<Candidate> our_candidates(const Case& c, ParallelFor& parallel_for) {
  if (c.suite == Suite::kLinear) return linear_candidates(c.shape, parallel_for);
  return {attention(c.shape, parallel_for)};
}

}  // namespace halftone::bench
