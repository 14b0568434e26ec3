#include "autograd/partition/max_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

namespace halftone::partition {
namespace {

using Capacity = FlowNetwork::Capacity;
using Edges = std::vector<std::tuple<size_t, size_t, Capacity>>;

FlowNetwork network_of(size_t vertices, const Edges& edges) {
  FlowNetwork network;
  for (size_t i = 0; i < vertices; ++i) network.add_vertex();
  for (const auto& [from, to, capacity] : edges) network.add_edge(from, to, capacity);
  return network;
}

Capacity cut_between(const Edges& edges, const std::vector<bool>& sink_side) {
  Capacity sum = 0;
  for (const auto& [from, to, capacity] : edges) {
    if (!sink_side[from] && sink_side[to]) sum += capacity;
  }
  return sum;
}

// Every choice of sides, for networks of few vertices.
Capacity smallest_cut(size_t vertices, const Edges& edges) {
  Capacity best = FlowNetwork::kInfinite;
  for (size_t mask = 0; mask < (size_t{1} << vertices); ++mask) {
    std::vector<bool> sink_side(vertices);
    for (size_t i = 0; i < vertices; ++i) sink_side[i] = ((mask >> i) & 1U) != 0;
    if (sink_side.front() || !sink_side.back()) continue;
    best = std::min(best, cut_between(edges, sink_side));
  }
  return best;
}

TEST(MaxFlow, FillsParallelPaths) {
  const Edges edges = {{0, 1, 10}, {0, 2, 10}, {1, 2, 2}, {1, 3, 4}, {2, 3, 9}};
  FlowNetwork network = network_of(4, edges);
  EXPECT_EQ(network.max_flow(0, 3), 13);
  EXPECT_EQ(cut_between(edges, network.reaches_sink()), 13);
}

TEST(MaxFlow, TakesBackWhatBlocksABetterPath) {
  // The short path 0-1-2-3 has to give way to 0-1-4-3 and 0-5-2-3.
  const Edges edges = {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {1, 4, 1},
                       {4, 6, 1}, {6, 3, 1}, {0, 5, 1}, {5, 2, 1}};
  EXPECT_EQ(network_of(7, edges).max_flow(0, 3), 2);
}

TEST(MaxFlow, NothingFlowsWithoutAPath) {
  FlowNetwork network = network_of(3, {{0, 1, 5}, {2, 1, 5}});
  EXPECT_EQ(network.max_flow(0, 2), 0);
  EXPECT_EQ(network.reaches_sink(), (std::vector<bool>{false, false, true}));
}

TEST(MaxFlow, APathWithoutLimitIsInfinite) {
  const Capacity no_limit = FlowNetwork::kInfinite;
  EXPECT_EQ(network_of(3, {{0, 1, no_limit}, {1, 2, no_limit}, {0, 2, 7}}).max_flow(0, 2), no_limit);
  EXPECT_EQ(network_of(3, {{0, 1, no_limit}, {1, 2, 8}, {0, 2, 7}}).max_flow(0, 2), 15);
}

TEST(MaxFlow, OfEqualCutsTakesTheOneClosestToTheSink) {
  FlowNetwork network = network_of(4, {{0, 1, 3}, {1, 2, 3}, {2, 3, 3}});
  EXPECT_EQ(network.max_flow(0, 3), 3);
  EXPECT_EQ(network.reaches_sink(), (std::vector<bool>{false, false, false, true}));
}

TEST(MaxFlow, EqualsTheSmallestCutOfRandomNetworks) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const size_t vertices = 3 + random() % 7;
    Edges edges;
    const size_t count = vertices + random() % (3 * vertices);
    for (size_t i = 0; i < count; ++i) {
      const size_t from = random() % vertices;
      const size_t to = random() % vertices;
      if (from != to) edges.emplace_back(from, to, static_cast<Capacity>(random() % 20));
    }
    FlowNetwork network = network_of(vertices, edges);
    const Capacity flow = network.max_flow(0, vertices - 1);
    EXPECT_EQ(flow, smallest_cut(vertices, edges)) << "round " << round;
    EXPECT_EQ(flow, cut_between(edges, network.reaches_sink())) << "round " << round;
  }
}

TEST(MaxFlow, AChainOfManyVerticesDoesNotExhaustTheStack) {
  constexpr size_t kLength = 200'000;
  FlowNetwork network;
  size_t last = network.add_vertex();
  for (size_t i = 1; i < kLength; ++i) {
    const size_t next = network.add_vertex();
    network.add_edge(last, next, i == kLength / 2 ? 1 : 2);
    last = next;
  }
  EXPECT_EQ(network.max_flow(0, last), 1);
}

}  // namespace
}  // namespace halftone::partition
