#include "autograd/partition/bytes.h"
#include "autograd/partition/split.h"

namespace halftone {

int64_t saved_bytes(const PartitionedGraphs& graphs) {
  const Graph& forward = *graphs.forward;
  const size_t count = forward.outputs().size();
  partition::ValueSet storages;
  int64_t bytes = 0;
  for (size_t i = count - graphs.saved; i < count; ++i) {
    const Value* storage = partition::storage_of(forward.output_value(i).value());
    if (storage->producer() != nullptr && storages.insert(storage).second)
      bytes += partition::bytes_of(*storage);
  }
  return bytes;
}

}  // namespace halftone
