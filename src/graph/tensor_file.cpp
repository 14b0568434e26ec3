#include "halftone/tensor_file.h"

#include <ATen/core/Tensor.h>

#include "archive/safetensors.h"
#include "base/errors.h"
#include "graph/dtypes.h"

namespace halftone {

TensorFile load_tensors(const std::string& path, bool map) {
  const LoadMode mode = map ? LoadMode::kMap : LoadMode::kRead;
  const auto file = path.ends_with(".index.json") ? SafetensorsFile::open_sharded(path, mode)
                                                  : SafetensorsFile::open(path, mode);
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
           c10::toString(tensor.scalar_type()));
    }
    kept.push_back(tensor.detach().cpu().resolve_conj().resolve_neg().contiguous());
    const at::Tensor& plain = kept.back();
    entries.push_back(
        {name,
         *dtype,
         plain.sizes().vec(),
         {static_cast<const std::byte*>(plain.const_data_ptr()), static_cast<size_t>(plain.nbytes())}});
  }
  write_safetensors(path, std::move(entries), metadata);
}

}  // namespace halftone
