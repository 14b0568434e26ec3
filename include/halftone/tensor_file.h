// Tensors in files: safetensors in and out, as at::Tensor.
#pragma once

#include <map>
#include <string>

#include "halftone/graph_module.h"

namespace halftone {

struct TensorFile {
  TensorMap tensors;
  std::map<std::string, std::string> metadata;
};

/// A .safetensors file, or the ….index.json of a sharded one. Mapped tensors share the file's (private,
/// writable) pages and keep them alive; misaligned ones are copied. kNotFound, kIo, kCorruptFile with file
/// and tensor.
TensorFile load_tensors(const std::string& path, bool map = true);
/// Atomically: a reader sees the old file or the new one. Non-contiguous tensors are written in row-major
/// order.
void save_tensors(const std::string& path, const TensorMap& tensors,
                  const std::map<std::string, std::string>& metadata = {});

}  // namespace halftone
