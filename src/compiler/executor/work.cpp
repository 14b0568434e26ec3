// The least number of bytes and multiplications of a node.
#include <algorithm>

#include "compiler/executor/planner.h"
#include "compiler/ops/formats.h"

namespace halftone::compiler {

namespace {

int64_t bytes_of(const Slot& slot) {
  return slot.numel() * static_cast<int64_t>(slot.meta.element_size());
}

int64_t bytes_of(const Planned& value) {
  if (const Slot* slot = value.slot()) return bytes_of(*slot);
  int64_t bytes = 0;
  if (const std::vector<Slot>* list = value.list()) {
    for (const Slot& slot : *list) bytes += bytes_of(slot);
  }
  return bytes;
}

/// x [..., k] times n columns.
int64_t linear_operations(const Slot& x, int64_t n) {
  return 2 * x.numel() * n;
}

/// Both products: q·kᵀ and weights·v.
int64_t attention_operations(const Slot& q, const Slot& k, const Slot& v) {
  const int64_t width = q.sizes().back() + v.sizes().back();
  return q.sizes().back() == 0 ? 0
                               : 2 * (q.numel() / q.sizes().back()) * k.sizes()[k.sizes().size() - 2] * width;
}

/// Each element of the weight meets each pixel of the output; of the input, where it is transposed.
int64_t conv_operations(const Slot& weight, const Slot& pixels) {
  return 2 * weight.numel() * (pixels.numel() / std::max<int64_t>(1, pixels.meta.size(1)));
}

Arithmetic linear_arithmetic(const std::string& format, const std::vector<int64_t>& attributes) {
  const FusedFormat* how = try_fused_format(format);
  const int bits = how != nullptr && how->multiplied_bits != nullptr ? how->multiplied_bits(attributes) : 0;
  if (bits == 0) return Arithmetic::kFloat;
  return bits < 8 ? Arithmetic::kInt7 : Arithmetic::kInt8;
}

}  // namespace

Work Planner::work_of(const Node& node) const {
  Work work;
  for (const Value* value : node.input_values()) work.bytes += bytes_of(planned(value));
  for (const Value* output : node.outputs()) {
    const auto found = values_.find(output);
    if (found != values_.end() && is_used(output)) work.bytes += bytes_of(found->second);
  }
  if (node.is("halftone::fused_linear")) {
    const std::vector<int64_t> y = sizes_of(node.output(0));
    const Slot* x = tensor(node, "x");
    if (x && !y.empty()) work.operations = linear_operations(*x, y.back());
    work.arithmetic =
        linear_arithmetic(constant(node, "format").toStringRef(), constant(node, "attributes").toIntVector());
  } else if (node.is("halftone::conv")) {
    const Slot *x = tensor(node, "x"), *weight = tensor(node, "weight"), *y = tensor_of(node.output());
    if (x && weight && y)
      work.operations = conv_operations(*weight, constant(node, "transposed").toBool() ? *x : *y);
  } else if (node.is("halftone::attention")) {
    const Slot *q = tensor(node, "q"), *k = tensor(node, "k"), *v = tensor(node, "v");
    if (q && k && v) work.operations = attention_operations(*q, *k, *v);
  }
  return work;
}

}  // namespace halftone::compiler
