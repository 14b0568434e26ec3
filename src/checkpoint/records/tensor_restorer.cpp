// Restores tensors from the records of a .ht file, sharing memory as before.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/InferenceMode.h>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "checkpoint/records/stored_tensors.h"
#include "graph/aten/dtype_text.h"
#include "graph/aten/dtypes.h"

namespace halftone {
namespace {

/// A tensor of its own on the memory of another one.
at::Tensor share(const at::Tensor& owner, c10::ScalarType dtype, int64_t offset, at::IntArrayRef sizes,
                 at::IntArrayRef strides) {
  at::Tensor tensor = at::empty({0}, owner.options().dtype(dtype));
  tensor.set_(owner.storage(), offset, sizes, strides);
  return tensor;
}

}  // namespace

const at::Tensor& TensorRestorer::base(const SafetensorsEntry& entry) {
  const auto found = bases_.find(&entry);
  if (found != bases_.end()) return found->second;
  return bases_.emplace(&entry, tensor_on_bytes(entry.bytes, entry.dtype, entry.shape, entry.owner))
      .first->second;
}

const at::Tensor& TensorRestorer::relaid(const SafetensorsEntry& entry, const std::vector<int64_t>& strides) {
  const auto key = std::pair(&entry, strides);
  const auto found = relaid_.find(key);
  if (found != relaid_.end()) return found->second;
  const at::Tensor& rows = base(entry);
  at::Tensor tensor = at::empty_strided(rows.sizes(), strides, rows.options());
  tensor.copy_(rows);
  return relaid_.emplace(key, tensor).first->second;
}

at::Tensor TensorRestorer::restore(const HtRecord& record) {
  // A caller's inference mode must not turn the model's parameters into inference tensors.
  const c10::InferenceMode normal(false);
  const HtPlace place = file_.place(record);
  const c10::ScalarType dtype = scalar_type_of(place.dtype);
  at::Tensor tensor;
  if (place.is_view) {
    tensor = share(base(*place.entry), dtype, place.offset, place.sizes, *place.strides);
  } else {
    const at::Tensor& owner = place.strides ? relaid(*place.entry, *place.strides) : base(*place.entry);
    tensor = share(owner, dtype, 0, owner.sizes(), owner.strides());
  }
  if (!record.requires_grad) return tensor;
  if (!tensor.is_floating_point() && !tensor.is_complex()) {
    fail(ErrorCode::kCorruptFile, "{}: tensor {}: {} cannot require gradients", file_.name(),
         quote_text(record.name), dtype_text(dtype));
  }
  return tensor.set_requires_grad(true);
}

}  // namespace halftone
