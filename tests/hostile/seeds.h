// Valid files that hostile ones are made from, in memory: what a .ht or a .pt2 consists of, before it is
// sealed with its checksums.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

namespace halftone {
class GraphModule;
}

namespace halftone::hostile {

/// A .ht: the metadata, and the stored tensors in order.
struct HtParts {
  std::string name;  ///< for reports
  std::map<std::string, std::string> metadata;
  std::vector<std::pair<std::string, at::Tensor>> tensors;
};

/// A .pt2: the members of its container, by name.
struct Pt2Parts {
  std::string name;
  std::map<std::string, std::string> members;
};

struct Seeds {
  std::vector<HtParts> ht;
  std::vector<Pt2Parts> pt2;
  std::vector<std::string> targets;  ///< of every node in the .ht seeds, and what the dispatcher has besides
};

/// Models of every kind that plans have steps for, plain, quantized by each scheme (with packed weights too),
/// static int8, rewritten by the compiler's passes (a file may hold its fused operators), with a backend.
/// `pt2_folder`: every .pt2 in it is a seed. The same on every call.
Seeds make_seeds(const std::string& pt2_folder);

/// Sets the metas of all values to what a call with the sample inputs gives. False if the call fails.
bool fill_metas(GraphModule& module);

}  // namespace halftone::hostile
