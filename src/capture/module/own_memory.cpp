#include "capture/module/own_memory.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "capture/module/trace_run.h"
#include "capture/module/tracing/geometry.h"

namespace halftone {
namespace {

/// With the whole storage, so that offset and strides stay as they are.
at::Tensor copy_of_memory(const at::Tensor& tensor) {
  const c10::Storage& old_storage = tensor.storage();
  const at::Tensor bytes = at::empty({static_cast<int64_t>(old_storage.nbytes())}, at::kByte);
  if (old_storage.nbytes() > 0)
    std::memcpy(bytes.mutable_data_ptr(), old_storage.data(), old_storage.nbytes());
  at::Tensor copy = tensor.variable_data();
  copy.unsafeGetTensorImpl()->set_allow_tensor_metadata_change(true);
  copy.unsafeGetTensorImpl()->set_storage_keep_dtype(bytes.storage());
  return copy.set_requires_grad(tensor.requires_grad());
}

bool has_cpu_memory(const c10::IValue& leaf) {
  return is_defined_tensor(leaf) && leaf.toTensor().has_storage() && leaf.toTensor().device().is_cpu();
}

}  // namespace

std::vector<c10::IValue> with_own_memory(const std::vector<c10::IValue>& leaves, SameTensor same) {
  std::unordered_set<const c10::StorageImpl*> taken;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> known;
  std::vector<c10::IValue> result = leaves;
  for (c10::IValue& leaf : result) {
    if (!has_cpu_memory(leaf)) continue;
    const at::Tensor given = leaf.toTensor();
    at::Tensor& own = known[given.unsafeGetTensorImpl()];
    if (!own.defined() || same == SameTensor::kSeparate)
      own = taken.insert(given.storage().unsafeGetStorageImpl()).second ? given : copy_of_memory(given);
    leaf = own;
  }
  return result;
}

bool share_elements(const c10::IValue& a, const c10::IValue& b) {
  if (!has_cpu_memory(a) || !has_cpu_memory(b)) return false;
  return a.toTensor().storage().is_alias_of(b.toTensor().storage()) &&
         Geometry::of(a.toTensor()).overlaps(Geometry::of(b.toTensor()));
}

}  // namespace halftone
