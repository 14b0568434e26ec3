// Dinic's algorithm: levels by breadth-first search, then blocking flows along rising levels. Capacities
// are bytes, so the bounds are those of integers; networks have two vertices for each value of a model.
#include "autograd/partition/max_flow.h"

#include <algorithm>

namespace halftone::partition {
namespace {
constexpr size_t kUnreached = static_cast<size_t>(-1);
}

size_t FlowNetwork::add_vertex() {
  edges_.emplace_back();
  return edges_.size() - 1;
}

void FlowNetwork::add_edge(size_t from, size_t to, Capacity capacity) {
  const Capacity bounded = std::min(capacity, kInfinite);
  edges_[from].push_back({to, bounded, edges_[to].size()});
  edges_[to].push_back({from, 0, edges_[from].size() - 1});
}

// Breadth first: how many edges lie between the source and each vertex.
bool FlowNetwork::find_levels(size_t source, size_t sink) {
  level_.assign(edges_.size(), kUnreached);
  level_[source] = 0;
  std::vector<size_t> queue = {source};
  for (size_t head = 0; head < queue.size(); ++head) {
    const size_t vertex = queue[head];
    for (const Edge& edge : edges_[vertex]) {
      if (edge.left == 0 || level_[edge.to] != kUnreached) continue;
      level_[edge.to] = level_[vertex] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[sink] != kUnreached;
}

// Fills one path along rising levels; 0 if there is none left. A stack of its own, because a chain of
// thousands of operators is as deep as it is long.
FlowNetwork::Capacity FlowNetwork::push(size_t source, size_t sink) {
  std::vector<Edge*> path;
  size_t vertex = source;
  while (vertex != sink) {
    size_t& next = next_edge_[vertex];
    while (next < edges_[vertex].size()) {
      const Edge& edge = edges_[vertex][next];
      if (edge.left > 0 && level_[edge.to] == level_[vertex] + 1) break;
      ++next;
    }
    if (next < edges_[vertex].size()) {
      path.push_back(&edges_[vertex][next]);
      vertex = path.back()->to;
    } else {
      if (path.empty()) return 0;
      const Edge& dead_end = *path.back();
      vertex = edges_[dead_end.to][dead_end.reverse].to;
      path.pop_back();
      ++next_edge_[vertex];
    }
  }
  Capacity amount = kInfinite;
  for (const Edge* edge : path) amount = std::min(amount, edge->left);
  for (Edge* edge : path) {
    // An edge without limit stays without limit, in both directions.
    if (edge->left < kInfinite) edge->left -= amount;
    Edge& back = edges_[edge->to][edge->reverse];
    if (back.left < kInfinite) back.left += amount;
  }
  return amount;
}

FlowNetwork::Capacity FlowNetwork::max_flow(size_t source, size_t sink) {
  sink_ = sink;
  Capacity total = 0;
  while (find_levels(source, sink)) {
    next_edge_.assign(edges_.size(), 0);
    while (const Capacity amount = push(source, sink)) {
      if (amount >= kInfinite || total + amount >= kInfinite) return kInfinite;
      total += amount;
    }
  }
  return total;
}

std::vector<bool> FlowNetwork::reaches_sink() const {
  std::vector<bool> reaches(edges_.size(), false);
  reaches[sink_] = true;
  std::vector<size_t> queue = {sink_};
  for (size_t head = 0; head < queue.size(); ++head) {
    for (const Edge& edge : edges_[queue[head]]) {
      // The edge that leads here is the opposite of this one.
      if (reaches[edge.to] || edges_[edge.to][edge.reverse].left == 0) continue;
      reaches[edge.to] = true;
      queue.push_back(edge.to);
    }
  }
  return reaches;
}

}  // namespace halftone::partition
