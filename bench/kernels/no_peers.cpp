// Built without torch: no peers.
#include "contender.h"

namespace halftone::bench {

std::vector<Contender> peer_contenders(const Shape&, int) {
  return {};
}

}  // namespace halftone::bench
