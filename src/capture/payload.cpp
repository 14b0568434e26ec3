#include "capture/payload.h"

#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/TensorImpl.h>

#include <cstring>

#include "base/checked.h"
#include "base/errors.h"
#include "capture/pt2_archive.h"

namespace halftone {
namespace {

// The widest element, complex128. Several dtypes may look at one payload, so all must be content.
constexpr size_t kAlignment = 16;

void release_owner(void* context) {
  delete static_cast<std::shared_ptr<FileBytes>*>(context);
}

/// offset + the largest index + 1, in elements; nothing if that overflows. 0 for tensors without elements.
std::optional<int64_t> elements_needed(const StoredTensorMeta& meta) {
  int64_t last = meta.offset;
  for (size_t i = 0; i < meta.sizes.size(); ++i) {
    if (meta.sizes[i] == 0) return 0;
  }
  for (size_t i = 0; i < meta.sizes.size(); ++i) {
    const auto reach = checked_mul(meta.sizes[i] - 1, meta.strides[i]);
    const auto sum = reach ? checked_add(last, *reach) : std::nullopt;
    if (!sum) return std::nullopt;
    last = *sum;
  }
  return checked_add(last, int64_t{1});
}

}  // namespace

c10::Storage storage_on_bytes(std::span<std::byte> bytes, const std::shared_ptr<FileBytes>& owner) {
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (address % kAlignment != 0) {
    c10::Storage copy(c10::Storage::use_byte_size_t(), bytes.size(), c10::GetCPUAllocator(),
                      /*resizable=*/false);
    std::memcpy(copy.mutable_data(), bytes.data(), bytes.size());
    return copy;
  }
  c10::DataPtr data(bytes.data(), new std::shared_ptr<FileBytes>(owner), &release_owner,
                    c10::DeviceType::CPU);
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes.size(), std::move(data), /*allocator=*/nullptr,
                      /*resizable=*/false);
}

at::Tensor tensor_on_storage(const c10::Storage& storage, const StoredTensorMeta& meta,
                             const std::string& place) {
  const auto elements = elements_needed(meta);
  const auto count = checked_product<int64_t>(meta.sizes);
  const auto item = static_cast<int64_t>(c10::elementSize(meta.dtype));
  const auto needed = elements ? checked_mul(*elements, item) : std::nullopt;
  if (!count || !needed || !checked_mul(*count, item)) {
    fail(ErrorCode::kCorruptFile, "{}: sizes, strides or offset overflow", place);
  }
  if (std::cmp_greater(*needed, storage.nbytes())) {
    fail(ErrorCode::kCorruptFile, "{}: the tensor needs {} bytes, its payload has {}", place, *needed,
         storage.nbytes());
  }
  // A caller's inference mode must not turn the model's parameters into inference tensors.
  const c10::InferenceMode normal(false);
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage),
                                                         c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                         c10::scalarTypeToTypeMeta(meta.dtype));
  // For a tensor without elements the offset may lie anywhere; zero is as good and always inside.
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(meta.sizes, meta.strides,
                                                      *elements == 0 ? 0 : meta.offset);
  return tensor;
}

at::Tensor PayloadStorages::load(const Pt2Context& context, const JsonCursor& entry,
                                 const std::string& name) {
  require_known_keys(context, entry, {"path_name", "is_param", "use_pickle", "tensor_meta"});
  const std::string path = entry.at("path_name").get_string();
  if (path.empty() || path.find('/') != std::string::npos || path.find('\\') != std::string::npos ||
      path == "..") {
    entry.at("path_name").fail_here(fmt::format("\"{}\" is not a plain name", path));
  }
  const bool is_parameter = entry.at("is_param").get_bool();
  if (entry.at("use_pickle").get_bool()) {
    fail(ErrorCode::kUnsupported, "{}: \"{}\" is a pickled {}, which needs Python", entry.path(), name,
         entry.at("tensor_meta").is_null() ? "object" : "tensor subclass");
  }
  const StoredTensorMeta meta = read_stored_tensor_meta(context, entry.at("tensor_meta"));
  auto found = storages_.find(path);
  if (found == storages_.end()) {
    const ZipMember& member = archive_.member(folder_ + path);
    found = storages_.emplace(path, storage_on_bytes(member.bytes, archive_.bytes())).first;
  }
  at::Tensor tensor = tensor_on_storage(found->second, meta, fmt::format("{} (\"{}\")", entry.path(), name));
  // As in Python: some composite operators choose their kernels by whether a weight requires gradients, and
  // the results should have the same bits. Sessions run without gradients all the same.
  if (is_parameter && tensor.is_floating_point() && entry.at("tensor_meta").at("requires_grad").get_bool()) {
    tensor.set_requires_grad(true);
  }
  return tensor;
}

}  // namespace halftone
