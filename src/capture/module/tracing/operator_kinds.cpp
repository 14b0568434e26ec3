#include "capture/module/tracing/operator_kinds.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "graph/operators/operators.h"

namespace halftone {
namespace {

using c10::FunctionSchema;

template <typename List>
bool lists(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool is_tensor_type(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::TensorType) return true;
  for (const c10::TypePtr& inner : type->containedTypes()) {
    if (is_tensor_type(inner)) return true;
  }
  return false;
}

bool returns_tensors(const FunctionSchema& schema) {
  return std::any_of(schema.returns().begin(), schema.returns().end(),
                     [](const c10::Argument& result) { return is_tensor_type(result.type()); });
}

bool takes_tensors(const FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(),
                     [](const c10::Argument& argument) { return is_tensor_type(argument.type()); });
}

const c10::IValue* argument(const c10::OperatorHandle& op, const std::vector<c10::IValue>& args,
                            const char* name) {
  const auto index = op.schema().argumentIndexWithName(name);
  return index ? &args.at(static_cast<size_t>(*index)) : nullptr;
}

/// Boolean masks are looked through for what is true.
bool has_mask(const c10::IValue& indices) {
  const auto list = indices.toList();
  for (size_t i = 0; i < list.size(); ++i) {
    const c10::IValue index = list.get(i);
    if (!index.isTensor() || !index.toTensor().defined()) continue;
    const auto type = index.toTensor().scalar_type();
    if (type == c10::ScalarType::Bool || type == c10::ScalarType::Byte) return true;
  }
  return false;
}

std::vector<size_t> written_arguments(const FunctionSchema& schema) {
  std::vector<size_t> written;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias && alias->isWrite()) written.push_back(i);
  }
  return written;
}

bool same_arguments(const FunctionSchema& pure, const FunctionSchema& writing,
                    const std::vector<size_t>& skip) {
  std::vector<const c10::Argument*> rest;
  for (size_t i = 0; i < writing.arguments().size(); ++i) {
    if (std::find(skip.begin(), skip.end(), i) == skip.end()) rest.push_back(&writing.arguments()[i]);
  }
  if (rest.size() != pure.arguments().size()) return false;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i]->name() != pure.arguments()[i].name() || *rest[i]->type() != *pure.arguments()[i].type())
      return false;
  }
  return true;
}

bool is_pure(const FunctionSchema& schema, size_t results) {
  if (schema.is_mutable() || schema.returns().size() != results) return false;
  return std::all_of(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& result) {
    return result.type()->kind() == c10::TypeKind::TensorType;
  });
}

/// Overloads by operator name. Made once: it is asked for only by models that use out variants.
std::vector<std::string> overloads_of(const std::string& name) {
  static std::mutex mutex;
  static std::multimap<std::string, std::string> all;
  const std::lock_guard lock(mutex);
  if (all.empty()) {
    for (const c10::OperatorName& known : c10::Dispatcher::singleton().getAllOpNames())
      all.emplace(known.name, known.overload_name);
  }
  std::vector<std::string> overloads;
  const auto [begin, end] = all.equal_range(name);
  for (auto entry = begin; entry != end; ++entry) overloads.push_back(entry->second);
  return overloads;
}

/// bernoulli.p for bernoulli_.float, normal_functional for normal_: not all overloads are called alike.
std::optional<PureForm> pure_form_of_inplace(const c10::OperatorHandle& op,
                                             const std::vector<size_t>& written) {
  c10::OperatorName name = op.operator_name();
  if (!name.name.ends_with('_') || name.name.ends_with("__") || written.size() != 1) return std::nullopt;
  name.name.pop_back();
  const auto fits = [&](const c10::OperatorName& candidate) -> std::optional<PureForm> {
    const auto pure = c10::Dispatcher::singleton().findSchema(candidate);
    if (!pure || !is_pure(pure->schema(), 1) || !same_arguments(pure->schema(), op.schema(), {}))
      return std::nullopt;
    return PureForm{*pure, written, false};
  };
  if (auto form = fits(name)) return form;
  for (const std::string& candidate : {name.name, name.name + "_functional"}) {
    for (const std::string& overload : overloads_of(candidate))
      if (auto form = fits({candidate, overload})) return form;
  }
  return std::nullopt;
}

std::optional<PureForm> pure_form_of_out(const c10::OperatorHandle& op, const std::vector<size_t>& written) {
  for (const size_t index : written) {
    if (!op.schema().arguments()[index].is_out()) return std::nullopt;
  }
  for (const std::string& overload : overloads_of(op.operator_name().name)) {
    const auto pure = c10::Dispatcher::singleton().findSchema({op.operator_name().name, overload});
    if (pure && is_pure(pure->schema(), written.size()) &&
        same_arguments(pure->schema(), op.schema(), written))
      return PureForm{*pure, written, true};
  }
  return std::nullopt;
}

}  // namespace

bool reads_metadata_only(const c10::OperatorHandle& op) {
  const FunctionSchema& schema = op.schema();
  if (returns_tensors(schema) || schema.is_mutable()) return false;
  return !takes_tensors(schema) || !gives_number_from_data(op);
}

bool gives_number_from_data(const c10::OperatorHandle& op) {
  const FunctionSchema& schema = op.schema();
  if (schema.returns().empty() || returns_tensors(schema) || !takes_tensors(schema)) return false;
  if (op.hasTag(at::Tag::data_dependent_output)) return true;
  constexpr std::array<std::string_view, 3> kUntagged = {
      "aten::is_nonzero", "aten::_choose_qparams_per_tensor", "aten::_nested_tensor_from_mask_left_aligned"};
  const std::string& name = op.operator_name().name;
  return lists(kUntagged, name) || !name.starts_with("aten::");
}

bool gives_size_from_data(const c10::OperatorHandle& op, const std::vector<c10::IValue>& args) {
  const std::string& name = op.operator_name().name;
  if (name == "aten::index") return has_mask(args.at(1));
  if (name == "aten::one_hot") return args.at(1).toInt() < 0;
  constexpr std::array<std::string_view, 2> kUntagged = {"aten::nonzero_numpy", "aten::where"};
  if (lists(kUntagged, name) && op.schema().arguments().size() == 1) return true;
  return op.hasTag(at::Tag::dynamic_output_shape);
}

bool may_draw(const c10::OperatorHandle& op, const std::vector<c10::IValue>& args) {
  const bool foreign = !op.operator_name().name.starts_with("aten::");
  if (!foreign && !op.hasTag(at::Tag::nondeterministic_seeded)) return false;
  for (const char* name : {"train", "training"}) {
    const c10::IValue* flag = argument(op, args, name);
    if (flag && flag->isBool() && !flag->toBool()) return false;
  }
  for (const char* name : {"dropout", "dropout_p"}) {
    const c10::IValue* probability = argument(op, args, name);
    if (probability && probability->isDouble() && probability->toDouble() == 0) return false;
  }
  return true;
}

bool names_generator(const std::vector<c10::IValue>& args) {
  return std::any_of(args.begin(), args.end(), [](const c10::IValue& value) { return value.isGenerator(); });
}

bool updates_statistics(const c10::OperatorHandle& op, const std::vector<c10::IValue>& args) {
  constexpr std::array<std::string_view, 3> kNorms = {"aten::batch_norm", "aten::native_batch_norm",
                                                      "aten::instance_norm"};
  if (!lists(kNorms, op.operator_name().name)) return false;
  const c10::IValue* training = argument(op, args, "training");
  if (!training) training = argument(op, args, "use_input_stats");
  const c10::IValue* mean = argument(op, args, "running_mean");
  return training && training->toBool() && mean && mean->isTensor() && mean->toTensor().defined();
}

bool changes_geometry(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::inplace_view);
}

std::optional<PureForm> try_pure_form(const c10::OperatorHandle& op) {
  const std::vector<size_t> written = written_arguments(op.schema());
  for (const size_t index : written) {
    if (op.schema().arguments()[index].type()->kind() != c10::TypeKind::TensorType) return std::nullopt;
  }
  if (auto form = pure_form_of_inplace(op, written)) return form;
  return pure_form_of_out(op, written);
}

std::string target_of(const c10::OperatorHandle& op) {
  return c10::toString(op.operator_name());
}

}  // namespace halftone
