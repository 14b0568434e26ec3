#include "archive/pickle/pickle_heap.h"

#include <algorithm>
#include <array>

#include "base/errors.h"

namespace halftone::pickle {
namespace {

constexpr size_t kMemoryLimit = size_t{256} << 20;

using Kind = Global::Kind;

constexpr std::array kGlobals = {
    Global{Kind::kRebuildTensorV2, "torch._utils", "_rebuild_tensor_v2"},
    Global{Kind::kRebuildTensorV3, "torch._utils", "_rebuild_tensor_v3"},
    Global{Kind::kRebuildParameter, "torch._utils", "_rebuild_parameter"},
    Global{Kind::kOrderedDict, "collections", "OrderedDict"},
    Global{Kind::kSize, "torch", "Size"},
    Global{Kind::kDevice, "torch", "device"},
    Global{Kind::kStorage, "torch", "FloatStorage", DType::kFloat32},
    Global{Kind::kStorage, "torch", "DoubleStorage", DType::kFloat64},
    Global{Kind::kStorage, "torch", "HalfStorage", DType::kFloat16},
    Global{Kind::kStorage, "torch", "BFloat16Storage", DType::kBfloat16},
    Global{Kind::kStorage, "torch", "LongStorage", DType::kInt64},
    Global{Kind::kStorage, "torch", "IntStorage", DType::kInt32},
    Global{Kind::kStorage, "torch", "ShortStorage", DType::kInt16},
    Global{Kind::kStorage, "torch", "CharStorage", DType::kInt8},
    Global{Kind::kStorage, "torch", "ByteStorage", DType::kUint8},
    Global{Kind::kStorage, "torch", "BoolStorage", DType::kBool},
    Global{Kind::kStorage, "torch", "ComplexFloatStorage", DType::kComplex64},
    Global{Kind::kStorage, "torch", "ComplexDoubleStorage", DType::kComplex128},
    Global{Kind::kStorage, "torch.storage", "UntypedStorage", DType::kUint8, true},
    Global{Kind::kStorage, "torch", "UntypedStorage", DType::kUint8, true},
    Global{Kind::kDType, "torch", "bool", DType::kBool},
    Global{Kind::kDType, "torch", "uint8", DType::kUint8},
    Global{Kind::kDType, "torch", "int8", DType::kInt8},
    Global{Kind::kDType, "torch", "int16", DType::kInt16},
    Global{Kind::kDType, "torch", "int32", DType::kInt32},
    Global{Kind::kDType, "torch", "int64", DType::kInt64},
    Global{Kind::kDType, "torch", "uint16", DType::kUint16},
    Global{Kind::kDType, "torch", "uint32", DType::kUint32},
    Global{Kind::kDType, "torch", "uint64", DType::kUint64},
    Global{Kind::kDType, "torch", "float16", DType::kFloat16},
    Global{Kind::kDType, "torch", "bfloat16", DType::kBfloat16},
    Global{Kind::kDType, "torch", "float32", DType::kFloat32},
    Global{Kind::kDType, "torch", "float64", DType::kFloat64},
    Global{Kind::kDType, "torch", "complex64", DType::kComplex64},
    Global{Kind::kDType, "torch", "complex128", DType::kComplex128},
    Global{Kind::kDType, "torch", "float8_e4m3fn", DType::kFloat8E4m3},
    Global{Kind::kDType, "torch", "float8_e5m2", DType::kFloat8E5m2},
};

/// What a node keeps outside itself when it is made. Lists and dicts start empty and grow by what the stream
/// spells out, four or eight bytes for at least one byte of it.
size_t payload(const Node& node) {
  if (const auto* text = std::get_if<std::string>(&node)) return text->size();
  if (const auto* tuple = std::get_if<Tuple>(&node)) return tuple->items.size() * sizeof(NodeId);
  if (const auto* tensor = std::get_if<std::unique_ptr<PickledTensor>>(&node)) {
    return sizeof(PickledTensor) + ((*tensor)->sizes.size() + (*tensor)->strides.size()) * sizeof(int64_t);
  }
  return 0;
}

}  // namespace

const Global* find_global(std::string_view module, std::string_view name) {
  const auto found = std::find_if(kGlobals.begin(), kGlobals.end(), [&](const Global& global) {
    return global.module == module && global.name == name;
  });
  return found == kGlobals.end() ? nullptr : &*found;
}

NodeId Heap::add(Node node) {
  bytes_ += sizeof(Node) + payload(node);
  if (bytes_ > kMemoryLimit) {
    fail(ErrorCode::kCorruptFile, "its objects need more than {} MiB", kMemoryLimit >> 20);
  }
  nodes_.push_back(std::move(node));
  return static_cast<NodeId>(nodes_.size() - 1);
}

std::string_view kind_name(const Node& node) {
  constexpr std::array<std::string_view, 11> kNames = {"None",     "a bool",    "an int",  "a float",
                                                       "a string", "a tuple",   "a list",  "a dict",
                                                       "a global", "a storage", "a tensor"};
  static_assert(kNames.size() == std::variant_size_v<Node>);
  return kNames[node.index()];
}

}  // namespace halftone::pickle
