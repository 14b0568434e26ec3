#include "archive/pickle/pickle_torch.h"

#include <algorithm>
#include <utility>

#include "archive/bytes/text.h"
#include "base/checked.h"
#include "base/errors.h"

namespace halftone::pickle {
namespace {

constexpr size_t kHighestRank = 64;

[[noreturn]] void fail_wrong(std::string_view what, std::string_view expected, const Node& found) {
  fail(ErrorCode::kCorruptFile, "{}: expected {}, found {}", what, expected, kind_name(found));
}

void check_count(const std::vector<NodeId>& arguments, size_t least, size_t most, std::string_view callable) {
  if (arguments.size() < least || arguments.size() > most) {
    fail(ErrorCode::kCorruptFile, "{} is called with {} arguments", callable, arguments.size());
  }
}

/// Whether every element that sizes and strides reach lies in a storage of `available` elements.
void check_reach(const PickledTensor& tensor, int64_t available) {
  std::optional<int64_t> last = tensor.offset;
  bool empty = false;
  for (size_t i = 0; i < tensor.sizes.size() && last; ++i) {
    empty = empty || tensor.sizes[i] == 0;
    const auto reach = checked_mul(std::max<int64_t>(tensor.sizes[i], 1) - 1, tensor.strides[i]);
    last = reach ? checked_add(*last, *reach) : std::nullopt;
  }
  if (!last || !tensor_bytes(tensor.sizes, tensor.dtype)) {
    fail(ErrorCode::kCorruptFile, "sizes or strides of a tensor overflow");
  }
  if (!empty && *last >= available) {
    fail(ErrorCode::kCorruptFile, "a tensor reaches element {} of a storage of {}", *last, available);
  }
  if (tensor.offset > available) {
    fail(ErrorCode::kCorruptFile, "a tensor starts at element {} of a storage of {}", tensor.offset,
         available);
  }
}

}  // namespace

int64_t TorchObjects::integer(NodeId id, std::string_view what) const {
  const auto* value = std::get_if<int64_t>(&heap_.at(id));
  if (value == nullptr) fail_wrong(what, "an int", heap_.at(id));
  if (*value < 0) fail(ErrorCode::kCorruptFile, "{} is negative: {}", what, *value);
  return *value;
}

std::vector<int64_t> TorchObjects::integers(NodeId id, std::string_view what) const {
  const auto* tuple = std::get_if<Tuple>(&heap_.at(id));
  if (tuple == nullptr) fail_wrong(what, "a tuple", heap_.at(id));
  if (tuple->items.size() > kHighestRank) {
    fail(ErrorCode::kCorruptFile, "{}: rank {} is more than {}", what, tuple->items.size(), kHighestRank);
  }
  std::vector<int64_t> values;
  for (const NodeId item : tuple->items) values.push_back(integer(item, what));
  return values;
}

NodeId TorchObjects::load_storage(NodeId id) {
  const auto* tuple = heap_.get_if<Tuple>(id);
  if (tuple == nullptr || tuple->items.size() != 5) {
    fail(ErrorCode::kCorruptFile, "persistent id: expected a tuple of five, found {}",
         kind_name(heap_.at(id)));
  }
  const auto* tag = heap_.get_if<std::string>(tuple->items[0]);
  if (tag == nullptr || *tag != "storage")
    fail(ErrorCode::kCorruptFile, "persistent id does not start with \"storage\"");
  const auto* global = heap_.get_if<const Global*>(tuple->items[1]);
  if (global == nullptr || (*global)->kind != Global::Kind::kStorage) {
    fail_wrong("storage type of a persistent id", "a storage class", heap_.at(tuple->items[1]));
  }
  const auto* key = heap_.get_if<std::string>(tuple->items[2]);
  if (key == nullptr) fail_wrong("key of a persistent id", "a string", heap_.at(tuple->items[2]));
  if (heap_.get_if<std::string>(tuple->items[3]) == nullptr) {
    fail_wrong("location of a persistent id", "a string", heap_.at(tuple->items[3]));
  }
  const int64_t count = integer(tuple->items[4], "element count of a storage");

  const ZipMember* member = container_.try_member(fmt::format("{}data/{}", root_, *key));
  if (member == nullptr)
    fail(ErrorCode::kCorruptFile, "storage {} has no member in the container", quote_text(*key));
  const auto size = checked_mul(count, static_cast<int64_t>(dtype_size((*global)->dtype)));
  if (!size || !std::cmp_equal(*size, member->bytes.size())) {
    fail(ErrorCode::kCorruptFile, "storage {}: {} elements of {} do not match its {} bytes", quote_text(*key),
         count, (*global)->name, member->bytes.size());
  }
  return heap_.add(std::make_unique<Storage>(Storage{*global, member->bytes}));
}

NodeId TorchObjects::make_tensor(const Storage& storage, DType dtype, const std::vector<NodeId>& arguments) {
  auto tensor = std::make_unique<PickledTensor>();
  tensor->dtype = dtype;
  tensor->offset = integer(arguments[1], "storage offset of a tensor");
  tensor->sizes = integers(arguments[2], "sizes of a tensor");
  tensor->strides = integers(arguments[3], "strides of a tensor");
  tensor->storage = storage.bytes;
  if (tensor->sizes.size() != tensor->strides.size()) {
    fail(ErrorCode::kCorruptFile, "a tensor with {} sizes and {} strides", tensor->sizes.size(),
         tensor->strides.size());
  }
  check_reach(*tensor, static_cast<int64_t>(storage.bytes.size() / dtype_size(dtype)));
  return heap_.add(std::move(tensor));
}

/// (storage, offset, sizes, strides, requires_grad, hooks[, dtype of v3][, metadata])
NodeId TorchObjects::rebuild_tensor(const std::vector<NodeId>& arguments, bool brings_dtype) {
  const size_t fixed = brings_dtype ? 7 : 6;
  check_count(arguments, fixed, fixed + 1, "a tensor's constructor");
  const auto* storage = heap_.get_if<std::unique_ptr<Storage>>(arguments[0]);
  if (storage == nullptr) fail_wrong("first argument of a tensor", "a storage", heap_.at(arguments[0]));
  if (heap_.get_if<bool>(arguments[4]) == nullptr) {
    fail_wrong("requires_grad of a tensor", "a bool", heap_.at(arguments[4]));
  }
  if (arguments.size() > fixed) {
    // It carries the conjugate and negative bits, without which the values would be wrong.
    const auto* metadata = heap_.get_if<Dict>(arguments[fixed]);
    const bool plain = metadata != nullptr ? metadata->items.empty()
                                           : heap_.get_if<PickleValue::None>(arguments[fixed]) != nullptr;
    if (!plain) fail(ErrorCode::kUnsupported, "a tensor with metadata, such as a conjugate bit");
  }
  DType dtype = (*storage)->type->dtype;
  if (brings_dtype) {
    const auto* global = heap_.get_if<const Global*>(arguments[6]);
    if (global == nullptr || (*global)->kind != Global::Kind::kDType) {
      fail_wrong("dtype of a tensor", "a torch dtype", heap_.at(arguments[6]));
    }
    dtype = (*global)->dtype;
  }
  // By value: make_tensor adds a node, which may move the one that `storage` points into.
  const Storage copy = **storage;
  return make_tensor(copy, dtype, arguments);
}

NodeId TorchObjects::device(const std::vector<NodeId>& arguments) {
  check_count(arguments, 1, 2, "torch.device");
  const auto* type = heap_.get_if<std::string>(arguments[0]);
  if (type == nullptr) fail_wrong("type of a device", "a string", heap_.at(arguments[0]));
  if (arguments.size() == 1) return arguments[0];
  return heap_.add(fmt::format("{}:{}", *type, integer(arguments[1], "index of a device")));
}

NodeId TorchObjects::reduce(NodeId callable, NodeId arguments_id) {
  const auto* global = heap_.get_if<const Global*>(callable);
  if (global == nullptr)
    fail(ErrorCode::kCorruptFile, "{} is called like a function", kind_name(heap_.at(callable)));
  const auto* tuple = heap_.get_if<Tuple>(arguments_id);
  if (tuple == nullptr) fail_wrong("arguments of a call", "a tuple", heap_.at(arguments_id));
  const std::vector<NodeId> arguments = tuple->items;
  switch ((*global)->kind) {
    case Global::Kind::kRebuildTensorV2:
      return rebuild_tensor(arguments, /*brings_dtype=*/false);
    case Global::Kind::kRebuildTensorV3:
      return rebuild_tensor(arguments, /*brings_dtype=*/true);
    case Global::Kind::kRebuildParameter:
      check_count(arguments, 3, 3, "a parameter's constructor");
      if (heap_.get_if<std::unique_ptr<PickledTensor>>(arguments[0]) == nullptr) {
        fail_wrong("data of a parameter", "a tensor", heap_.at(arguments[0]));
      }
      return arguments[0];
    case Global::Kind::kOrderedDict:
      check_count(arguments, 0, 0, "collections.OrderedDict");
      return heap_.add(Dict{});
    case Global::Kind::kSize:
      check_count(arguments, 1, 1, "torch.Size");
      integers(arguments[0], "torch.Size");
      return arguments[0];
    case Global::Kind::kDevice:
      return device(arguments);
    case Global::Kind::kStorage:
    case Global::Kind::kDType:
      break;
  }
  fail(ErrorCode::kCorruptFile, "{}.{} is called like a function", (*global)->module, (*global)->name);
}

}  // namespace halftone::pickle
