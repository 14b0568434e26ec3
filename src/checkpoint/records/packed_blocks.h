// Packed copies of quantized weights in .ht files: what this machine's kernels made of them, tagged with its
// layout.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/container/ht_file.h"
#include "checkpoint/records/stored_tensors.h"
#include "halftone/graph/graph_module.h"
#include "halftone/quant/weight_format.h"
#include "quant/weight/packing_cache.h"

namespace halftone {

/// A packed block as the file has it.
struct PackedRecord {
  /// Names of the plain tensors that it was made of, in the operator's order.
  std::vector<std::string> parts;
  std::string layout;  ///< kind, version and tile: "int8_linear/v1/16x4"
  HtRecord block;
};

nlohmann::json packed_json(const std::vector<PackedRecord>& packed);
/// Empty if the file has none.
std::vector<PackedRecord> read_packed(const HtMetadata& metadata);

/// A quantized weight that can be packed.
struct Packable {
  std::string layer;
  std::vector<std::string> names;  ///< of its parts
  std::vector<at::Tensor> parts;
  std::function<void()> pack;  ///< makes this machine's kernels pack it
};

/// The weights of a graph's linears and static int8 convolutions whose parts are tensors of the module, each
/// once, in the graph's order.
std::vector<Packable> packable_weights(const Graph& graph, const TensorMap& tensors);

/// A quantized parameter of a module. Borrows `weight`.
Packable packable(const std::string& name, const QuantizedWeight& weight);

/// Packs all of them and adds the blocks to the collector. The records' `block` is set by the code that
/// finishes it, in this order.
std::vector<PackedRecord> add_packed(const std::vector<Packable>& weights, TensorCollector& collector);

/// Gives stored blocks to the kernels. Those of the layouts that this machine's kernels want are compared
/// with their weights: kCorruptFile, naming the layer and what differs. Returns a note for each weight that
/// has no such block and was packed anew.
std::vector<std::string> adopt_blocks(const std::vector<Packable>& weights,
                                      const std::vector<PackedRecord>& packed, TensorRestorer& restorer);

/// Compares stored blocks with their weights, byte by byte where this machine's kernels want them: what is
/// wrong, one line for each.
std::vector<std::string> block_findings(const std::vector<Packable>& weights,
                                        const std::vector<PackedRecord>& packed, TensorRestorer& restorer);

}  // namespace halftone
