// The cases of the benchmark, and in each case the candidates, ours and the peers'.
//
// A new operation is one function that returns a Candidate, and one line in linear_candidates() or
// attention_candidates() of ours.cpp or peers.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpu/parallel_for.h"

namespace halftone::bench {

enum class Suite { kLinear, kAttention };

/// Linear: y [m][n] = x [m][k] · Wᵀ. Attention: m queries and n keys of k elements in each of kHeads heads.
struct Shape {
  int64_t m, n, k;
};

inline constexpr int64_t kHeads = 12;

struct Case {
  Suite suite;
  Shape shape;
  int threads;
};

/// Which multiply-add sequence bounds a candidate.
enum class Peak { kExact7, kExact8, kInt4, kFma };

struct Candidate {
  std::string label;   ///< short, unique in a case
  std::string kernel;  ///< of ours its name in the table, of a peer what is called
  bool ours = true;
  std::string rival;  ///< the label of the peer that does the same job, if any
  Peak peak = Peak::kFma;
  double macs = 0;                    ///< multiply-adds of a call
  double bytes = 0;                   ///< that a call must read from memory: the weights and their scales
  std::function<void(int turn)> run;  ///< `turn` rotates the weights
  /// Largest difference to the expected result relative to the largest expected value, of one run.
  std::function<double()> error;
  double bound = 0;  ///< an error above it is wrong and stops the benchmark; 0: only shown
};

/// The peer that every linear and every attention is compared with.
inline constexpr const char* kBaselines[] = {"at::linear", "at::sdpa"};

/// Distinct weights used in turn, so that weights come from memory where a real model's would: 256 MB in all,
/// 2 to 16 of them. A third-level cache of 32 MB keeps a good part of 64 or 96.
int rotations(int64_t weight_bytes);

std::vector<Candidate> our_candidates(const Case& c, ParallelFor& parallel_for);

/// The peers through ATen, where the benchmark is built with torch; else nothing.
std::vector<Candidate> peer_candidates(const Case& c);

/// On ATen's threads if there are any, so that ours and the peers do not fight for the cores; else a
/// ThreadPool.
std::unique_ptr<ParallelFor> make_parallel_for(int threads);

}  // namespace halftone::bench
