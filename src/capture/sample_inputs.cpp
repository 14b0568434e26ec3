#include "capture/sample_inputs.h"

#include <c10/core/CPUAllocator.h>

#include <cstring>
#include <map>

#include "archive/pickle/pickle.h"
#include "archive/zip/zip.h"
#include "base/errors.h"
#include "capture/payload.h"
#include "graph/aten/dtypes.h"

namespace halftone {
namespace {

class Flattener {
 public:
  explicit Flattener(std::string place) : place_(std::move(place)) {}

  void flatten(const TreeSpec& spec, const PickleValue& value, const std::string& path) {
    if (spec.kind == TreeSpec::Kind::kLeaf) return leaves_.push_back(leaf(value, path));
    if (spec.kind == TreeSpec::Kind::kDict) return dict(spec, value, path);
    const auto* sequence = std::get_if<PickleValue::Sequence>(&value.data);
    if (!sequence || sequence->items->size() != spec.children.size()) mismatch(path);
    for (size_t i = 0; i < spec.children.size(); ++i) {
      flatten(spec.children[i], (*sequence->items)[i], fmt::format("{}[{}]", path, i));
    }
  }

  [[noreturn]] void mismatch(const std::string& path) const {
    fail(ErrorCode::kCorruptFile, "{}: sample input {} is not nested as in_spec says", place_, path);
  }

  std::vector<c10::IValue> take() { return std::move(leaves_); }

 private:
  void dict(const TreeSpec& spec, const PickleValue& value, const std::string& path) {
    const auto* entries = std::get_if<std::shared_ptr<PickleValue::Dict>>(&value.data);
    if (!entries || (*entries)->size() != spec.children.size()) mismatch(path);
    for (size_t i = 0; i < spec.children.size(); ++i) {
      const PickleValue* found = nullptr;
      for (const auto& [key, item] : **entries) {
        if (is_key(key, spec.keys[i])) found = &item;
      }
      if (!found) mismatch(path);
      flatten(spec.children[i], *found, fmt::format("{}['{}']", path, spec.keys[i]));
    }
  }

  static bool is_key(const PickleValue& key, const std::string& name) {
    if (const auto* text = std::get_if<std::string>(&key.data)) return *text == name;
    const auto* number = std::get_if<int64_t>(&key.data);
    return number && std::to_string(*number) == name;
  }

  c10::IValue leaf(const PickleValue& value, const std::string& path) {
    if (std::holds_alternative<PickleValue::None>(value.data)) return {};
    if (const auto* flag = std::get_if<bool>(&value.data)) return *flag;
    if (const auto* number = std::get_if<int64_t>(&value.data)) return *number;
    if (const auto* number = std::get_if<double>(&value.data)) return *number;
    if (const auto* text = std::get_if<std::string>(&value.data)) return *text;
    const auto* tensor = std::get_if<PickledTensor>(&value.data);
    if (!tensor) mismatch(path);
    const StoredTensorMeta meta{scalar_type_of(tensor->dtype), tensor->sizes, tensor->strides,
                                tensor->offset};
    return tensor_on_storage(storage_of(*tensor), meta, place_);
  }

  /// A copy of the bytes, one for all tensors that share them.
  const c10::Storage& storage_of(const PickledTensor& tensor) {
    const auto found = storages_.find(tensor.storage.data());
    if (found != storages_.end()) return found->second;
    c10::Storage copy(c10::Storage::use_byte_size_t(), tensor.storage.size(), c10::GetCPUAllocator(),
                      /*resizable=*/true);
    if (!tensor.storage.empty())
      std::memcpy(copy.mutable_data(), tensor.storage.data(), tensor.storage.size());
    return storages_.emplace(tensor.storage.data(), std::move(copy)).first->second;
  }

  std::string place_;
  std::map<const std::byte*, c10::Storage> storages_;
  std::vector<c10::IValue> leaves_;
};

}  // namespace

std::vector<c10::IValue> read_sample_inputs(Pt2Context& context, const Pt2Archive& archive,
                                            const CallSpec& call) {
  const ZipMember* member = archive.try_member(archive.sample_inputs_path());
  if (!member || member->bytes.empty()) return {};
  const std::string place = archive.place(archive.sample_inputs_path());
  PickleValue value;
  try {
    value = read_torch_pickle(ZipReader(member->bytes, place));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    context.notes.push_back(fmt::format("the sample inputs cannot be read without Python: {}", error.what()));
    return {};
  }
  if (std::holds_alternative<PickleValue::None>(value.data)) return {};
  Flattener flattener(place);
  const auto* both = std::get_if<PickleValue::Sequence>(&value.data);
  if (!both || both->items->size() != 2) flattener.mismatch("");
  flattener.flatten(call.args, (*both->items)[0], "args");
  flattener.flatten(call.kwargs, (*both->items)[1], "kwargs");
  return flattener.take();
}

}  // namespace halftone
