// From nodes, which may refer to one another in any way, to values, which are trees with shared branches.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "archive/bytes/text.h"
#include "archive/pickle/pickle_heap.h"
#include "base/errors.h"

namespace halftone::pickle {
namespace {

constexpr int kDeepest = 100;
constexpr size_t kLargest = size_t{256} << 20;

/// A finished container and what it would be as a plain tree: a reader who walks it visits shared branches
/// again, and a stream of a few hundred bytes can spell 2^100 visits.
struct Built {
  PickleValue value;
  size_t bytes = 0;
  int height = 0;
};

class Converter {
 public:
  explicit Converter(const Heap& heap) : heap_(heap) {}

  Built build(NodeId id, int depth) {
    const Node& node = heap_.at(id);
    const bool container = std::holds_alternative<Tuple>(node) || std::holds_alternative<List>(node) ||
                           std::holds_alternative<Dict>(node);
    if (!container) return build_leaf(node);
    if (const auto done = done_.find(id); done != done_.end()) {
      if (depth + done->second.height > kDeepest) fail_deep();
      return done->second;
    }
    if (depth >= kDeepest) fail_deep();
    if (!open_.insert(id).second) fail(ErrorCode::kCorruptFile, "{} contains itself", kind_name(node));
    Built built = build_container(node, depth);
    open_.erase(id);
    return done_.emplace(id, std::move(built)).first->second;
  }

 private:
  [[noreturn]] static void fail_deep() {
    fail(ErrorCode::kCorruptFile, "containers are nested deeper than {}", kDeepest);
  }

  static Built build_leaf(const Node& node) {
    Built built;
    built.bytes = sizeof(PickleValue);
    if (const auto* flag = std::get_if<bool>(&node)) {
      built.value.data = *flag;
    } else if (const auto* integer = std::get_if<int64_t>(&node)) {
      built.value.data = *integer;
    } else if (const auto* number = std::get_if<double>(&node)) {
      built.value.data = *number;
    } else if (const auto* text = std::get_if<std::string>(&node)) {
      built.value.data = *text;
      built.bytes += text->size();
    } else if (const auto* tensor = std::get_if<std::unique_ptr<PickledTensor>>(&node)) {
      built.value.data = **tensor;
      built.bytes += ((*tensor)->sizes.size() + (*tensor)->strides.size()) * sizeof(int64_t);
    } else if (const auto* global = std::get_if<const Global*>(&node)) {
      if ((*global)->kind != Global::Kind::kDType) {
        fail(ErrorCode::kUnsupported, "{}.{} stands where a value must", (*global)->module, (*global)->name);
      }
      built.value.data = fmt::format("{}.{}", (*global)->module, (*global)->name);
    } else if (!std::holds_alternative<PickleValue::None>(node)) {
      fail(ErrorCode::kUnsupported, "{} stands where a value must", kind_name(node));
    }
    return built;
  }

  Built build_container(const Node& node, int depth) {
    Built built;
    built.bytes = sizeof(PickleValue);
    if (const auto* dict = std::get_if<Dict>(&node)) {
      auto items = std::make_shared<PickleValue::Dict>();
      std::unordered_set<std::string> seen;
      for (const auto& [key, value] : dict->items) {
        check_key(heap_.at(key), seen);
        PickleValue key_value = add(built, key, depth);
        items->emplace_back(std::move(key_value), add(built, value, depth));
      }
      built.value.data = std::move(items);
    } else {
      const bool is_tuple = std::holds_alternative<Tuple>(node);
      auto items = std::make_shared<PickleValue::List>();
      for (const NodeId item : is_tuple ? std::get<Tuple>(node).items : std::get<List>(node).items) {
        items->push_back(add(built, item, depth));
      }
      built.value.data = PickleValue::Sequence{is_tuple, std::move(items)};
    }
    ++built.height;
    return built;
  }

  PickleValue add(Built& parent, NodeId child, int depth) {
    Built built = build(child, depth + 1);
    parent.bytes += built.bytes;  // both are at most kLargest: no overflow
    parent.height = std::max(parent.height, built.height);
    if (parent.bytes > kLargest) {
      fail(ErrorCode::kCorruptFile, "expands to more than {} MiB", kLargest >> 20);
    }
    return std::move(built.value);
  }

  /// Keys that Python can hash by value, each once. Tuples pass unchecked for duplicates.
  static void check_key(const Node& key, std::unordered_set<std::string>& seen) {
    std::string identity;
    if (const auto* text = std::get_if<std::string>(&key)) {
      identity = '"' + *text;  // the quote keeps the string "1" apart from the number
    } else if (const auto* integer = std::get_if<int64_t>(&key)) {
      identity = fmt::format("{}", *integer);
    } else if (const auto* flag = std::get_if<bool>(&key)) {
      identity = *flag ? "True" : "False";
    } else if (std::holds_alternative<PickleValue::None>(key)) {
      identity = "None";
    } else if (std::holds_alternative<double>(key) || std::holds_alternative<Tuple>(key) ||
               std::holds_alternative<const Global*>(key)) {
      return;
    } else {
      fail(ErrorCode::kCorruptFile, "{} is the key of a dict", kind_name(key));
    }
    if (!seen.insert(identity).second) {
      fail(ErrorCode::kCorruptFile, "key {} is there twice in a dict", quote_text(identity));
    }
  }

  const Heap& heap_;
  std::unordered_map<NodeId, Built> done_;
  std::unordered_set<NodeId> open_;
};

}  // namespace

PickleValue to_value(const Heap& heap, NodeId root) {
  return Converter(heap).build(root, 0).value;
}

}  // namespace halftone::pickle
