// Maximal flow and the minimal cut that bounds it, on small directed networks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace halftone::partition {

/// Vertices are numbered from 0. Built once, solved once. Dinic's algorithm: paths of equal length are filled
/// together, O(V²E) at worst and close to linear on graphs of models.
class FlowNetwork {
 public:
  using Capacity = int64_t;
  /// What no cut may cross. Larger than any sum of finite capacities that a model can have.
  static constexpr Capacity kInfinite = std::numeric_limits<Capacity>::max() / 4;

  size_t add_vertex();
  void add_edge(size_t from, size_t to, Capacity capacity);

  /// kInfinite if some path from `source` to `sink` has no finite edge; the flow is of no use then.
  Capacity max_flow(size_t source, size_t sink);

  /// After max_flow: for each vertex, whether more could still flow from it to the sink. The edges from those
  /// that cannot to those that can are a minimal cut, the one closest to the sink.
  std::vector<bool> reaches_sink() const;

 private:
  struct Edge {
    size_t to;
    Capacity left;   ///< residual capacity
    size_t reverse;  ///< index of the opposite edge in edges_[to]
  };
  bool find_levels(size_t source, size_t sink);
  Capacity push(size_t source, size_t sink);

  std::vector<std::vector<Edge>> edges_;
  std::vector<size_t> level_;
  std::vector<size_t> next_edge_;
  size_t sink_ = 0;
};

}  // namespace halftone::partition
