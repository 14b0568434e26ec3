#include "graph/checks/allowed_operators.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <set>

#include "base/errors.h"
#include "graph/ir/copy.h"
#include "graph/operators/operator_rules.h"
#include "graph/operators/operators.h"
#include "halftone/capture/capture.h"

namespace halftone {
namespace {

constexpr std::string_view kTable[] = {
#include "graph/checks/allowed_operators.inc"
};
static_assert(std::ranges::is_sorted(kTable));

/// Messages stay readable for a file in which every node is refused.
constexpr size_t kListed = 50;

/// What callers allowed besides the table.
class Extras {
 public:
  static Extras& get() {
    static auto& extras = *new Extras();
    return extras;
  }
  void add(const std::vector<c10::OperatorName>& names) {
    const std::lock_guard lock(mutex_);
    for (const c10::OperatorName& name : names)
      names_.insert(name.overload_name.empty() ? name.name : name.name + "." + name.overload_name);
  }
  bool has(std::string_view target) const {
    const std::lock_guard lock(mutex_);
    return names_.contains(target);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> names_;
};

/// Devices, layouts and dtypes are constants in graphs, some of them as torch's own numbers. Exports on CUDA
/// name it; ATen says then that it is not there.
bool is_refused_constant(const c10::Type& type, const Argument& given) {
  const int64_t* number = given.get_if<int64_t>();
  switch (type.kind()) {
    case c10::TypeKind::DeviceObjType: {
      const auto* device = given.get_if<c10::Device>();
      return device == nullptr || !(device->is_cpu() || device->is_cuda());
    }
    case c10::TypeKind::LayoutType: {
      const auto* layout = given.get_if<c10::Layout>();
      return layout != nullptr ? *layout != c10::Layout::Strided : number == nullptr || *number != 0;
    }
    case c10::TypeKind::ScalarTypeType: {
      const auto* dtype = given.get_if<c10::ScalarType>();
      if (dtype == nullptr &&
          (number == nullptr || *number < 0 || *number >= static_cast<int64_t>(c10::ScalarType::NumOptions)))
        return true;
      const c10::ScalarType plain = dtype != nullptr ? *dtype : static_cast<c10::ScalarType>(*number);
      return c10::isQIntType(plain) || plain == c10::ScalarType::Undefined;
    }
    case c10::TypeKind::MemoryFormatType:
      return number != nullptr &&
             (*number < 0 || *number >= static_cast<int64_t>(c10::MemoryFormat::NumOptions));
    default:
      return false;
  }
}

std::string why_refused_operand(const Node& node, const NamedArgument& input) {
  if (node.op() == nullptr || input.value.is_none()) return {};
  const c10::FunctionSchema& schema = node.op()->schema();
  const auto index = schema.argumentIndexWithName(input.name);
  if (!index) return {};
  c10::TypePtr type = schema.arguments()[static_cast<size_t>(*index)].real_type();
  if (type->kind() == c10::TypeKind::OptionalType) type = type->containedType(0);
  if (!is_refused_constant(*type, input.value)) return {};
  return fmt::format("its {} is none that Halftone runs with: refused in files", input.name);
}

template <typename Visit>
void for_each_subgraph(const Argument& argument, const Visit& visit) {
  if (const auto* graph = argument.get_if<std::shared_ptr<Graph>>(); graph && *graph) visit(**graph);
  if (const auto* list = argument.list()) {
    for (const Argument& item : *list) for_each_subgraph(item, visit);
  }
}

void collect_refused(const Graph& graph, std::vector<UnsupportedNode>& found) {
  for (const auto& node : graph.nodes()) {
    std::string reason = why_refused_in_files(node->target());
    for (const NamedArgument& input : node->inputs()) {
      if (reason.empty()) reason = why_refused_operand(*node, input);
      for_each_subgraph(input.value, [&](const Graph& inner) { collect_refused(inner, found); });
    }
    if (reason.empty()) continue;
    const std::string name =
        node->outputs().empty() ? "a node without results" : "%" + node->output()->name();
    found.push_back({name, node->target(), node->source().layer, std::move(reason)});
  }
}

bool gives_empty_memory(std::string_view target) {
  constexpr std::array<std::string_view, 6> kEmpty = {"aten::empty.memory_format", "aten::empty_like",
                                                      "aten::empty_permuted",      "aten::empty_strided",
                                                      "aten::new_empty",           "aten::new_empty_strided"};
  return std::ranges::find(kEmpty, target) != kEmpty.end();
}

bool is_filled_already(const Value& value) {
  return std::ranges::all_of(value.users(), [](const Node* user) { return user->is("aten::zero"); });
}

}  // namespace

std::span<const std::string_view> allowed_operator_table() {
  return kTable;
}

std::string why_refused_in_files(std::string_view target) {
  if (try_builtin(target) != nullptr || target.starts_with("halftone::")) return {};
  if (std::ranges::binary_search(kTable, target) || Extras::get().has(target)) return {};
  const c10::OperatorHandle* op = try_operator(target);
  if (op == nullptr) return fmt::format("{} is unknown", target);
  const OperatorRule& rule = rule_of(op->schema());
  return fmt::format("{} {}: refused in files", target,
                     rule.allows ? "is newer than Halftone and was not reviewed" : rule.reason);
}

void allow_operators(const std::vector<c10::OperatorName>& names) {
  Extras::get().add(names);
}

void allow_operators(std::string_view name_space) {
  if (name_space == "aten" || name_space == "inductor") {
    fail(ErrorCode::kInvalidArgument,
         "operators of {} cannot be allowed as a whole: they read files and reinterpret memory", name_space);
  }
  const std::string prefix = std::string(name_space) + "::";
  std::vector<c10::OperatorName> names = c10::Dispatcher::singleton().getAllOpNames();
  std::erase_if(names, [&](const c10::OperatorName& name) { return !name.name.starts_with(prefix); });
  if (names.empty()) fail(ErrorCode::kNotFound, "this program has no operators of {}", prefix);
  allow_operators(names);
}

void throw_if_unsupported(std::string_view file, std::span<const UnsupportedNode> nodes) {
  if (nodes.empty()) return;
  std::string text =
      fmt::format("{}: {} node{} cannot be run:", file, nodes.size(), nodes.size() == 1 ? "" : "s");
  for (const UnsupportedNode& node : nodes.first(std::min(nodes.size(), kListed)))
    text += fmt::format("\n  {}: {} in layer \"{}\": {}", node.name, node.target, node.layer, node.reason);
  if (nodes.size() > kListed) text += fmt::format("\n  and {} more", nodes.size() - kListed);
  throw Error(ErrorCode::kUnsupported, text);
}

void require_allowed(const Graph& graph, std::string_view file) {
  std::vector<UnsupportedNode> refused;
  collect_refused(graph, refused);
  throw_if_unsupported(file, refused);
}

void fill_empty_tensors(Graph& graph) {
  for (auto next = graph.nodes().begin(); next != graph.nodes().end();) {
    const auto& node = *next++;
    for (const NamedArgument& input : node->inputs()) for_each_subgraph(input.value, fill_empty_tensors);
    if (!gives_empty_memory(node->target()) || is_filled_already(*node->output())) continue;
    Value* empty = node->output();
    Node* before = next == graph.nodes().end() ? nullptr : next->get();
    OutputSpec spec = spec_of(*empty);
    Node* zero =
        graph.insert(before, "aten::zero", {{"self", Argument()}}, {std::move(spec)}, node->source());
    graph.replace_all_uses(empty, zero->output());
    zero->set_input(0, empty);
  }
}

}  // namespace halftone
