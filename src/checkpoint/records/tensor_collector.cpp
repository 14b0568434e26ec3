// Collects the tensors of a model for a file: tensors that share memory are stored once.
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "archive/bytes/text.h"
#include "base/errors.h"
#include "checkpoint/records/stored_tensors.h"
#include "graph/aten/dtype_text.h"
#include "graph/aten/dtypes.h"

namespace halftone {
namespace {

constexpr int64_t kWidestElement = 16;  // complex128

/// offset + the largest index + 1, in elements. The tensor exists, so nothing overflows.
int64_t elements_end(const at::Tensor& tensor) {
  int64_t last = tensor.storage_offset();
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return last + 1;
}

bool same_view(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.storage_offset() == b.storage_offset() &&
         a.sizes() == b.sizes() && a.strides() == b.strides();
}

const std::byte* storage_bytes(const at::Tensor& tensor) {
  return static_cast<const std::byte*>(tensor.storage().data());
}

/// The part of a tensor without the repetitions that a stride of zero gives.
at::Tensor without_repetitions(at::Tensor tensor) {
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.stride(i) == 0 && tensor.size(i) > 1) tensor = tensor.narrow(i, 0, 1);
  }
  return tensor;
}

/// Copies the elements of `tensor` to the same places of `bytes`, which stand for its storage from byte
/// `begin` on.
void copy_in_place(const at::Tensor& bytes, int64_t begin, const at::Tensor& tensor) {
  const auto item = static_cast<int64_t>(tensor.element_size());
  const int64_t first = tensor.storage_offset() * item;
  at::Tensor same = at::empty({0}, tensor.options());
  same.set_(bytes.storage(), (first - begin) / item, tensor.sizes(), tensor.strides());
  same = without_repetitions(same);
  if (at::has_internal_overlap(same) == at::MemOverlap::No) {
    same.copy_(without_repetitions(tensor));
    return;
  }
  const auto count = static_cast<size_t>(elements_end(tensor) * item - first);
  std::memcpy(static_cast<std::byte*>(bytes.mutable_data_ptr()) + (first - begin),
              storage_bytes(tensor) + first, count);
}

void require_plain(const std::string& name, const at::Tensor& tensor) {
  const auto refuse = [&](std::string_view why) {
    fail(ErrorCode::kUnsupported, "tensor {} cannot be saved: {}", quote_text(name), why);
  };
  if (!tensor.defined()) refuse("it is undefined");
  if (tensor.layout() != c10::kStrided) refuse(fmt::format("its layout is {}", c10::str(tensor.layout())));
  if (!tensor.device().is_cpu() || !tensor.has_storage())
    refuse(fmt::format("it is on {}", tensor.device().str()));
  if (tensor.is_quantized() || !try_dtype_of(tensor.scalar_type()))
    refuse(fmt::format("files have no dtype for {}", dtype_text(tensor.scalar_type())));
}

}  // namespace

void TensorCollector::add(std::string name, const at::Tensor& tensor, std::string preferred) {
  require_plain(name, tensor);
  Item item{std::move(name), std::move(preferred), tensor.detach().resolve_conj().resolve_neg(),
            tensor.requires_grad()};
  if (item.tensor.numel() > 0) {
    const auto size = static_cast<int64_t>(item.tensor.element_size());
    item.begin = item.tensor.storage_offset() * size;
    item.end = elements_end(item.tensor) * size;
  }
  items_.push_back(std::move(item));
}

std::vector<TensorCollector::Group> TensorCollector::groups() const {
  std::vector<size_t> order(items_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](size_t i) {
    // Tensors that hold memory of their own making (from_blob) may share it without sharing a storage.
    const auto* memory = storage_bytes(items_[i].tensor);
    return std::tuple(memory + items_[i].begin, memory + items_[i].end, i);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  std::vector<Group> groups;
  const std::byte* end = nullptr;
  for (const size_t i : order) {
    const auto [first, last, index] = key(i);
    const bool joins = first < end && first != last && !groups.empty();
    if (!joins) groups.emplace_back();
    groups.back().push_back(i);
    end = joins ? std::max(end, last) : last;
  }
  // By the first name that uses it: addresses differ from run to run, the file must not.
  for (Group& group : groups) std::sort(group.begin(), group.end());
  std::sort(groups.begin(), groups.end());
  return groups;
}

std::string TensorCollector::free_name(const std::string& preferred) {
  const bool reserved = preferred.starts_with(ht::kReserved);
  const bool legal = !reserved && preferred != "__metadata__" && is_utf8(preferred);
  if (legal && used_.emplace(preferred, 0).second) return preferred;
  const bool numbered = reserved && is_utf8(preferred) && !is_filler(preferred + ".");
  const std::string stem = numbered ? preferred + "." : fmt::format("{}tensor.", ht::kReserved);
  return fmt::format("{}{}", stem, used_[stem]++);
}

const at::Tensor& TensorCollector::put(StoredTensors& result, std::string name, at::Tensor contiguous) {
  result.kept.push_back(std::move(contiguous));
  const at::Tensor& plain = result.kept.back();
  result.stored.push_back(
      {std::move(name),
       *try_dtype_of(plain.scalar_type()),
       plain.sizes().vec(),
       {static_cast<const std::byte*>(plain.const_data_ptr()), static_cast<size_t>(plain.nbytes())}});
  return plain;
}

/// All items of the group are the same view, and its elements stand in memory in some order without holes.
void TensorCollector::store_one(const Group& group, StoredTensors& result) {
  const Item& first = items_[group[0]];
  const std::string stored = free_name(first.preferred);
  put(result, stored, first.tensor.contiguous());
  for (const size_t i : group) {
    HtRecord& record = result.records[i];
    record.stored = stored;
    if (!first.tensor.is_contiguous()) record.strides = first.tensor.strides().vec();
  }
}

/// The group's bytes as they lie in memory, each item a view of them. Bytes that belong to no element are
/// zero.
void TensorCollector::store_range(const Group& group, StoredTensors& result) {
  const std::byte* begin = storage_bytes(items_[group[0]].tensor) + items_[group[0]].begin;
  const std::byte* end = begin;
  for (const size_t i : group) {
    begin = std::min(begin, storage_bytes(items_[i].tensor) + items_[i].begin);
    end = std::max(end, storage_bytes(items_[i].tensor) + items_[i].end);
  }
  // One of them may be all there is, as a matrix is of which others are slices: then it keeps its name and
  // shape.
  const auto base = std::find_if(group.begin(), group.end(), [&](size_t i) {
    const Item& item = items_[i];
    return item.tensor.is_contiguous() && storage_bytes(item.tensor) + item.begin == begin &&
           storage_bytes(item.tensor) + item.end == end &&
           !safetensors_name(*try_dtype_of(item.tensor.scalar_type())).empty();
  });
  const auto offset_of = [&](size_t i) { return storage_bytes(items_[i].tensor) + items_[i].begin - begin; };
  const bool fits = std::all_of(group.begin(), group.end(), [&](size_t i) {
    return offset_of(i) % static_cast<int64_t>(items_[i].tensor.element_size()) == 0;
  });
  const bool has_base = base != group.end() && fits;
  if (!fits) begin -= reinterpret_cast<uintptr_t>(begin) % kWidestElement;
  const std::string stored =
      has_base ? free_name(items_[*base].preferred) : free_name(fmt::format("{}memory", ht::kReserved));
  if (has_base) {
    put(result, stored, items_[*base].tensor);
  } else {
    const at::Tensor bytes = at::zeros({end - begin}, at::kByte);
    for (const size_t i : group)
      copy_in_place(bytes, begin - storage_bytes(items_[i].tensor), items_[i].tensor);
    put(result, stored, bytes);
  }
  for (const size_t i : group) {
    const at::Tensor& tensor = items_[i].tensor;
    result.records[i].stored = stored;
    if (has_base && same_view(tensor, items_[*base].tensor)) continue;
    result.records[i].view = {*try_dtype_of(tensor.scalar_type()), offset_of(i), tensor.sizes().vec(),
                              tensor.strides().vec()};
  }
}

void TensorCollector::store(const Group& group, StoredTensors& result) {
  const at::Tensor& first = items_[group[0]].tensor;
  const bool one_view = std::all_of(group.begin(), group.end(), [&](size_t i) {
    return storage_bytes(items_[i].tensor) == storage_bytes(first) && same_view(items_[i].tensor, first);
  });
  const bool named = !safetensors_name(*try_dtype_of(first.scalar_type())).empty();
  // A tensor without elements has no memory to share and no order that could matter.
  const bool plain = named && (first.numel() == 0 || first.is_non_overlapping_and_dense());
  if (one_view && plain) return store_one(group, result);
  store_range(group, result);
}

StoredTensors TensorCollector::finish() {
  StoredTensors result;
  for (const Item& item : items_) result.records.push_back({item.name, "", item.requires_grad});
  for (const Group& group : groups()) store(group, result);
  return result;
}

}  // namespace halftone
