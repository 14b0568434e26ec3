// Copies and conversions of quantized tensors, and what set_data() may do with them.
#include <ATen/core/grad_mode.h>

#include "base/errors.h"
#include "quant/module/kernels.h"
#include "quant/module/layer_weight.h"

namespace halftone::weight_kernels {
namespace {

struct Target {
  c10::ScalarType dtype;
  c10::Device device = c10::kCPU;
  c10::Layout layout = c10::kStrided;
  bool pin_memory = false;
  bool copy = false;
};

/// Another dtype gives a plain tensor; Module::to() is stopped by has_compatible_shallow_copy_type() then.
Tensor convert(const Tensor& self, const Target& target, OptionalFormat format, std::string_view op) {
  const QuantizedMeta& meta = meta_for_use(self, op);
  if (!target.device.is_cpu()) fail_unsupported(meta, op, "it can only live on the CPU");
  if (target.layout != c10::kStrided || target.pin_memory) {
    fail_unsupported(meta, op, "it has no other layout and no pinned memory");
  }
  if (target.dtype != self.scalar_type()) return weight_kernels::dequantize(self).to(target.dtype);
  return target.copy ? weight_kernels::clone(self, format) : self;
}

}  // namespace

Tensor alias(const Tensor& self) {
  const QuantizedMeta& meta = meta_for_use(self, "aten::alias");
  return make_quantized_tensor(meta.source, meta.transposed);
}

Tensor detach(const Tensor& self) {
  const QuantizedMeta& meta = meta_of(self);
  return make_quantized_tensor(meta.source, meta.transposed);
}

Tensor clone(const Tensor& self, OptionalFormat format) {
  constexpr std::string_view op = "aten::clone";
  const QuantizedMeta& meta = meta_for_use(self, op);
  const c10::MemoryFormat wanted = format.value_or(c10::MemoryFormat::Preserve);
  // The parts are never written to: a copy that shares them can't be told from one that does not.
  if (wanted == c10::MemoryFormat::Preserve ||
      (wanted == c10::MemoryFormat::Contiguous && !meta.transposed)) {
    return make_quantized_tensor(meta.source, meta.transposed);
  }
  fail_unsupported(meta, op, "it has no other memory format");
}

Tensor dequantize(const Tensor& self) {
  const QuantizedMeta& meta = meta_for_use(self, "aten::dequantize");
  const QuantizedWeight& weight = meta.source->weight();
  const Tensor plain = weight.format->dequantize(weight).to(weight.dtype);
  return meta.transposed ? plain.t() : plain;
}

Tensor to_dtype(const Tensor& self, c10::ScalarType dtype, bool, bool copy, OptionalFormat format) {
  return convert(self, {.dtype = dtype, .copy = copy}, format, "aten::to.dtype");
}

Tensor to_device(const Tensor& self, c10::Device device, c10::ScalarType dtype, bool, bool copy,
                 OptionalFormat format) {
  return convert(self, {.dtype = dtype, .device = device, .copy = copy}, format, "aten::to.device");
}

Tensor to_dtype_layout(const Tensor& self, OptionalDtype dtype, std::optional<c10::Layout> layout,
                       std::optional<c10::Device> device, std::optional<bool> pin_memory, bool, bool copy,
                       OptionalFormat format) {
  return convert(self,
                 {.dtype = dtype.value_or(self.scalar_type()),
                  .device = device.value_or(self.device()),
                  .layout = layout.value_or(c10::kStrided),
                  .pin_memory = pin_memory.value_or(false),
                  .copy = copy},
                 format, "aten::to.dtype_layout");
}

Tensor to_copy(const Tensor& self, OptionalDtype dtype, std::optional<c10::Layout> layout,
               std::optional<c10::Device> device, std::optional<bool> pin_memory, bool non_blocking,
               OptionalFormat format) {
  return to_dtype_layout(self, dtype, layout, device, pin_memory, non_blocking, /*copy=*/true, format);
}

Tensor to_other(const Tensor& self, const Tensor& other, bool non_blocking, bool copy,
                OptionalFormat format) {
  return self.to(other.device(), other.scalar_type(), non_blocking, copy, format);
}

Tensor type_as(const Tensor& self, const Tensor& other) {
  return self.to(other.device(), other.scalar_type());
}

/// set_data() asks this right before it copies `from`'s metadata into `self`: the one place where a parameter
/// can be stopped from losing its quantization, or from requiring a gradient once it has it.
bool has_compatible_shallow_copy_type(const Tensor& self, const Tensor& from) {
  const bool plain_self = self.layout() == c10::kStrided && self.device().is_cpu() && !self.is_quantized();
  if (self.is_inference() != from.is_inference()) return false;
  if (try_meta(from)) {
    if (!plain_self || !self.is_leaf()) return false;
    if (self.requires_grad()) self.unsafeGetTensorImpl()->set_requires_grad(false);
    return true;
  }
  const QuantizedMeta& meta = meta_of(self);
  if (from.layout() != c10::kStrided || !from.device().is_cpu() || from.is_quantized()) return false;
  if (from.scalar_type() != self.scalar_type()) {
    fail_unsupported(meta, "set_data()", "Module::to() another dtype would undo its quantization");
  }
  return true;
}

}  // namespace halftone::weight_kernels
