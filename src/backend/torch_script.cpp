#include "backend/torch_script.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <unordered_map>

#include "base/errors.h"
#include "base/log.h"
#include "graph/operators/operands.h"

namespace halftone {
namespace {

namespace jit = torch::jit;

c10::TypePtr type_of(ValueType type) {
  switch (type) {
    case ValueType::kTensor:
      return c10::TensorType::get();
    case ValueType::kInt:
      return c10::IntType::get();
    case ValueType::kFloat:
      return c10::FloatType::get();
    case ValueType::kBool:
      return c10::BoolType::get();
    case ValueType::kString:
      return c10::StringType::get();
    case ValueType::kList:
      return c10::ListType::ofTensors();
    case ValueType::kNone:
      return c10::NoneType::get();
  }
  fail(ErrorCode::kInternal, "a value of unknown type");
}

/// Translates one graph.
class Translation {
 public:
  explicit Translation(const Graph& graph) : graph_(graph) { script_.graph = std::make_shared<jit::Graph>(); }

  TorchScript run() {
    for (const GraphInput& input : graph_.inputs()) {
      values_[input.value] = script_.graph->addInput(name_of(*input.value));
      values_[input.value]->setType(type_of(input.value->type()));
    }
    for (const auto& node : graph_.nodes()) {
      try {
        translate(*node);
      } catch (const Error& error) {
        throw error.with_context("TorchScript: " + place(*node));
      }
    }
    for (const NamedArgument& result : graph_.return_node().inputs())
      script_.graph->registerOutput(operand(result.value, nullptr));
    return std::move(script_);
  }

 private:
  static std::string place(const Node& node) {
    const std::string output = node.outputs().empty() ? "" : fmt::format(" (%{})", node.output()->name());
    return fmt::format("{}{} in layer \"{}\"", node.target(), output, node.source().layer);
  }

  // TorchScript reads a name that is a number as one that was not given, and wants it to be unique.
  static std::string name_of(const Value& value) {
    std::string name = "v_" + value.name();
    for (char& c : name) {
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
    }
    return name;
  }

  void translate(const Node& node) {
    if (node.op()) return translate_operator(node);
    if (node.is("builtin::unpack")) return translate_unpack(node);
    if (node.is("builtin::getitem")) return translate_getitem(node);
    fail(ErrorCode::kUnsupported, "{}",
         node.target().starts_with("sym::")
             ? "arithmetic on sizes is not supported: capture the model with fixed sizes"
             : "subgraphs are not supported");
  }

  void translate_operator(const Node& node) {
    const c10::FunctionSchema& schema = node.op()->schema();
    // TorchScript removes what gives nothing and writes nothing.
    if (schema.returns().empty() && !schema.is_mutable())
      log(LogLevel::kWarning, "TorchScript: {}: the check is dropped", place(node));
    const std::vector<jit::Value*> operands = schema_operands<jit::Value*>(
        node, [&](const Argument& given, const c10::TypePtr& type) { return operand(given, type); },
        [&](const c10::IValue& value, const c10::TypePtr& type) { return constant(value, type); });
    jit::Node* made = create(c10::Symbol::fromQualString(schema.name()), operands, node);
    for (size_t i = 0; i < node.outputs().size(); ++i)
      made->output(i)->setType(schema.returns().at(i).type());
    // TorchScript finds the overload by the operands' types, not by its name.
    const c10::FunctionSchema* found = made->maybeSchema();
    if (!found) fail(ErrorCode::kUnsupported, "no operator takes these operands");
    if (found->overload_name() != schema.overload_name())
      fail(ErrorCode::kUnsupported, "the overload \"{}\" would be called instead", found->overload_name());
  }

  void translate_unpack(const Node& node) {
    jit::Value* list = operand(node.input(0), c10::ListType::ofTensors());
    jit::Node* made = create(c10::prim::ListUnpack, {list}, node);
    for (jit::Value* output : made->outputs()) output->setType(element_type(list->type()));
  }

  void translate_getitem(const Node& node) {
    jit::Value* list = operand(node.input(0), c10::ListType::ofTensors());
    jit::Value* index = operand(node.input(1), c10::IntType::get());
    create(c10::aten::__getitem__, {list, index}, node)->output()->setType(element_type(list->type()));
  }

  jit::Node* create(c10::Symbol kind, const std::vector<jit::Value*>& operands, const Node& node) {
    jit::Node* made = script_.graph->create(kind, operands, node.outputs().size());
    const std::string where = place(node);
    made->setSourceRange(jit::SourceRange(std::make_shared<jit::Source>(where), 0, where.size()));
    script_.graph->insertNode(made);
    for (size_t i = 0; i < node.outputs().size(); ++i) values_[node.output(i)] = made->output(i);
    return made;
  }

  jit::Value* operand(const Argument& argument, const c10::TypePtr& type) {
    const bool wants_tensor = type && type->kind() == c10::TypeKind::TensorType;
    if (const Value* value = argument.value()) {
      const bool number = value->type() == ValueType::kInt || value->type() == ValueType::kFloat ||
                          value->type() == ValueType::kBool;
      if (wants_tensor && number)
        fail(ErrorCode::kUnsupported, "%{} is a number where a tensor is needed", value->name());
      return values_.at(value);
    }
    if (const Argument::List* list = argument.list()) return list_operand(*list, type);
    return constant(constant_to_ivalue(argument, type), type);
  }

  jit::Value* list_operand(const Argument::List& list, const c10::TypePtr& type) {
    c10::TypePtr element = element_type(type);
    if (!element) element = c10::TensorType::get();
    std::vector<jit::Value*> items;
    for (const Argument& item : list) items.push_back(operand(item, element));
    return script_.graph->insertNode(script_.graph->createList(element, items))->output();
  }

  jit::Value* constant(const c10::IValue& value, const c10::TypePtr& type) {
    if (value.isTensor()) {
      script_.numbers.push_back(value);
      jit::Value* input = script_.graph->addInput();
      input->setType(c10::TensorType::get());
      return input;
    }
    if (const auto inserted = jit::tryInsertConstant(*script_.graph, value)) return *inserted;
    fail(ErrorCode::kUnsupported, "a constant {} cannot be written", value.tagKind());
  }

  const Graph& graph_;
  TorchScript script_;
  std::unordered_map<const Value*, jit::Value*> values_;
};

}  // namespace

TorchScript to_torch_script(const Graph& graph) {
  return Translation(graph).run();
}

}  // namespace halftone
