// A problem of attention with its tensors, and the double-precision definition to compare with.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/attention/kernels.h"
#include "kernels/common/test_support.h"

namespace halftone::kernels::testing {

/// Those that run here, and the AVX-512 one through SIMDe if there is one.
inline std::vector<AttentionKernel> test_attention_kernels() {
  std::vector<AttentionKernel> kernels = runnable(attention_kernels());
#if defined(HALFTONE_EMULATED_KERNELS)
  if (machine_isa() >= Isa::kAvx2) {
    for (AttentionKernel kernel : attention_kernels()) {
      if (kernel.scores != attention_scores_avx512vnni) continue;
      kernel.name = "attention_f32_6x16_avx512vnni_emulated";
      kernel.isa = Isa::kAvx2;
      kernel.scores = attention_scores_avx512vnni_emulated;
      kernel.values = attention_values_avx512vnni_emulated;
      kernels.push_back(kernel);
    }
  }
#endif
  return kernels;
}

enum class MaskKind { kNone, kAdded, kKeep };

/// Contiguous [batch][heads][rows][columns], unless a test changes the strides.
struct AttentionCase {
  AttentionProblem p;
  MaskKind mask_kind;
  float scale;
  Guarded<float> q, k, v, mask;
  Guarded<uint8_t> keep;
  AttentionMaskStrides mask_strides;

  explicit AttentionCase(AttentionProblem problem, MaskKind kind = MaskKind::kNone, uint32_t seed = 1)
      : p(problem),
        mask_kind(kind),
        scale(1.0f / std::sqrt(static_cast<float>(p.d + 1))),
        q(p.batch * p.heads * p.m * p.d),
        k(p.batch * p.kv_heads * p.n * p.d),
        v(p.batch * p.kv_heads * p.n * p.dv),
        mask(kind == MaskKind::kAdded ? p.batch * p.heads * p.m * p.n : 0),
        keep(kind == MaskKind::kKeep ? p.batch * p.heads * p.m * p.n : 0, 1),
        mask_strides{p.heads * p.m * p.n, p.m * p.n, p.n, 1} {
    Random random(seed);
    random.fill_normal(q);
    random.fill_normal(k);
    random.fill_normal(v);
    random.fill_normal(mask);
    for (int64_t i = 0; i < mask.size(); ++i) mask[i] = random.integer(0, 3) == 0 ? -INFINITY : mask[i];
    for (int64_t i = 0; i < keep.size(); ++i) keep[i] = static_cast<uint8_t>(random.integer(0, 3));
  }

  AttentionArgs args() const {
    AttentionArgs a;
    a.q = q.data();
    a.q_strides = {p.heads * p.m * p.d, p.m * p.d, p.d};
    a.k = k.data();
    a.k_strides = {p.kv_heads * p.n * p.d, p.n * p.d, p.d};
    a.v = v.data();
    a.v_strides = {p.kv_heads * p.n * p.dv, p.n * p.dv, p.dv};
    a.scale = scale;
    a.mask = mask_kind == MaskKind::kAdded ? mask.data() : nullptr;
    a.keep = mask_kind == MaskKind::kKeep ? keep.data() : nullptr;
    a.mask_strides = mask_strides;
    a.y_strides = {p.heads * p.m * p.dv, p.m * p.dv, p.dv};
    return a;
  }

  void run(const AttentionKernel& kernel, AttentionArgs a, ParallelFor& parallel_for) const {
    const size_t bytes = attention_workspace_bytes(p, parallel_for.threads());
    Guarded<unsigned char> workspace(static_cast<int64_t>(bytes), 0xff);  // NaN, where read before written
    a.workspace = workspace.data();
    a.workspace_bytes = bytes;
    attention(kernel, p, a, parallel_for);
  }

  std::vector<float> floats(const AttentionKernel& kernel, ParallelFor& parallel_for) const {
    Guarded<float> y(p.batch * p.heads * p.m * p.dv, -7.0f);
    AttentionArgs a = args();
    a.y = y.data();
    run(kernel, a, parallel_for);
    return y.copy();
  }

  double mask_at(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const int64_t at =
        b * mask_strides.batch + h * mask_strides.head + i * mask_strides.row + j * mask_strides.column;
    if (p.causal && j > i + p.causal_offset) return -INFINITY;
    if (mask_kind == MaskKind::kAdded) return mask[at];
    return mask_kind == MaskKind::kKeep && keep[at] == 0 ? -INFINITY : 0.0;
  }

  struct Row {
    std::vector<double> y, magnitude;  // magnitude: Σ p · |v|
    double score_error = 0;            // D of the contract
    double largest_value = 0;
  };

  Row exact_row(int64_t b, int64_t h, int64_t i) const {
    Row row{std::vector<double>(static_cast<size_t>(p.dv)), std::vector<double>(static_cast<size_t>(p.dv)), 0,
            0};
    const int64_t kv = b * p.kv_heads + h / (p.heads / p.kv_heads);
    std::vector<double> a(static_cast<size_t>(p.n));
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < p.n; ++j) {
      double dot = 0, absolute = 0;
      for (int64_t c = 0; c < p.d; ++c) {
        const double product =
            double{q[((b * p.heads + h) * p.m + i) * p.d + c]} * k[(kv * p.n + j) * p.d + c];
        dot += product;
        absolute += std::abs(product);
      }
      const double add = mask_at(b, h, i, j);
      a[static_cast<size_t>(j)] = dot * scale + add;
      largest = std::max(largest, a[static_cast<size_t>(j)]);
      if (!std::isinf(add)) {
        const double e = 5.97e-8 * (static_cast<double>(p.d) + 8);
        row.score_error = std::max(row.score_error, e * (std::abs(scale) * absolute + std::abs(add)));
      }
    }
    for (double& x : a) sum += x = largest == -INFINITY ? 0 : std::exp(x - largest);
    for (int64_t j = 0; j < p.n; ++j) {
      for (int64_t c = 0; c < p.dv; ++c) {
        const double value = v[(kv * p.n + j) * p.dv + c],
                     weight = sum == 0 ? 0 : a[static_cast<size_t>(j)] / sum;
        row.y[static_cast<size_t>(c)] += weight * value;
        row.magnitude[static_cast<size_t>(c)] += weight * std::abs(value);
        row.largest_value = std::max(row.largest_value, std::abs(value));
      }
    }
    return row;
  }

  /// `y` is contiguous.
  void expect_within_bound(const std::vector<float>& y, const char* name) const {
    for (int64_t r = 0; r < p.batch * p.heads * p.m; ++r) {
      const Row row = exact_row(r / (p.heads * p.m), r / p.m % p.heads, r % p.m);
      for (size_t c = 0; c < static_cast<size_t>(p.dv); ++c) {
        const double relative = 4 * row.score_error + (static_cast<double>(p.n) + 32) * 5.97e-8;
        ASSERT_LE(std::abs(y[static_cast<size_t>(r * p.dv) + c] - row.y[c]),
                  relative * row.magnitude[c] + 1e-37 * row.largest_value)
            << name << " m " << p.m << " n " << p.n << " d " << p.d << " dv " << p.dv << " row " << r
            << " column " << c;
      }
    }
  }

  void expect_within_bound() const {
    SerialFor serial;
    for (const AttentionKernel& kernel : test_attention_kernels()) {
      expect_within_bound(floats(kernel, serial), kernel.name);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
};

}  // namespace halftone::kernels::testing
