#include "quant/graph/left_alone_graph.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_set>

namespace halftone {
namespace {

struct KindOfOperator {
  std::string_view prefix;  ///< of the operator's name
  std::string_view kind;
};

/// The first that fits counts.
constexpr std::array<KindOfOperator, 14> kKinds = {{{"aten::conv", "convolution"},
                                                    {"aten::_convolution", "convolution"},
                                                    {"aten::lstm", "LSTM"},
                                                    {"aten::gru", "GRU"},
                                                    {"aten::rnn_", "RNN"},
                                                    {"aten::embedding_bag", "embedding bag"},
                                                    {"aten::_embedding_bag", "embedding bag"},
                                                    {"aten::embedding", "embedding"},
                                                    {"aten::linear", "linear"},
                                                    {"aten::addmm", "linear"},
                                                    {"aten::mm", "linear"},
                                                    {"aten::bmm", "linear"},
                                                    {"aten::matmul", "linear"},
                                                    {"aten::einsum", "linear"}}};

std::string_view kind_of(const Node& node) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(), [&](const KindOfOperator& one) {
    return std::string_view(node.target()).starts_with(one.prefix);
  });
  return found == kKinds.end() ? std::string_view() : found->kind;
}

bool is_recurrent(std::string_view kind) {
  return kind == "LSTM" || kind == "GRU" || kind == "RNN";
}

struct Reader {
  const Node* node = nullptr;
  std::string_view kind;  ///< empty: none that is known
};

/// The reader of the value, through nodes that read nothing else: a known layer if there is one. None if
/// only quantized layers do.
Reader reader_of(const Value& value) {
  Reader other;
  std::vector<const Value*> pending{&value};
  std::unordered_set<const Node*> seen;
  while (!pending.empty()) {
    const Value* next = pending.back();
    pending.pop_back();
    for (const Node* user : next->users()) {
      if (!seen.insert(user).second) continue;
      if (const auto kind = kind_of(*user); !kind.empty()) return {user, kind};
      if (user->target().starts_with("halftone::")) continue;
      const bool view = user->input_values().size() == 1 && !user->outputs().empty();
      if (view) pending.insert(pending.end(), user->outputs().begin(), user->outputs().end());
      if (!view) other.node = user;
    }
  }
  return other;
}

}  // namespace

std::vector<UntouchedWeight> find_untouched(const GraphModule& module, const std::set<std::string>& chosen) {
  const auto tensors = module.tensors();
  std::set<std::tuple<const void*, int64_t, size_t>> seen;
  std::vector<UntouchedWeight> weights;
  for (const GraphInput& input : module.graph().inputs()) {
    const auto found = tensors->find(input.target);
    if (input.kind == InputKind::kUser || found == tensors->end() || chosen.contains(input.target)) continue;
    const at::Tensor& tensor = found->second;
    if (!tensor.is_floating_point() || !tensor.has_storage()) continue;
    const Reader reader = reader_of(*input.value);
    if (reader.node == nullptr || (tensor.dim() < 2 && !is_recurrent(reader.kind))) continue;
    if (reader.kind.empty() && input.kind != InputKind::kParameter) continue;  // tables of positions, masks
    const void* memory = tensor.storage().unsafeGetStorageImpl();
    if (!seen.emplace(memory, tensor.storage_offset(), tensor.nbytes()).second) continue;
    weights.push_back({std::string(reader.kind.empty() ? kOtherWeight : reader.kind),
                       is_recurrent(reader.kind) ? static_cast<const void*>(reader.node) : input.value,
                       static_cast<int64_t>(tensor.nbytes())});
  }
  return weights;
}

}  // namespace halftone
