#include "archive/pickle/pickle_machine.h"

#include <bit>
#include <cstring>

#include "archive/bytes/byte_reader.h"
#include "archive/bytes/text.h"
#include "base/errors.h"

namespace halftone::pickle {
namespace {

enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kEmptyDict = '}',
  kBinFloat = 'G',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
};

constexpr size_t kLongestGlobal = 256;

}  // namespace

NodeId Machine::run() {
  while (true) {
    const size_t at = position_;
    try {
      if (!step()) break;
    } catch (const Error& error) {
      throw error.with_context(fmt::format("{}: byte {}", where_, at));
    }
  }
  return stack_.front();
}

std::span<const std::byte> Machine::take(size_t count) {
  if (count > stream_.size() - position_) fail(ErrorCode::kCorruptFile, "the pickle is cut off");
  const auto part = stream_.subspan(position_, count);
  position_ += count;
  return part;
}

template <typename T>
T Machine::take_unsigned() {
  return load_le<T>(take(sizeof(T)), 0);
}

std::string_view Machine::take_line() {
  const auto rest = stream_.subspan(position_);
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) fail(ErrorCode::kCorruptFile, "the pickle is cut off");
  if (end > kLongestGlobal) fail(ErrorCode::kCorruptFile, "the name of a global has {} bytes", end);
  position_ += end + 1;
  return text.substr(0, end);
}

bool Machine::step() {
  if (position_ == 0) {
    if (take_unsigned<uint8_t>() != kProto) fail(ErrorCode::kCorruptFile, "not a pickle: no protocol opcode");
    const auto protocol = take_unsigned<uint8_t>();
    if (protocol != 2) fail(ErrorCode::kUnsupported, "pickle protocol {}; torch.save writes 2", protocol);
    return true;
  }
  const auto opcode = take_unsigned<uint8_t>();
  if (opcode != kStop) {
    step_scalar(opcode);
    return true;
  }
  if (stack_.size() != 1 || !marks_.empty()) {
    fail(ErrorCode::kCorruptFile, "{} objects and {} marks are left at the end", stack_.size(),
         marks_.size());
  }
  if (position_ != stream_.size()) {
    fail(ErrorCode::kCorruptFile, "{} trailing bytes after the end", stream_.size() - position_);
  }
  return false;
}

void Machine::step_scalar(uint8_t opcode) {
  switch (opcode) {
    case kNone:
      return push(heap_.add(PickleValue::None{}));
    case kNewTrue:
      return push(heap_.add(true));
    case kNewFalse:
      return push(heap_.add(false));
    case kBinInt:
      return push(heap_.add(int64_t{static_cast<int32_t>(take_unsigned<uint32_t>())}));
    case kBinInt1:
      return push(heap_.add(int64_t{take_unsigned<uint8_t>()}));
    case kBinInt2:
      return push(heap_.add(int64_t{take_unsigned<uint16_t>()}));
    case kLong1:
      return push_integer_bytes(take_unsigned<uint8_t>());
    case kLong4: {
      const auto count = static_cast<int32_t>(take_unsigned<uint32_t>());
      if (count < 0) fail(ErrorCode::kCorruptFile, "an integer of {} bytes", count);
      return push_integer_bytes(static_cast<size_t>(count));
    }
    case kBinFloat: {
      // The one number of the format that stands high byte first.
      uint64_t bits = 0;
      for (const std::byte byte : take(sizeof(bits))) bits = bits << 8 | std::to_integer<uint64_t>(byte);
      return push(heap_.add(std::bit_cast<double>(bits)));
    }
    case kBinUnicode:
      return push_text();
    default:
      return step_container(opcode);
  }
}

void Machine::step_container(uint8_t opcode) {
  switch (opcode) {
    case kMark:
      return marks_.push_back(stack_.size());
    case kEmptyList:
      return push(heap_.add(List{}));
    case kEmptyDict:
      return push(heap_.add(Dict{}));
    case kEmptyTuple:
      return push_tuple(0);
    case kTuple1:
      return push_tuple(1);
    case kTuple2:
      return push_tuple(2);
    case kTuple3:
      return push_tuple(3);
    case kTuple:
      return push(heap_.add(Tuple{pop_to_mark()}));
    case kAppend:
      return append({pop()});
    case kAppends:
      return append(pop_to_mark());
    case kSetItem: {
      const NodeId value = pop();
      const NodeId key = pop();
      return set_items({key, value});
    }
    case kSetItems:
      return set_items(pop_to_mark());
    default:
      return step_object(opcode);
  }
}

void Machine::step_object(uint8_t opcode) {
  switch (opcode) {
    case kBinPut:
      return put(take_unsigned<uint8_t>());
    case kLongBinPut:
      return put(take_unsigned<uint32_t>());
    case kBinGet:
      return get(take_unsigned<uint8_t>());
    case kLongBinGet:
      return get(take_unsigned<uint32_t>());
    case kGlobal:
      return push_global();
    case kBinPersId:
      return push(objects_.load_storage(pop()));
    case kReduce: {
      const NodeId arguments = pop();
      return push(objects_.reduce(pop(), arguments));
    }
    case kBuild: {
      // Attributes of an OrderedDict, such as the _metadata of a state dict: no data, so they are dropped.
      const NodeId state = pop();
      if (heap_.get_if<Dict>(state) == nullptr || heap_.get_if<Dict>(top()) == nullptr) {
        fail(ErrorCode::kCorruptFile, "{} gets attributes from {}", kind_name(heap_.at(top())),
             kind_name(heap_.at(state)));
      }
      return;
    }
    default:
      fail(ErrorCode::kCorruptFile, "opcode 0x{:02x} is not one that torch.save writes", opcode);
  }
}

void Machine::push_integer_bytes(size_t count) {
  const auto bytes = take(count);
  if (count > sizeof(uint64_t))
    fail(ErrorCode::kUnsupported, "an integer of {} bytes, more than 64 bits", count);
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  const bool negative = count > 0 && (std::to_integer<unsigned>(bytes[count - 1]) & 0x80U) != 0;
  if (negative && count < sizeof(value)) value |= ~uint64_t{0} << (8 * count);
  push(heap_.add(static_cast<int64_t>(value)));
}

void Machine::push_text() {
  const auto bytes = take(take_unsigned<uint32_t>());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!is_utf8(text)) fail(ErrorCode::kCorruptFile, "a string that is not UTF-8: {}", quote_text(text));
  push(heap_.add(std::string(text)));
}

void Machine::push_global() {
  const std::string_view module = take_line();
  const std::string_view name = take_line();
  const Global* global = find_global(module, name);
  if (global == nullptr) {
    fail(ErrorCode::kUnsupported, "global {} {} is not allowed: only tensors and plain data are read",
         quote_text(module), quote_text(name));
  }
  push(heap_.add(global));
}

NodeId Machine::pop() {
  const NodeId id = top();
  stack_.pop_back();
  return id;
}

NodeId Machine::top() const {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor) fail(ErrorCode::kCorruptFile, "the stack is empty where an object must stand");
  return stack_.back();
}

std::vector<NodeId> Machine::pop_to_mark() {
  if (marks_.empty()) fail(ErrorCode::kCorruptFile, "no mark on the stack");
  const auto first = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
  std::vector<NodeId> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return items;
}

void Machine::push_tuple(size_t count) {
  std::vector<NodeId> items(count);
  for (size_t i = count; i-- > 0;) items[i] = pop();
  push(heap_.add(Tuple{std::move(items)}));
}

void Machine::append(std::vector<NodeId> items) {
  auto* list = heap_.get_if<List>(top());
  if (list == nullptr) fail(ErrorCode::kCorruptFile, "items are appended to {}", kind_name(heap_.at(top())));
  list->items.insert(list->items.end(), items.begin(), items.end());
}

void Machine::set_items(const std::vector<NodeId>& items) {
  auto* dict = heap_.get_if<Dict>(top());
  if (dict == nullptr) fail(ErrorCode::kCorruptFile, "keys are set in {}", kind_name(heap_.at(top())));
  if (items.size() % 2 != 0) fail(ErrorCode::kCorruptFile, "a key without a value");
  for (size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
}

void Machine::put(uint32_t key) {
  memo_[key] = top();
}

void Machine::get(uint32_t key) {
  const auto found = memo_.find(key);
  if (found == memo_.end()) fail(ErrorCode::kCorruptFile, "memo {} is read before it is written", key);
  push(found->second);
}

}  // namespace halftone::pickle
