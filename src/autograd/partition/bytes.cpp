#include "autograd/partition/bytes.h"

#include "autograd/partition/operator_classes.h"
#include "base/errors.h"

namespace halftone::partition {

std::optional<int64_t> try_element_count(const Value& value) {
  if (value.type() != ValueType::kTensor || !value.meta()) return std::nullopt;
  int64_t count = 1;
  for (const SymExpr& size : value.meta()->sizes) {
    const auto constant = size.as_constant();
    if (!constant) return std::nullopt;
    count *= *constant;
  }
  return count;
}

int64_t bytes_of(const Value& value) {
  const auto count = try_element_count(value);
  if (!count) {
    fail(ErrorCode::kInvalidArgument, "the partitioner must know how large %{} is, and its sizes are {}",
         value.name(), value.meta() ? "symbolic" : "not known");
  }
  return *count * static_cast<int64_t>(c10::elementSize(value.meta()->dtype));
}

const Value* storage_of(const Value* value) {
  while (value->producer() != nullptr) {
    const Value* base = viewed_operand(*value->producer());
    if (base == nullptr) break;
    value = base;
  }
  return value;
}

int64_t bytes_kept_alive(const ValueSet& values) {
  ValueSet storages;
  int64_t bytes = 0;
  for (const Value* value : values) {
    const Value* storage = storage_of(value);
    if (storage->producer() != nullptr && storages.insert(storage).second) bytes += bytes_of(*storage);
  }
  return bytes;
}

}  // namespace halftone::partition
