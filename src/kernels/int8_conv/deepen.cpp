// Chooses the depth of each panel: how many vpmaddubsw results may be added in 16 bits before they are
// widened (pack.h has the condition). A deeper panel needs fewer instructions, and a few large weights must
// not decide for a whole panel: what exceeds the limit in a lane is moved to extra quads, which are
// multiplied on their own. Greedy: the quad that repairs most lanes first.
#include "kernels/int8_conv/deepen.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace halftone::kernels {
namespace {

// What a quad costs at each depth, and an extra one. Measured on Zen 3 (x86_avx2.cpp).
struct DepthCost {
  int depth;
  double quad;
};
constexpr DepthCost kDepthCosts[] = {{1, 1.42}, {2, 1.19}, {4, 1.04}, {8, 1.0}};
constexpr double kExtraCost = 2.0;

// A panel while quads are taken apart.
struct DeepPanel {
  int depth = 0;
  double cost = 0;
  std::vector<int8_t> weights;
  std::vector<Int8ExtraQuad> extras;
  std::vector<int8_t> extra_weights;
};

// One group of neighbouring quads of a tap. Lanes are 16 bits: two weights of each quad.
class QuadGroup {
 public:
  QuadGroup(int8_t* quads, int count, int lanes, int limit)
      : quads_(quads), count_(count), lanes_(lanes), limit_(limit) {}

  // How much the weights of one sign exceed the limit in a lane.
  int excess(int lane, int sign) const {
    int sum = 0;
    for (int q = 0; q < count_; ++q) sum += of_sign(q, lane, sign);
    return sum - limit_;
  }
  bool safe() const {
    for (int lane = 0; lane < lanes_; ++lane)
      if (excess(lane, 1) > 0 || excess(lane, -1) > 0) return false;
    return true;
  }
  // The quad that alone repairs most lanes.
  int best_quad() const {
    int best = 0, most = -1;
    for (int q = 0; q < count_; ++q) {
      int repaired = 0;
      for (int lane = 0; lane < lanes_; ++lane) {
        for (const int sign : {1, -1}) {
          const int over = excess(lane, sign), here = of_sign(q, lane, sign);
          // A lane that this quad repairs alone counts more than any partial help, which is at most 2 · 128
          // in a lane.
          if (over > 0) repaired += here >= over ? 1000 : here;
        }
      }
      if (repaired > most) best = q, most = repaired;
    }
    return best;
  }
  // Moves what is too much from quad q to `extra`.
  void take_from(int q, int8_t* extra) {
    for (int lane = 0; lane < lanes_; ++lane) {
      for (const int sign : {1, -1}) {
        int over = excess(lane, sign);
        for (int i = lane * 2; i < lane * 2 + 2 && over > 0; ++i) {
          int8_t& w = quads_[q * lanes_ * 2 + i];
          const int moved = std::min(over, w * sign);
          if (moved <= 0) continue;
          w = static_cast<int8_t>(w - moved * sign);
          extra[i] = static_cast<int8_t>(moved * sign);
          over -= moved;
        }
      }
    }
  }

 private:
  int of_sign(int q, int lane, int sign) const {
    const int8_t* pair = quads_ + (q * lanes_ + lane) * 2;
    return std::max(pair[0] * sign, 0) + std::max(pair[1] * sign, 0);
  }

  int8_t* quads_;
  int count_, lanes_, limit_;
};

// Makes `depth` safe with at most packed.max_extras extra quads, or gives up.
bool try_depth(const Int8ConvPacked& packed, int tile_n, const int8_t* panel, int depth, int limit,
               DeepPanel& made) {
  made.weights.assign(panel, panel + packed.panel_bytes);
  made.extras.clear();
  made.extra_weights.clear();
  const int64_t quad_bytes = int64_t{tile_n} * 4;
  for (int64_t tap = 0; tap < packed.taps; ++tap) {
    for (int64_t first = 0; first < packed.quads; first += depth) {
      const auto count = static_cast<int>(std::min<int64_t>(depth, packed.quads - first));
      QuadGroup group(made.weights.data() + (tap * packed.quads + first) * quad_bytes, count, tile_n * 2,
                      limit);
      while (!group.safe()) {
        if (static_cast<int64_t>(made.extras.size()) == packed.max_extras) return false;
        const int q = group.best_quad();
        made.extras.push_back({static_cast<int32_t>(tap), static_cast<int32_t>((first + q) * 4)});
        made.extra_weights.resize(made.extra_weights.size() + static_cast<size_t>(quad_bytes));
        group.take_from(q, made.extra_weights.data() + made.extra_weights.size() - quad_bytes);
      }
    }
  }
  return true;
}

DeepPanel best_depth(const Int8ConvPacked& packed, int tile_n, const int8_t* panel, int limit) {
  DeepPanel best, tried;
  for (const auto& [depth, quad_cost] : kDepthCosts) {
    // What depth 2 cannot do, depth 4 cannot.
    if (!try_depth(packed, tile_n, panel, depth, limit, tried)) break;
    tried.depth = depth;
    tried.cost = static_cast<double>(packed.taps * packed.quads) * quad_cost +
                 static_cast<double>(tried.extras.size()) * kExtraCost;
    if (best.depth == 0 || tried.cost < best.cost) std::swap(best, tried);
  }
  return best;
}

}  // namespace

bool deepen_panels(const Int8ConvPacked& packed, Int8ConvTile tile, int64_t panels, int activation_bits) {
  // Σ |w| of one sign in a lane may be at most this: times the largest activation it still fits 16 bits.
  const int limit = 32767 / (activation_bits == 7 ? 127 : 255);
  std::vector<DeepPanel> all;
  for (int64_t i = 0; i < panels; ++i) {
    all.push_back(best_depth(packed, tile.n, packed.panels + i * packed.panel_bytes, limit));
    if (all.back().depth == 0) return false;
  }
  for (int64_t i = 0; i < panels; ++i) {
    const DeepPanel& made = all[static_cast<size_t>(i)];
    const_cast<uint8_t*>(packed.depth)[i] = static_cast<uint8_t>(made.depth);
    const_cast<int32_t*>(packed.extras)[i] = static_cast<int32_t>(made.extras.size());
    std::memcpy(const_cast<int8_t*>(packed.panels) + i * packed.panel_bytes, made.weights.data(),
                made.weights.size());
    if (made.extras.empty()) continue;
    std::memcpy(const_cast<Int8ExtraQuad*>(packed.extra_quads) + i * packed.max_extras, made.extras.data(),
                made.extras.size() * sizeof(Int8ExtraQuad));
    std::memcpy(const_cast<int8_t*>(packed.extra_weights) + i * packed.max_extras * tile.n * 4,
                made.extra_weights.data(), made.extra_weights.size());
  }
  return true;
}

}  // namespace halftone::kernels
