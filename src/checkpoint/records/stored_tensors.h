// Tensors on their way into a .ht file and out of it: which bytes are stored once, which names share them.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/container/ht_file.h"

namespace halftone {

/// What write_ht takes, with the tensors that own the bytes.
struct StoredTensors {
  std::vector<SafetensorsTensor> stored;
  std::vector<HtRecord> records;  ///< one for each tensor that was added, in that order
  std::vector<at::Tensor> kept;
};

/// Tensors whose memory overlaps are stored once and share it again after loading. A tensor is stored under
/// its own name in row-major order wherever that is possible, so that other readers of safetensors find what
/// they expect.
class TensorCollector {
 public:
  /// `preferred`: the name to store it under, if it is free; a reserved one gets a number behind it.
  /// kUnsupported, naming the tensor, if it is not a plain CPU tensor or if files have no such dtype.
  void add(std::string name, const at::Tensor& tensor, std::string preferred);
  void add(const std::string& name, const at::Tensor& tensor) { add(name, tensor, name); }
  StoredTensors finish();

 private:
  struct Item {
    std::string name;
    std::string preferred;
    at::Tensor tensor;  ///< without conjugate and negative bits
    bool requires_grad = false;
    int64_t begin = 0;  ///< of its bytes in the storage
    int64_t end = 0;
  };
  using Group = std::vector<size_t>;  ///< indices of items whose bytes overlap, rising

  std::vector<Group> groups() const;
  void store(const Group& group, StoredTensors& result);
  void store_one(const Group& group, StoredTensors& result);
  void store_range(const Group& group, StoredTensors& result);
  std::string free_name(const std::string& preferred);
  const at::Tensor& put(StoredTensors& result, std::string name, at::Tensor contiguous);

  std::vector<Item> items_;
  std::map<std::string, int> used_;
};

/// Makes the tensors of records again, on the file's own memory.
class TensorRestorer {
 public:
  /// Borrows the file.
  explicit TensorRestorer(const HtFile& file) : file_(file) {}
  /// kCorruptFile if the record does not fit the file.
  at::Tensor restore(const HtRecord& record);

 private:
  const at::Tensor& base(const SafetensorsEntry& entry);
  const at::Tensor& relaid(const SafetensorsEntry& entry, const std::vector<int64_t>& strides);
  const HtFile& file_;
  std::map<const SafetensorsEntry*, at::Tensor> bases_;
  std::map<std::pair<const SafetensorsEntry*, std::vector<int64_t>>, at::Tensor> relaid_;
};

}  // namespace halftone
