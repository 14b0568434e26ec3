// Tensors in files: safetensors and numpy's .npy and .npz in and out, as at::Tensor.
#pragma once

#include <map>
#include <string>

#include "halftone/base/api.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

struct TensorFile {
  TensorMap tensors;
  std::map<std::string, std::string> metadata;
};

/// A .safetensors file, the ….index.json of a sharded one, or a file of numpy; the content tells which. The
/// array of a .npy file has the name "". Mapped tensors share the file's (private,
/// writable) pages and keep them alive; misaligned ones are copied. kNotFound, kIo, kCorruptFile with file
/// and tensor.
HALFTONE_API TensorFile load_tensors(const std::string& path, bool map = true);
/// Atomically: a reader sees the old file or the new one. Non-contiguous tensors are written in row-major
/// order. A path that ends with .npz or .npy (one tensor only) is written for numpy, without the metadata;
/// kUnsupported for dtypes that the file does not have.
HALFTONE_API void save_tensors(const std::string& path, const TensorMap& tensors,
                               const std::map<std::string, std::string>& metadata = {});

}  // namespace halftone
