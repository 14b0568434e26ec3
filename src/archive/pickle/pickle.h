// A data-only reader of what torch.save writes: numbers, strings, containers and tensors; no code ever runs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "archive/bytes/dtype.h"
#include "archive/zip/zip.h"

namespace halftone {

/// A tensor as the pickle describes it; `storage` lies inside the container's bytes. Checked: sizes, strides
/// and offset are non-negative, do not overflow and stay inside the storage.
struct PickledTensor {
  DType dtype;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  ///< in elements
  int64_t offset = 0;            ///< in elements
  std::span<std::byte> storage;
};

/// One unpickled value. Containers are shared, because pickle's memo may name one twice.
struct PickleValue {
  struct None {};
  using List = std::vector<PickleValue>;
  using Dict = std::vector<std::pair<PickleValue, PickleValue>>;  ///< in insertion order
  struct Sequence {
    bool is_tuple = false;
    std::shared_ptr<List> items;
  };
  std::variant<None, bool, int64_t, double, std::string, PickledTensor, Sequence, std::shared_ptr<Dict>> data;
};

/// Reads the pickle of a torch.save container (`<root>/data.pkl`, whose checksum is verified, with
/// `<root>/data/N` storages). Allowed globals: torch._utils._rebuild_tensor_v2 and _v3, _rebuild_parameter
/// (the tensor; requires_grad is dropped), torch storages, collections.OrderedDict (a dict; attributes are
/// dropped), torch.Size (a tuple), torch.device (the string "cpu" or "cuda:1") and dtypes (the string
/// "torch.float32"). Anything else: kUnsupported, naming the global. Broken streams: kCorruptFile with the
/// byte position. Nesting (100) and memory (256 MiB) are limited; reference cycles are refused.
PickleValue read_torch_pickle(const ZipReader& container);

}  // namespace halftone
