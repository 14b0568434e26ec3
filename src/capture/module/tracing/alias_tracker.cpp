#include "capture/module/tracing/alias_tracker.h"

#include <ATen/ops/clone.h>

#include "base/errors.h"

namespace halftone {

AliasTracker::Memory* AliasTracker::try_memory(const at::Tensor& tensor) const {
  const auto found = memories_.find(tensor.storage().unsafeGetStorageImpl());
  return found == memories_.end() ? nullptr : found->second.get();
}

AliasTracker::Memory& AliasTracker::add_memory(const at::Tensor& tensor, bool fresh, bool watched) {
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  // Weak: a strong reference would keep every intermediate result alive. The address is not used again all
  // the same.
  auto memory = std::make_unique<Memory>(
      Memory{c10::weak_intrusive_ptr<c10::StorageImpl>(tensor.storage().getWeakStorageImpl())});
  if (watched) memory->checksum = fingerprint(tensor.storage());
  memory->watched = watched;
  memory->fresh = fresh;
  return *(memories_[storage] = std::move(memory));
}

void AliasTracker::remember(const at::Tensor& tensor, Entry& entry) {
  handles_.insert_or_assign(
      tensor.unsafeGetTensorImpl(),
      Handle{c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()), &entry});
}

AliasTracker::Entry& AliasTracker::add_entry(Memory& memory, const at::Tensor& tensor, Value* value) {
  entries_.push_back(std::make_unique<Entry>());
  Entry& entry = *entries_.back();
  entry.memory = &memory;
  entry.geometry = Geometry::of(tensor);
  entry.value = value;
  memory.entries.push_back(&entry);
  remember(tensor, entry);
  return entry;
}

AliasTracker::Entry& AliasTracker::add_view(Entry& parent, const at::Tensor& tensor, ViewCall view,
                                            Value* value) {
  Entry& entry = add_entry(*parent.memory, tensor, value);
  entry.parent = &parent;
  entry.view = std::move(view);
  entry.version = parent.base().writes;
  return entry;
}

void AliasTracker::add_user_input(const at::Tensor& tensor, std::string name) {
  if (!tensor.has_storage())
    fail(ErrorCode::kUnsupported, "input \"{}\" is a tensor without a dense memory", name);
  const bool parameter = !names_.in_storage(tensor.storage().unsafeGetStorageImpl()).empty();
  if (parameter)
    fail(ErrorCode::kUnsupported, "input \"{}\" shares memory with the module's own tensors", name);
  Value* value = recorder_.add_input(tensor, InputKind::kUser, std::move(name), nullptr);
  Memory* memory = try_memory(tensor);
  Entry& entry = add_entry(memory ? *memory : add_memory(tensor, false), tensor, value);
  entry.input = value->index();
}

AliasTracker::Entry* AliasTracker::try_same(Memory& memory, const Geometry& geometry) const {
  // The latest first: that is what a handle which torch copied was copied from.
  for (auto entry = memory.entries.rbegin(); entry != memory.entries.rend(); ++entry) {
    if ((*entry)->geometry == geometry) return *entry;
  }
  return nullptr;
}

AliasTracker::Entry& AliasTracker::entry_of(const at::Tensor& tensor) {
  if (!tensor.has_storage()) {
    fail(ErrorCode::kUnsupported, "a tensor of layout {}, which has no dense memory",
         c10::str(tensor.layout()));
  }
  Memory* memory = try_memory(tensor);
  const auto handle = handles_.find(tensor.unsafeGetTensorImpl());
  if (handle != handles_.end()) {
    Entry& entry = *handle->second.entry;
    // A handle whose memory or geometry changed (set_data, resize_) is looked up anew.
    if (entry.memory == memory && entry.geometry == Geometry::of(tensor)) return entry;
  }
  if (!memory) return adopt(tensor);
  if (Entry* same = try_same(*memory, Geometry::of(tensor))) return remember(tensor, *same), *same;
  for (const ModuleTensor* named : names_.in_storage(tensor.storage().unsafeGetStorageImpl())) {
    if (Geometry::of(named->tensor) == Geometry::of(tensor)) return adopt_named(tensor, {named});
  }
  // A view that was made past the dispatcher, or before the capture: expressed by its strides over the
  // base.
  Entry& base = *memory->entries.front();
  ViewCall view = strided_view(refresh(base), base.geometry, Geometry::of(tensor));
  Value* value = replay_view(recorder_, view, base.value);
  return add_view(base, tensor, std::move(view), value);
}

AliasTracker::Entry& AliasTracker::adopt(const at::Tensor& tensor) {
  const auto names = names_.in_storage(tensor.storage().unsafeGetStorageImpl());
  return names.empty() ? add_constant(tensor, false) : adopt_named(tensor, names);
}

AliasTracker::Entry& AliasTracker::adopt_named(const at::Tensor& tensor,
                                               const std::vector<const ModuleTensor*>& names) {
  const ModuleTensor* named = names.front();
  for (const ModuleTensor* name : names) {
    if (Geometry::of(name->tensor) == Geometry::of(tensor)) named = name;
  }
  Value* value = recorder_.add_input(named->tensor, named->kind, named->name, &named->layer);
  tensors_[named->name] = named->tensor;
  const bool buffer = named->kind == InputKind::kBuffer;
  Memory* memory = try_memory(tensor);
  if (!memory) {
    memory = &add_memory(tensor, false, buffer);
    memory->checksum = named->checksum;
  }
  Entry& entry = add_entry(*memory, named->tensor, value);
  entry.input = value->index();
  // A member that is a view of a parameter: the second look finds the memory.
  return entry_of(tensor);
}

Value* AliasTracker::constant_value(const at::Tensor& tensor, bool fresh) {
  std::string name;
  do name = fmt::format("constant_{}", constants_++);
  while (names_.has_name(name));
  Value* value = recorder_.add_input(tensor, InputKind::kConstant, name, nullptr);
  tensors_[name] = fresh ? tensor.detach().clone() : tensor;
  return value;
}

AliasTracker::Entry& AliasTracker::add_constant(const at::Tensor& tensor, bool fresh) {
  Value* value = constant_value(tensor, fresh);
  Memory* memory = try_memory(tensor);
  Entry& entry = add_entry(memory ? *memory : add_memory(tensor, fresh), tensor, value);
  if (!fresh) entry.input = value->index();
  return entry;
}

void AliasTracker::bind_constant(const at::Tensor& tensor) {
  add_constant(tensor, true);
}

void AliasTracker::bind(const at::Tensor& tensor, Value* value, const MadeBy& call) {
  if (!tensor.has_storage())
    fail(ErrorCode::kUnsupported, "{} gave a tensor without a dense memory", call.target);
  Memory* memory = try_memory(tensor);
  if (memory) {
    for (const at::Tensor& operand : call.operands) {
      if (!operand.has_storage() || try_memory(operand) != memory) continue;
      Entry& parent = entry_of(operand);
      ViewCall view =
          canonical_view(call.target, call.inputs, refresh(parent), parent.geometry, Geometry::of(tensor));
      add_view(parent, tensor, std::move(view), value);
      return;
    }
  }
  // No operand's memory: new, or shared with another result of the same call.
  if (!memory) memory = &add_memory(tensor, true);
  memory->uninitialised = call.uninitialised;
  add_entry(*memory, tensor, value);
}

Value* AliasTracker::refresh(Entry& entry) {
  if (!entry.parent) return entry.value;
  const int writes = entry.base().writes;
  if (entry.version != writes) {
    // Recursive: the parent may be a view that is out of date as well. Only views that are read are made
    // again.
    entry.value = replay_view(recorder_, entry.view, refresh(*entry.parent));
    entry.version = writes;
  }
  return entry.value;
}

// Memory that empty() gave may be filled by plain code: from then on it is a constant. Any other such write
// would be lost, so it is refused.
void AliasTracker::check_written(Memory& memory, Entry& entry, const at::Tensor& tensor) {
  if (!memory.watched) return;
  const uint64_t checksum = fingerprint(tensor.storage());
  if (checksum == memory.checksum) return;
  Entry& base = entry.base();
  if (!memory.uninitialised || base.writes > 0) {
    fail(ErrorCode::kUnsupported,
         "%{} was changed by something else than an operator (data_ptr(), an accessor, another thread), "
         "which a "
         "capture cannot follow",
         base.value->name());
  }
  memory.checksum = checksum;
  const at::Tensor whole =
      tensor.as_strided(base.geometry.sizes, base.geometry.strides, base.geometry.offset);
  base.value = constant_value(whole, true);
  ++base.writes;
  base.version = base.writes;
}

Value* AliasTracker::value_of(const at::Tensor& tensor) {
  Entry& entry = entry_of(tensor);
  check_written(*entry.memory, entry, tensor);
  return refresh(entry);
}

void AliasTracker::keep(const at::Tensor& tensor) {
  const Entry& entry = entry_of(tensor);
  if (!entry.memory->fresh) snapshots_.keep(tensor.storage());
}

void AliasTracker::write(const at::Tensor& tensor, Value* value) {
  Entry& entry = entry_of(tensor);
  Entry& base = entry.base();
  for (Entry* other : entry.memory->entries) {
    if (other->parent || other == &base || !other->geometry.overlaps(base.geometry)) continue;
    // Two inputs over one memory have values of their own; a write to one would have to change the other.
    fail(ErrorCode::kUnsupported, "a write to %{} also changes %{}, which shares its memory",
         base.value->name(), other->value->name());
  }
  // From the view up to its base; what is on the way is known then too.
  const int writes = base.writes + 1;
  for (Entry* part = &entry; part; part = part->parent) {
    Value* above = part->parent ? refresh(*part->parent) : nullptr;
    part->value = value;
    if (above) value = undo_view(recorder_, part->view, part->parent->geometry, part->geometry, above, value);
  }
  base.writes = writes;
  for (Entry* part = &entry; part; part = part->parent) part->version = writes;
  entry.memory->uninitialised = false;
  if (entry.memory->watched) entry.memory->checksum = fingerprint(tensor.storage());
}

void AliasTracker::rebind(const at::Tensor& to, const at::Tensor& from) {
  remember(to, entry_of(from));
}

std::vector<AliasTracker::Mutation> AliasTracker::mutations() const {
  std::vector<Mutation> result;
  for (const auto& entry : entries_) {
    if (entry->input && entry->writes > 0) result.push_back({*entry->input, entry->value});
  }
  return result;
}

std::optional<size_t> AliasTracker::try_input_of(const at::Tensor& tensor) {
  return entry_of(tensor).base().input;
}

void AliasTracker::check_memory() {
  for (const auto& entry : entries_) {
    if (!entry->input || !entry->memory->watched) continue;
    const auto storage = entry->memory->storage.lock();
    if (!storage) continue;
    if (fingerprint(c10::Storage(storage)) == entry->memory->checksum) continue;
    fail(ErrorCode::kUnsupported,
         "%{} was changed by something else than an operator (data_ptr(), an accessor, another thread), "
         "which a "
         "capture cannot follow",
         entry->value->name());
  }
}

}  // namespace halftone
