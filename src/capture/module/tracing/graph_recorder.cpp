#include "capture/module/tracing/graph_recorder.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_strided.h>

#include "base/errors.h"
#include "capture/module/tracing/geometry.h"
#include "graph/operators/operands.h"
#include "graph/operators/operators.h"
#include "graph/rewrite/edit.h"

namespace halftone {
namespace {

/// "aten::add.Tensor" → "add": what the values of a node are called.
std::string name_hint(std::string_view target) {
  if (const size_t colon = target.rfind(':'); colon != std::string_view::npos)
    target.remove_prefix(colon + 1);
  return std::string(target.substr(0, target.find('.')));
}

c10::IValue without_data(const Argument& argument, const c10::TypePtr& type) {
  if (const Value* value = argument.value()) {
    const TensorMeta& meta = *value->meta();
    return at::empty_strided(constant_sizes(meta.sizes), constant_sizes(meta.strides),
                             at::dtype(meta.dtype).device(c10::kMeta));
  }
  const Argument::List* list = argument.list();
  if (!list) return constant_to_ivalue(argument, type);
  std::vector<c10::IValue> items;
  for (const Argument& item : *list) items.push_back(without_data(item, element_type(type)));
  return list_to_ivalue(std::move(items), type);
}

void collect_values(const Argument& argument, std::vector<const Value*>& values) {
  if (const Value* value = argument.value()) values.push_back(value);
  if (const auto* list = argument.list()) {
    for (const Argument& item : *list) collect_values(item, values);
  }
}

std::vector<const Value*> values_of(const std::vector<NamedArgument>& inputs) {
  std::vector<const Value*> values;
  for (const NamedArgument& input : inputs) collect_values(input.value, values);
  return values;
}

bool is_inside(std::string_view layer, std::string_view scope) {
  return common_layer(layer, scope) == scope;
}

}  // namespace

Value* GraphRecorder::add_input(const at::Tensor& tensor, InputKind kind, std::string target,
                                const std::string* layer) {
  std::string hint = target;
  for (char& letter : hint) letter = std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  if (kind == InputKind::kParameter) hint = "p_" + hint;
  if (kind == InputKind::kBuffer) hint = "b_" + hint;
  Value* value = graph_.add_input({.name = hint, .meta = tensor_meta(tensor)}, kind, std::move(target));
  const bool constant = kind == InputKind::kConstant;
  origins_[value] = {!constant, kind == InputKind::kUser, layer};
  return value;
}

Value* GraphRecorder::add_input(OutputSpec spec, std::string target) {
  Value* value = graph_.add_input(std::move(spec), InputKind::kUser, std::move(target));
  origins_[value] = {true, true};
  return value;
}

const std::string* GraphRecorder::layer_read_by(const std::vector<NamedArgument>& inputs) const {
  for (const Value* value : values_of(inputs)) {
    const Origin& from = origins_.at(value);
    if (from.layer) return from.layer;
  }
  return nullptr;
}

Origin GraphRecorder::origin_of(const std::vector<NamedArgument>& inputs) const {
  Origin origin;
  for (const Value* value : values_of(inputs)) {
    const Origin& from = origins_.at(value);
    origin.data = origin.data || from.data;
    origin.activation = origin.activation || from.activation || (from.data && !from.layer);
    if (!origin.layer) origin.layer = from.layer;
  }
  if (origin.activation) origin.layer = nullptr;
  return origin;
}

bool GraphRecorder::depends_on_data(const std::vector<NamedArgument>& inputs) const {
  return origin_of(inputs).data;
}

Node* GraphRecorder::append(std::string_view target, std::vector<NamedArgument> inputs,
                            std::vector<OutputSpec> outputs) {
  const Origin origin = origin_of(inputs);
  const std::string* layer = layer_read_by(inputs);
  const std::string* scope = scopes_.empty() ? nullptr : scopes_.back();
  if (scope && (!layer || !is_inside(*layer, *scope))) layer = scope;
  for (OutputSpec& output : outputs) {
    if (output.name.empty()) output.name = name_hint(target);
  }
  Node* node = graph_.append(target, std::move(inputs), std::move(outputs));
  for (const Value* value : node->outputs()) origins_[value] = origin;
  if (layer) layers_[node] = last_layer_ = layer;
  return node;
}

Value* GraphRecorder::derive(std::string_view target, std::vector<NamedArgument> inputs) {
  const c10::OperatorHandle* op = try_operator(target);
  if (!op) fail(ErrorCode::kInternal, "capture needs the operator {}", target);
  torch::jit::Stack stack;
  for (const c10::Argument& expected : op->schema().arguments()) {
    const auto given = std::find_if(inputs.begin(), inputs.end(), [&](const NamedArgument& input) {
      return input.name == expected.name();
    });
    stack.push_back(given != inputs.end() ? without_data(given->value, expected.type())
                                          : expected.default_value().value_or(c10::IValue()));
  }
  op->callBoxed(stack);
  TensorMeta meta = tensor_meta(stack.at(0).toTensor());
  meta.device = c10::Device(c10::kCPU);
  return append(target, std::move(inputs), {{.meta = std::move(meta)}})->output();
}

const std::vector<Value*>& GraphRecorder::unpack(Value* list, const std::vector<at::Tensor>& elements) {
  const auto known = unpacked_.find(list);
  if (known != unpacked_.end()) return known->second;
  std::vector<OutputSpec> specs;
  for (const at::Tensor& element : elements) {
    specs.push_back({.name = list->name() + "_item"});
    if (element.defined()) specs.back().meta = tensor_meta(element);
  }
  return unpacked_[list] = append("builtin::unpack", {{"", list}}, std::move(specs))->outputs();
}

std::string GraphRecorder::place(const std::vector<NamedArgument>& inputs) const {
  if (const std::string* layer = layer_read_by(inputs)) return fmt::format("layer \"{}\"", *layer);
  if (!scopes_.empty() && scopes_.back()) return fmt::format("layer \"{}\"", *scopes_.back());
  if (layers_.empty()) return "the model, before any of its layers";
  return fmt::format("the model, after layer \"{}\"", *last_layer_);
}

void GraphRecorder::attribute_layers() {
  const std::vector<Node*> nodes = snapshot(graph_);
  std::vector<const std::string*> after(nodes.size(), nullptr);
  const std::string* next = nullptr;
  for (size_t i = nodes.size(); i-- > 0;) {
    const auto known = layers_.find(nodes[i]);
    if (known != layers_.end()) next = known->second;
    after[i] = next;
  }
  const std::string* before = nullptr;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto known = layers_.find(nodes[i]);
    if (known != layers_.end()) before = known->second;
    std::string layer = known != layers_.end() ? *known->second
                        : before && after[i]   ? common_layer(*before, *after[i])
                                               : std::string();
    if (i > 0 && nodes[i - 1]->source().layer == layer) {
      nodes[i]->share_source(*nodes[i - 1]);
      continue;
    }
    std::string type = names_.type_of(layer);
    nodes[i]->set_source({std::move(layer), std::move(type)});
  }
}

void GraphRecorder::enter_scope(const torch::nn::Module* module) {
  const std::string* layer = names_.try_layer_of(module);
  if (!layer && !scopes_.empty()) layer = scopes_.back();
  scopes_.push_back(layer);
}

void GraphRecorder::leave_scope() {
  scopes_.pop_back();
}

}  // namespace halftone
