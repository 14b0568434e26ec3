// Bytes that the saved values of a partition keep alive.
#include "autograd/partition/bytes.h"
#include "halftone/autograd/joint_graph.h"

namespace halftone {

int64_t saved_bytes(const PartitionedGraphs& graphs) {
  const Graph& forward = *graphs.forward;
  const size_t count = forward.outputs().size();
  partition::ValueSet saved;
  for (size_t i = count - graphs.saved; i < count; ++i) saved.insert(forward.output_value(i).value());
  return partition::bytes_kept_alive(saved);
}

}  // namespace halftone
