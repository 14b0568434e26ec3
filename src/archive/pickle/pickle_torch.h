// The few torch objects that a pickle may build: storages, tensors, parameters, sizes, devices.
#pragma once

#include <string>

#include "archive/pickle/pickle_heap.h"
#include "archive/zip/zip.h"

namespace halftone::pickle {

/// Borrows everything. Errors name no file and no position: the machine that calls adds them.
class TorchObjects {
 public:
  /// `root` is the folder of the container that holds data.pkl and data/N, with its slash.
  TorchObjects(const ZipReader& container, std::string root, Heap& heap)
      : container_(container), root_(std::move(root)), heap_(heap) {}

  /// BINPERSID: ("storage", type, key, location, element count) names the member `<root>data/<key>`.
  NodeId load_storage(NodeId id);
  /// REDUCE: callable(*arguments), for the callables of Global::Kind.
  NodeId reduce(NodeId callable, NodeId arguments);

 private:
  NodeId rebuild_tensor(const std::vector<NodeId>& arguments, bool brings_dtype);
  NodeId make_tensor(const Storage& storage, DType dtype, const std::vector<NodeId>& arguments);
  NodeId device(const std::vector<NodeId>& arguments);
  int64_t integer(NodeId id, std::string_view what) const;
  std::vector<int64_t> integers(NodeId id, std::string_view what) const;

  const ZipReader& container_;
  std::string root_;
  Heap& heap_;
};

}  // namespace halftone::pickle
