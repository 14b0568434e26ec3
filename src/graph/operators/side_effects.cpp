// has_side_effects(): whether a node must run even if its outputs are not used.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "halftone/graph/graph.h"

namespace halftone {
namespace {

// The operand as it will be at run time, the schema's default if it was not given; nothing if it is a
// value.
std::optional<bool> constant_flag(const Node& node, std::string_view name) {
  if (const Argument* given = node.try_input(name)) {
    const bool* flag = given->get_if<bool>();
    return flag ? std::optional(*flag) : std::nullopt;
  }
  const auto index = node.op()->schema().argumentIndexWithName(name);
  if (!index) return std::nullopt;
  const auto& otherwise = node.op()->schema().arguments()[static_cast<size_t>(*index)].default_value();
  return otherwise && otherwise->isBool() ? std::optional(otherwise->toBool()) : std::nullopt;
}

std::optional<double> constant_number(const Node& node, std::string_view name) {
  if (const Argument* given = node.try_input(name)) {
    if (const double* number = given->get_if<double>()) return *number;
    if (const auto whole = given->as_int()) return static_cast<double>(*whole);
    return std::nullopt;
  }
  const auto index = node.op()->schema().argumentIndexWithName(name);
  if (!index) return std::nullopt;
  const auto& otherwise = node.op()->schema().arguments()[static_cast<size_t>(*index)].default_value();
  return otherwise && otherwise->isDouble() ? std::optional(otherwise->toDouble()) : std::nullopt;
}

// Dropout and attention carry the tag for random numbers although they draw none in inference, where most
// graphs have them.
bool draws_random_numbers(const Node& node) {
  if (!node.op()->hasTag(at::Tag::nondeterministic_seeded)) return false;
  for (const std::string_view flag : {"train", "training"}) {
    if (constant_flag(node, flag) == false) return false;
  }
  for (const std::string_view probability : {"dropout", "dropout_p"}) {
    if (constant_number(node, probability) == 0.0) return false;
  }
  return true;
}

bool is_given(const Node& node, std::string_view name) {
  const Argument* argument = node.try_input(name);
  return argument != nullptr && !argument->is_none();
}

// Batch norm in training updates its running statistics, which its schema does not show.
bool updates_statistics(const Node& node) {
  constexpr std::array<std::string_view, 6> kNorms = {
      "aten::batch_norm",    "aten::native_batch_norm", "aten::_batch_norm_impl_index",
      "aten::instance_norm", "aten::cudnn_batch_norm",  "aten::miopen_batch_norm",
  };
  if (std::find(kNorms.begin(), kNorms.end(), node.target()) == kNorms.end()) return false;
  if (!is_given(node, "running_mean") && !is_given(node, "running_var")) return false;
  const bool instance = node.is("aten::instance_norm");
  return constant_flag(node, instance ? "use_input_stats" : "training") != false;
}

bool holds_side_effects(const Argument& argument) {
  if (const auto* graph = argument.get_if<std::shared_ptr<Graph>>()) {
    return *graph != nullptr && std::any_of((*graph)->nodes().begin(), (*graph)->nodes().end(),
                                            [](const auto& node) { return has_side_effects(*node); });
  }
  const auto* list = argument.list();
  return list != nullptr && std::any_of(list->begin(), list->end(), holds_side_effects);
}

}  // namespace

bool has_side_effects(const Node& node) {
  if (node.op() == nullptr) {
    return std::any_of(node.inputs().begin(), node.inputs().end(),
                       [](const NamedArgument& input) { return holds_side_effects(input.value); });
  }
  const std::string_view target = node.target();
  constexpr std::array<std::string_view, 4> kChecks = {
      "aten::_assert", "aten::sym_constrain", "aten::_functional_assert", "aten::_functional_sym_constrain"};
  if (std::any_of(kChecks.begin(), kChecks.end(),
                  [&](std::string_view prefix) { return target.starts_with(prefix); })) {
    return true;
  }
  return target == "aten::_print" || node.op()->schema().is_mutable() || draws_random_numbers(node) ||
         updates_statistics(node);
}

}  // namespace halftone
