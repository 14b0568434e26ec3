#include "graph/checks/check_shapes.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <fmt/ranges.h>

#include <set>
#include <unordered_map>

#include "base/errors.h"
#include "graph/aten/dtype_text.h"
#include "graph/aten/torch_errors.h"
#include "graph/operators/meta_call.h"
#include "graph/operators/operands.h"
#include "graph/operators/sym_ops.h"
#include "graph/run/input_check.h"
#include "graph/run/subgraph_ops.h"

namespace halftone {
namespace {

/// With the whole of its memory: as_strided may reach beyond the tensor itself.
at::Tensor on_meta(const at::Tensor& tensor) {
  const auto options = at::TensorOptions(tensor.scalar_type()).device(at::kMeta);
  if (tensor.is_contiguous() && tensor.storage().nbytes() == tensor.nbytes())
    return at::empty(tensor.sizes(), options);
  const auto elements = static_cast<int64_t>(tensor.storage().nbytes() / tensor.element_size());
  return at::empty({elements}, options).as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

/// The meta device has no bounds.
void require_inside(const at::Tensor& view) {
  const auto bytes = at::detail::computeStorageNbytes(view.sizes(), view.strides(), view.element_size(),
                                                      static_cast<size_t>(view.storage_offset()));
  if (view.numel() > 0 && bytes > view.storage().nbytes())
    fail(ErrorCode::kInvalidArgument, "reaches {} bytes into a memory of {}", bytes, view.storage().nbytes());
}

bool is_dense(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_quantized();
}

/// Nothing if a symbol is not bound.
std::optional<int64_t> try_number(const SymExpr& expression, const SymbolBindings& bindings) {
  if (expression.is_constant()) return expression.constant();
  if (expression.is_symbol()) {
    const auto found = bindings.find(expression.symbol());
    return found == bindings.end() ? std::nullopt : std::optional(found->second);
  }
  std::set<std::string> names;
  expression.collect_symbols(names);
  for (const std::string& name : names) {
    if (!bindings.contains(name)) return std::nullopt;
  }
  return expression.evaluate(bindings);
}

std::optional<std::vector<int64_t>> try_sizes(const TensorMeta& meta, const SymbolBindings& bindings) {
  std::vector<int64_t> sizes;
  sizes.reserve(meta.sizes.size());
  for (const SymExpr& size : meta.sizes) {
    const auto number = try_number(size, bindings);
    if (!number) return std::nullopt;
    sizes.push_back(*number);
  }
  return sizes;
}

std::string shape_text(c10::ScalarType dtype, c10::IntArrayRef sizes) {
  return fmt::format("{} [{}]", dtype_text(dtype), fmt::join(sizes, ", "));
}

/// Nothing if none are declared, one cannot be evaluated or is negative.
std::optional<std::vector<int64_t>> try_strides(const TensorMeta& meta, const SymbolBindings& bindings) {
  if (meta.strides.empty() || meta.strides.size() != meta.sizes.size()) return std::nullopt;
  std::vector<int64_t> strides;
  for (const SymExpr& stride : meta.strides) {
    const auto step = try_number(stride, bindings);
    if (!step || *step < 0) return std::nullopt;
    strides.push_back(*step);
  }
  return strides;
}

/// A value that is not in the map is not known.
class ShapeCheck {
 public:
  ShapeCheck(const Graph& graph, const SymbolBindings& bindings) : graph_(graph), bindings_(bindings) {}

  void bind(const Value* value, const c10::IValue& given) {
    if (!given.isTensor()) {
      values_[value] = given;
    } else if (is_dense(given.toTensor())) {
      values_[value] = on_meta(given.toTensor());
    }
  }

  /// As it is declared, where that can be evaluated.
  void believe(const Value& value) {
    if (value.type() == ValueType::kInt && value.expression()) {
      if (const auto number = try_number(*value.expression(), bindings_)) values_[&value] = *number;
    }
    if (value.type() != ValueType::kTensor || !value.meta()) return;
    const auto sizes = try_sizes(*value.meta(), bindings_);
    if (!sizes) return;
    const auto options = at::TensorOptions(value.meta()->dtype).device(at::kMeta);
    const auto strides = try_strides(*value.meta(), bindings_);
    const at::Tensor tensor =
        strides ? at::empty_strided(*sizes, *strides, options) : at::empty(*sizes, options);
    require_memory_for(tensor);
    values_[&value] = tensor;
  }

  void run() {
    for (const auto& node : graph_.nodes()) {
      try {
        visit(*node);
      } catch (const std::exception& error) {
        fail(ErrorCode::kInvalidArgument, "{}: {}", place_of_node(*node), error_text(error));
      }
    }
  }

 private:
  void visit(const Node& node) {
    if (node.op() == nullptr && try_subgraph_function(node.target()) != nullptr)
      return visit_control_flow(node);
    std::vector<c10::IValue> operands;
    if (!collect_operands(node, operands)) return believe(node);
    if (node.op() != nullptr) {
      MetaAnswer answer = ask_operator(node, std::move(operands));
      if (answer.kind == MetaAnswer::Kind::kUnknown) return believe(node);
      if (answer.kind == MetaAnswer::Kind::kRefused) fail(ErrorCode::kInvalidArgument, "{}", answer.reason);
      if (node.is("aten::as_strided")) require_inside(answer.results.at(0).toTensor());
      return settle(node, answer.results);
    }
    if (const SymFunction function = try_sym_function(node.target()))
      return settle(node, {function(operands)});
    if (node.is("builtin::unpack") || node.is("builtin::getitem")) return take_apart(node, operands);
    believe(node);
  }

  /// False if an operand is not known.
  bool collect_operands(const Node& node, std::vector<c10::IValue>& operands) const {
    if (node.op() == nullptr) {
      for (const NamedArgument& input : node.inputs()) {
        if (!add_operand(input.value, nullptr, operands)) return false;
      }
      return true;
    }
    for (const c10::Argument& expected : node.op()->schema().arguments()) {
      const Argument* given = node.try_input(expected.name());
      if (given != nullptr) {
        if (!add_operand(*given, expected.type(), operands)) return false;
      } else {
        operands.push_back(expected.default_value().value_or(c10::IValue()));
      }
    }
    return true;
  }

  bool add_operand(const Argument& argument, const c10::TypePtr& type,
                   std::vector<c10::IValue>& operands) const {
    if (argument.get_if<std::shared_ptr<Graph>>() != nullptr) return false;
    if (const Value* value = argument.value()) {
      const auto found = values_.find(value);
      if (found == values_.end()) return false;
      const bool number = type && type->kind() == c10::TypeKind::TensorType && found->second.isScalar();
      operands.push_back(number ? number_to_tensor(found->second) : found->second);
      return true;
    }
    const Argument::List* list = argument.list();
    if (list == nullptr) {
      operands.push_back(constant_to_ivalue(argument, type));
      return true;
    }
    std::vector<c10::IValue> items;
    for (const Argument& item : *list) {
      if (!add_operand(item, element_type(type), items)) return false;
    }
    operands.push_back(list_to_ivalue(std::move(items), type));
    return true;
  }

  /// What a subgraph of cond, while_loop, map or scan gets; nothing if that is not known.
  using Given = std::vector<std::optional<c10::IValue>>;

  void visit_control_flow(const Node& node) {
    // The list whose tensors are given slice by slice; what each step gives is stacked, carried values apart.
    const size_t sliced = node.is("builtin::map") ? 0 : node.is("builtin::scan") ? 1 : SIZE_MAX;
    std::vector<const Graph*> graphs;
    Given given;
    std::optional<int64_t> length;
    size_t lists = 0, carried = 0;
    for (const NamedArgument& input : node.inputs()) {
      if (const auto* graph = input.value.get_if<std::shared_ptr<Graph>>()) graphs.push_back(graph->get());
      const Argument::List* list = input.value.list();
      if (list == nullptr) continue;
      if (lists == 0) carried = list->size();
      for (const Argument& item : *list) {
        given.push_back(known_tensor(item));
        if (lists == sliced) length = take_slice(given.back());
      }
      ++lists;
    }
    if (sliced == 0) carried = 0;
    for (size_t i = 0; i < graphs.size(); ++i) {
      ShapeCheck inner(*graphs[i], bindings_);
      inner.run_with(given);
      const bool is_condition = i == 0 && node.is("builtin::while_loop");
      if (!is_condition) compare_outputs(node, inner, sliced == SIZE_MAX ? SIZE_MAX : carried, length);
    }
    believe(node);
  }

  /// Numbers are left out: loops change them from step to step.
  std::optional<c10::IValue> known_tensor(const Argument& item) const {
    const auto found = item.value() ? values_.find(item.value()) : values_.end();
    if (found == values_.end() || !found->second.isTensor()) return std::nullopt;
    return found->second;
  }

  /// Replaces a sequence by its first element and gives its length; neither is known of an empty one.
  static std::optional<int64_t> take_slice(std::optional<c10::IValue>& sequence) {
    const at::Tensor tensor = sequence ? sequence->toTensor() : at::Tensor();
    sequence.reset();
    if (!tensor.defined() || tensor.dim() == 0 || tensor.size(0) == 0) return std::nullopt;
    sequence = tensor.select(0, 0);
    return tensor.size(0);
  }

  void run_with(const Given& given) {
    for (size_t i = 0; i < given.size(); ++i) {
      const Value& input = *graph_.inputs().at(i).value;
      if (!given[i]) {
        believe(input);
        continue;
      }
      const std::string difference = difference_from_declared(input, given[i]->toTensor(), bindings_);
      if (!difference.empty())
        fail(ErrorCode::kInvalidArgument, "input %{} of its subgraph {}", input.name(), difference);
      values_[&input] = *given[i];
    }
    run();
  }

  /// The declared results of the node with those of a subgraph; from `first_stacked` on, of `length` steps.
  void compare_outputs(const Node& node, const ShapeCheck& inner, size_t first_stacked,
                       std::optional<int64_t> length) const {
    const auto& results = inner.graph_.return_node().inputs();
    for (size_t i = 0; i < std::min(results.size(), node.outputs().size()); ++i) {
      auto result = inner.known_tensor(results[i].value);
      if (!result || (i >= first_stacked && !length) || node.output(i)->users().empty()) continue;
      if (i >= first_stacked) {
        const at::Tensor step = result->toTensor();
        std::vector<int64_t> sizes = step.sizes().vec();
        sizes.insert(sizes.begin(), *length);
        result = at::empty(sizes, step.options());
      }
      compare(*node.output(i), *result);
    }
  }

  void take_apart(const Node& node, const std::vector<c10::IValue>& operands) {
    if (!operands.at(0).isTensorList()) return believe(node);
    const std::vector<at::Tensor> pieces = operands[0].toTensorVector();
    std::vector<c10::IValue> results;
    if (node.is("builtin::unpack")) {
      results.assign(pieces.begin(), pieces.end());
    } else {
      const auto count = static_cast<int64_t>(pieces.size());
      const int64_t index = operands.at(1).toInt(), place = index < 0 ? index + count : index;
      if (place < 0 || place >= count)
        fail(ErrorCode::kInvalidArgument, "element {} of a list of {}", index, count);
      results.emplace_back(pieces[static_cast<size_t>(place)]);
    }
    settle(node, results);
  }

  void settle(const Node& node, const std::vector<c10::IValue>& results) {
    if (results.size() != node.outputs().size())
      fail(ErrorCode::kInvalidArgument, "gives {} values where the graph expects {}", results.size(),
           node.outputs().size());
    for (size_t i = 0; i < results.size(); ++i) {
      const Value& output = *node.output(i);
      if (results[i].isTensor() && !results[i].toTensor().defined()) continue;
      // Results without a reader may differ: some operators return those in other sizes than they declare.
      if (!output.users().empty()) compare(output, results[i]);
      values_[&output] = as_laid_out(node, i, results[i]);
    }
  }

  /// Meta functions know sizes, but not always the order in which the kernel lays a new tensor out: attention
  /// gives its heads behind its rows. Views of it need the order that the graph declares.
  c10::IValue as_laid_out(const Node& node, size_t index, const c10::IValue& result) const {
    const auto& meta = node.output(index)->meta();
    if (node.op() == nullptr || !result.isTensor() || !meta) return result;
    const auto& returns = node.op()->schema().returns();
    if (index < returns.size() && returns[index].alias_info() != nullptr) return result;
    const at::Tensor& tensor = result.toTensor();
    const auto strides = try_strides(*meta, bindings_);
    if (!strides || tensor.strides() == c10::IntArrayRef(*strides)) return result;
    return at::empty_strided(tensor.sizes(), *strides, tensor.options());
  }

  void compare(const Value& output, const c10::IValue& result) const {
    if (result.isTensor()) {
      require_memory_for(result.toTensor());
      const std::string difference = difference_from_declared(output, result.toTensor(), bindings_);
      if (!difference.empty()) fail(ErrorCode::kInvalidArgument, "{}", difference);
    } else if (result.isInt() && output.expression()) {
      const auto declared = try_number(*output.expression(), bindings_);
      if (declared && *declared != result.toInt())
        fail(ErrorCode::kInvalidArgument, "is declared as {} = {}, the operator gives {}",
             output.expression()->to_string(), *declared, result.toInt());
    }
  }

  void believe(const Node& node) {
    for (const Value* output : node.outputs()) believe(*output);
  }

  const Graph& graph_;
  const SymbolBindings& bindings_;
  std::unordered_map<const Value*, c10::IValue> values_;
};

void check_with(const GraphModule& module, const std::vector<c10::IValue>* inputs,
                const SymbolBindings& bindings) {
  const at::NoGradGuard no_grad;
  ShapeCheck check(module.graph(), bindings);
  const auto tensors = module.tensors();
  size_t user = 0;
  for (const GraphInput& input : module.graph().inputs()) {
    if (input.kind == InputKind::kUser) {
      inputs != nullptr ? check.bind(input.value, inputs->at(user)) : check.believe(*input.value);
      ++user;
    } else if (const auto found = tensors->find(input.target); found != tensors->end()) {
      check.bind(input.value, found->second);
    }
  }
  check.run();
}

}  // namespace

std::string describe_tensor(const at::Tensor& tensor) {
  return shape_text(tensor.scalar_type(), tensor.sizes());
}

std::string difference_from_declared(const Value& declared, const at::Tensor& computed,
                                     const SymbolBindings& bindings) {
  if (!declared.meta()) return {};
  const TensorMeta& meta = *declared.meta();
  const auto sizes = try_sizes(meta, bindings);
  if (!sizes) return {};
  for (const SymExpr& stride : meta.strides) {
    const auto step = try_number(stride, bindings);
    if (step && *step < 0)
      return fmt::format("is declared with the stride {}, and none may be negative", *step);
  }
  if (meta.dtype == computed.scalar_type() && computed.sizes() == c10::IntArrayRef(*sizes)) return {};
  return fmt::format("is declared as {}, the operator gives {}", shape_text(meta.dtype, *sizes),
                     describe_tensor(computed));
}

void check_shapes(const GraphModule& module, const std::vector<c10::IValue>& inputs,
                  const SymbolBindings& bindings) {
  check_with(module, &inputs, bindings);
}

void check_shapes(const GraphModule& module) {
  const InputCheck check(module);
  if (module.sample_inputs.empty() && !module.input_names().empty()) return check_with(module, nullptr, {});
  SymbolBindings bindings;
  try {
    bindings = check.check(module.sample_inputs);
  } catch (const Error&) {
    return check_with(module, nullptr, {});  // samples that no call would be allowed to have
  }
  check_shapes(module, module.sample_inputs, bindings);
}

}  // namespace halftone
