// The graph that everything in Halftone reads and rewrites: nodes in execution order, values in
// single-assignment form.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>
#include <c10/util/complex.h>

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/graph/symbolic.h"

namespace c10 {
class OperatorHandle;
}

namespace halftone {

class Graph;
class Node;

/// The type of a value at run time. kList: a list of tensors, as split returns; `builtin::unpack` takes it
/// apart.
enum class ValueType { kTensor, kInt, kFloat, kBool, kString, kList, kNone };
HALFTONE_API std::string_view to_string(ValueType type);

/// The metadata of a tensor, known before it exists. Sizes and strides may be symbolic.
struct HALFTONE_API TensorMeta {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<SymExpr> sizes;
  std::vector<SymExpr> strides;  ///< empty: not known
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  bool requires_grad = false;
  bool operator==(const TensorMeta&) const = default;
};

/// One single assignment: an input of the graph or an output of a node. Owned by the graph.
class HALFTONE_API Value {
 public:
  const std::string& name() const { return name_; }  ///< unique in the graph, without the leading %
  ValueType type() const { return type_; }
  const std::optional<TensorMeta>& meta() const { return meta_; }           ///< for tensors, where known
  const std::optional<SymExpr>& expression() const { return expression_; }  ///< for sizes, where known
  Node* producer() const { return producer_; }  ///< nullptr for inputs of the graph
  size_t index() const { return index_; }       ///< which output of the producer, or which input
  /// The nodes that use this value, one entry for each use, the graph's return node among them.
  const std::vector<Node*>& users() const { return users_; }
  Graph& graph() const { return *graph_; }

  void set_meta(std::optional<TensorMeta> meta) { meta_ = std::move(meta); }
  void set_expression(std::optional<SymExpr> expression) { expression_ = std::move(expression); }
  void set_type(ValueType type) { type_ = type; }

 private:
  friend class Graph;
  friend class Node;
  Value() = default;
  std::string name_;
  ValueType type_ = ValueType::kTensor;
  std::optional<TensorMeta> meta_;
  std::optional<SymExpr> expression_;
  Node* producer_ = nullptr;
  size_t index_ = 0;
  std::vector<Node*> users_;
  Graph* graph_ = nullptr;
};

/// An operand: a value, a constant, a subgraph (of cond, while_loop, …), or a list of operands.
class HALFTONE_API Argument {
 public:
  struct None {
    bool operator==(const None&) const = default;
  };
  using List = std::vector<Argument>;
  using Data =
      std::variant<None, Value*, bool, int64_t, double, c10::complex<double>, std::string, c10::ScalarType,
                   c10::Layout, c10::MemoryFormat, c10::Device, std::shared_ptr<Graph>, List>;

  Argument() = default;
  template <typename T>
  requires std::constructible_from<Data, T> &&
      (!std::same_as<std::remove_cvref_t<T>, Argument>)Argument(T value)
      : data_(std::move(value)) {}                          // NOLINT(google-explicit-constructor)
  Argument(int value) : data_(int64_t{value}) {}            // NOLINT(google-explicit-constructor)
  Argument(const char* text) : data_(std::string(text)) {}  // NOLINT(google-explicit-constructor)

  const Data& data() const { return data_; }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  Value* value() const;  ///< nullptr if it is not a value
  template <typename T>
  const T* get_if() const {
    return std::get_if<T>(&data_);
  }
  const List* list() const { return std::get_if<List>(&data_); }
  /// A constant integer, also from a boolean-free list element; nothing for values.
  std::optional<int64_t> as_int() const;

  bool operator==(const Argument& other) const;

 private:
  friend class Node;
  Data data_;
};

struct NamedArgument {
  std::string name;  ///< of the schema; empty for built-ins
  Argument value;
  bool operator==(const NamedArgument&) const = default;
};

/// Where a node comes from: the layer's qualified name ("encoder.layer.0.attention") and the type of its
/// module.
struct Source {
  std::string layer;
  std::string module_type;
  bool operator==(const Source&) const = default;
};

/// One operation: an operator of the dispatcher ("aten::add.Tensor") or a built-in ("sym::mul",
/// "builtin::cond"). Arguments that equal the schema's defaults may be absent. Owned by the graph.
class HALFTONE_API Node {
 public:
  const std::string& target() const { return *target_; }
  const c10::OperatorHandle* op() const { return op_; }  ///< nullptr for built-ins and for the return node
  bool is(std::string_view target) const { return *target_ == target; }
  const std::vector<NamedArgument>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  Value* output(size_t index = 0) const { return outputs_.at(index); }
  const Source& source() const { return *source_; }
  void set_source(Source source) { source_ = std::make_shared<const Source>(std::move(source)); }
  void share_source(const Node& other) { source_ = other.source_; }  ///< the same, without a copy
  Graph& graph() const { return *graph_; }

  /// The argument of that schema name; nullptr if it was not given.
  const Argument* try_input(std::string_view name) const;
  const Argument& input(size_t index) const { return inputs_.at(index).value; }

  void set_input(size_t index, Argument value);
  void set_inputs(std::vector<NamedArgument> inputs);
  /// In every operand, nested ones too.
  void replace_uses_of(Value* old_value, Value* new_value);
  /// Every value among the operands, nested ones too, in order, one entry for each use.
  std::vector<Value*> input_values() const;

 private:
  friend class Graph;
  Node() = default;
  void require_values() const;
  void add_uses();
  void drop_uses();
  // Copies of a graph share names and sources: they are most of a node's memory.
  const std::string* target_ = nullptr;  // kept for ever
  const c10::OperatorHandle* op_ = nullptr;
  std::vector<NamedArgument> inputs_;
  std::vector<Value*> outputs_;
  std::shared_ptr<const Source> source_;
  Graph* graph_ = nullptr;
  std::list<std::unique_ptr<Node>>::iterator position_;
};

enum class InputKind { kUser, kParameter, kBuffer, kNonPersistentBuffer, kConstant };
HALFTONE_API std::string_view to_string(InputKind kind);

struct GraphInput {
  Value* value = nullptr;
  InputKind kind = InputKind::kUser;
  /// Qualified name of the parameter, buffer or constant; the argument's name for user inputs.
  std::string target;
  /// A user input that the exporter baked in: a call must give this constant.
  std::optional<Argument> fixed = std::nullopt;
};

enum class OutputKind { kUser, kBufferMutation, kInputMutation };
HALFTONE_API std::string_view to_string(OutputKind kind);

struct GraphOutput {
  OutputKind kind = OutputKind::kUser;
  /// The buffer's qualified name, or the mutated user input's name; empty for user outputs.
  std::string target;
  bool operator==(const GraphOutput&) const = default;
};

/// Description of an output of a new node.
struct OutputSpec {
  std::string name;  ///< a hint: made unique by a suffix; empty: "v0", "v1", …
  ValueType type = ValueType::kTensor;
  std::optional<TensorMeta> meta = std::nullopt;
  std::optional<SymExpr> expression = std::nullopt;
};

/// Owns its nodes and values; pointers to them stay valid until they are erased. Not thread-safe while it is
/// changed; any number of threads may read it. Subgraphs are closed: they see only their own inputs.
class HALFTONE_API Graph {
 public:
  using NodeList = std::list<std::unique_ptr<Node>>;

  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// A deep copy, subgraphs too.
  std::unique_ptr<Graph> clone() const;

  const std::vector<GraphInput>& inputs() const { return inputs_; }
  Value* add_input(OutputSpec spec, InputKind kind = InputKind::kUser, std::string target = {});
  /// Only an input without uses (kState otherwise).
  void erase_input(size_t index);
  /// The same for several, in ascending order; one walk over the inputs. kState where one has uses, and none
  /// goes.
  void erase_inputs(const std::vector<size_t>& indices);
  void set_input_target(size_t index, InputKind kind, std::string target);
  void set_input_fixed(size_t index, std::optional<Argument> constant) {
    inputs_.at(index).fixed = std::move(constant);
  }

  /// In execution order, without the return node.
  const NodeList& nodes() const { return nodes_; }
  /// The node whose operands are the graph's outputs; its target is "return".
  Node& return_node() const { return *return_node_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  void set_outputs(std::vector<Argument> values, std::vector<GraphOutput> outputs);
  const Argument& output_value(size_t index) const { return return_node_->inputs().at(index).value; }

  /// Before `before`, or at the end if that is nullptr. kUnsupported if no operator or built-in has
  /// that name.
  Node* insert(Node* before, std::string_view target, std::vector<NamedArgument> inputs,
               std::vector<OutputSpec> outputs, Source source = {});
  Node* append(std::string_view target, std::vector<NamedArgument> inputs, std::vector<OutputSpec> outputs,
               Source source = {}) {
    return insert(nullptr, target, std::move(inputs), std::move(outputs), std::move(source));
  }
  /// At the end, with the operator and the source of `model`, which may belong to another graph.
  Node* append_like(const Node& model, std::vector<NamedArgument> inputs, std::vector<OutputSpec> outputs);
  void replace_all_uses(Value* old_value, Value* new_value);
  void move_before(Node* node, Node* before);
  /// Only a node whose outputs have no uses (kState otherwise).
  void erase(Node* node);
  /// Erases nodes without uses and without side effects; returns how many.
  size_t erase_dead_nodes();
  /// Reorders the nodes so that definitions stand before uses, keeping the given order where it is free.
  /// kInvalidArgument if there is a cycle.
  void sort_topologically();

  Value* try_value(std::string_view name) const;  ///< nullptr if there is none
  Value* value(std::string_view name) const;      ///< throws kNotFound

  /// Renames a value; kInvalidArgument if the name is taken.
  void rename(Value* value, std::string name);

 private:
  friend class Node;
  Value* new_value(OutputSpec spec, Node* producer, size_t index);
  void delete_value(Value* value);
  Node* add(Node* before, std::unique_ptr<Node> node, std::vector<NamedArgument> inputs,
            std::vector<OutputSpec> outputs);
  void reserve_values(size_t count);
  struct Names;
  NodeList nodes_;
  std::unique_ptr<Node> return_node_;
  std::vector<GraphInput> inputs_;
  std::vector<GraphOutput> outputs_;
  std::unique_ptr<Names> names_;
};

/// Every way in which the graph is broken, one sentence each, naming node and value; empty: sound. Checks:
/// use before definition, values of another graph, use lists that disagree with operands, operands that the
/// schema does not take, missing operands, wrong number of outputs, outputs whose kind has no target,
/// duplicate targets, subgraphs. (Names cannot be: a graph keeps its values by name.)
HALFTONE_API std::vector<std::string> lint(const Graph& graph);
/// Throws kInvalidArgument with all findings if there are any; `context` stands before them.
HALFTONE_API void lint_or_throw(const Graph& graph, std::string_view context);

/// The text form. parse_graph(print_graph(g)) prints the same text again and holds the same graph.
HALFTONE_API std::string print_graph(const Graph& graph);
/// Throws kInvalidArgument with line and column.
HALFTONE_API std::unique_ptr<Graph> parse_graph(std::string_view text);
/// Graphviz.
HALFTONE_API std::string print_dot(const Graph& graph);

/// Whether the node must run even if its outputs are not used: it mutates an operand, asserts, or draws
/// random numbers.
HALFTONE_API bool has_side_effects(const Node& node);

}  // namespace halftone
