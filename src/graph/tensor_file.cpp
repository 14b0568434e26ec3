// load_tensors() and save_tensors(): safetensors and numpy files.
#include "halftone/graph/tensor_file.h"

#include <ATen/core/Tensor.h>

#include "archive/numpy/numpy.h"
#include "archive/safetensors/safetensors.h"
#include "base/errors.h"
#include "graph/aten/dtype_text.h"
#include "graph/aten/dtypes.h"

namespace halftone {

namespace {

at::Tensor tensor_of(const NumpyArray& array, const std::shared_ptr<FileBytes>& file) {
  const std::shared_ptr<void> owner = array.owner ? array.owner : file;
  if (!array.fortran_order) return tensor_on_bytes(array.bytes, array.dtype, array.shape, owner);
  // Column-major is row-major with the sizes the other way round.
  const std::vector<int64_t> reversed(array.shape.rbegin(), array.shape.rend());
  std::vector<int64_t> back(array.shape.size());
  for (size_t i = 0; i < back.size(); ++i) back[i] = static_cast<int64_t>(back.size() - 1 - i);
  return tensor_on_bytes(array.bytes, array.dtype, reversed, owner).permute(back).contiguous();
}

TensorFile load_numpy(const std::shared_ptr<FileBytes>& file) {
  TensorFile result;
  std::vector<NumpyArray> arrays;
  if (is_npy(file->bytes())) {
    arrays.push_back(read_npy(file->bytes(), file->name()));
  } else {
    arrays = read_npz(file->bytes(), file->name());
  }
  for (const NumpyArray& array : arrays) result.tensors.emplace(array.name, tensor_of(array, file));
  return result;
}

/// The name's extension decides what is written.
void write_entries(const std::string& path, std::vector<SafetensorsTensor> entries,
                   const std::map<std::string, std::string>& metadata) {
  if (path.ends_with(".npz")) return write_npz(path, entries);
  if (!path.ends_with(".npy")) return write_safetensors(path, std::move(entries), metadata);
  if (entries.size() != 1)
    fail(ErrorCode::kUnsupported, "{}: a .npy file holds one array, here are {}: write a .npz file", path,
         entries.size());
  write_npy(path, entries.front());
}

}  // namespace

TensorFile load_tensors(const std::string& path, bool map) {
  const LoadMode mode = map ? LoadMode::kMap : LoadMode::kRead;
  const bool sharded = path.ends_with(".index.json");
  const auto bytes = sharded ? nullptr : FileBytes::open(path, mode);
  if (!sharded && (is_npy(bytes->bytes()) || is_zip(bytes->bytes()))) return load_numpy(bytes);
  const auto file = sharded ? SafetensorsFile::open_sharded(path, mode) : SafetensorsFile::from_bytes(bytes);
  TensorFile result;
  result.metadata = file.metadata();
  for (const SafetensorsEntry& entry : file.entries()) {
    result.tensors.emplace(entry.name, tensor_on_bytes(entry.bytes, entry.dtype, entry.shape, entry.owner));
  }
  return result;
}

void save_tensors(const std::string& path, const TensorMap& tensors,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<at::Tensor> kept;  // the row-major copies must live until the file is written
  std::vector<SafetensorsTensor> entries;
  for (const auto& [name, tensor] : tensors) {
    const auto dtype = try_dtype_of(tensor.scalar_type());
    if (!dtype) {
      fail(ErrorCode::kUnsupported, "tensor \"{}\": safetensors has no dtype for {}", name,
           dtype_text(tensor.scalar_type()));
    }
    kept.push_back(tensor.detach().cpu().resolve_conj().resolve_neg().contiguous());
    const at::Tensor& plain = kept.back();
    entries.push_back(
        {name,
         *dtype,
         plain.sizes().vec(),
         {static_cast<const std::byte*>(plain.const_data_ptr()), static_cast<size_t>(plain.nbytes())}});
  }
  write_entries(path, std::move(entries), metadata);
}

}  // namespace halftone
