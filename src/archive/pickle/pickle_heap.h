// The objects of one pickle while it is read: nodes that refer to one another by number.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "archive/bytes/dtype.h"
#include "archive/pickle/pickle.h"

namespace halftone::pickle {

using NodeId = uint32_t;

/// What a GLOBAL of the stream may name. Nothing here is ever called as Python would: each has its own C++
/// code.
struct Global {
  enum class Kind {
    kRebuildTensorV2,
    kRebuildTensorV3,
    kRebuildParameter,
    kOrderedDict,
    kSize,
    kDevice,
    kStorage,
    kDType
  };
  Kind kind{};
  std::string_view module;
  std::string_view name;
  DType dtype{};         ///< of kStorage and kDType
  bool untyped = false;  ///< a storage that counts bytes and whose tensors bring their own element type
};

/// nullptr for whatever is not allowed.
const Global* find_global(std::string_view module, std::string_view name);

struct Storage {
  const Global* type = nullptr;
  std::span<std::byte> bytes;
};

struct Tuple {
  std::vector<NodeId> items;
};
struct List {
  std::vector<NodeId> items;
};
struct Dict {
  std::vector<std::pair<NodeId, NodeId>> items;
};

using Node = std::variant<PickleValue::None, bool, int64_t, double, std::string, Tuple, List, Dict,
                          const Global*, std::unique_ptr<Storage>, std::unique_ptr<PickledTensor>>;

/// Owns all nodes. Numbers instead of pointers: a stream can tie knots of references, and these must neither
/// leak nor make a destructor recurse. Memory is counted, so that a small file cannot ask for much.
class Heap {
 public:
  NodeId add(Node node);
  Node& at(NodeId id) { return nodes_[id]; }
  const Node& at(NodeId id) const { return nodes_[id]; }
  size_t size() const { return nodes_.size(); }

  template <typename T>
  T* get_if(NodeId id) {
    return std::get_if<T>(&nodes_[id]);
  }

 private:
  std::vector<Node> nodes_;
  size_t bytes_ = 0;
};

/// A value made of the nodes under `root`. Refuses cycles, nesting deeper than 100 and what would expand (a
/// node may be referred to often) to more than 256 MiB. Messages name no file: the caller adds it.
PickleValue to_value(const Heap& heap, NodeId root);

/// "a list", "a tensor", …, for messages.
std::string_view kind_name(const Node& node);

}  // namespace halftone::pickle
