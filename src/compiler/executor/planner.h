// Turns a graph and concrete inputs into a Plan.
#pragma once

#include <ATen/core/function_schema.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "compiler/executor/plan.h"
#include "compiler/executor/state_readers.h"
#include "graph/operators/meta_call.h"
#include "halftone/graph/graph_module.h"

namespace halftone::compiler {

/// The graph cannot be planned ahead (a size depends on data, …): it runs in the interpreter. The message
/// says why.
class NotPlannable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What the planner knows of a value: a tensor, a number (or string, None), or a list of tensors.
struct Planned {
  std::variant<std::monostate, Slot, c10::IValue, std::vector<Slot>> data;
  const Slot* slot() const { return std::get_if<Slot>(&data); }
  const c10::IValue* number() const { return std::get_if<c10::IValue>(&data); }
  const std::vector<Slot>* list() const { return std::get_if<std::vector<Slot>>(&data); }
};

/// An operand of an operator that the dispatcher runs.
struct StepOperand {
  enum class Kind { kConstant, kSlot, kList } kind = Kind::kConstant;
  c10::IValue constant;
  Slot slot;
  c10::TypePtr type;  ///< of kList
  std::vector<StepOperand> items;
};

/// What a plan is made for.
struct PlanInputs {
  /// One for each input of the graph: a tensor (sizes, strides and dtype count, not the data) or a number.
  /// Constants are the tensors themselves.
  std::vector<c10::IValue> values;
  std::vector<bool> is_constant;
  SymbolBindings bindings;
  int threads = 1;
  ConvChoice convolutions = ConvChoice::kHalftone;
};

/// A tensor seen as rows × k; strides count elements.
struct Rows {
  Operand operand;
  int64_t rows = 0;
  int64_t k = 0;
  int64_t stride = 0;
};
/// Nothing if leading dimensions cannot be merged or the last one is not dense.
std::optional<Rows> try_rows(const Slot& slot);

class Planner {
 public:
  Planner(const Graph& graph, const PlanInputs& inputs);

  std::unique_ptr<Plan> make();

  // For emitters: what the node at hand has.

  /// The tensor argument of that schema name; nullptr if it is None or absent.
  const Slot* tensor(const Node& node, std::string_view name) const;
  /// The tensor that a value is; nullptr if it is a number or a list.
  const Slot* tensor_of(const Value* value) const { return planned(value).slot(); }
  /// The tensors of a Tensor[] argument.
  std::vector<Slot> tensor_list(const Node& node, std::string_view name) const;
  /// The number, string or list of numbers of that schema name, the schema's default if it was not given.
  c10::IValue constant(const Node& node, std::string_view name) const;
  /// The weight behind a slot, or an undefined tensor where it is computed or may change.
  at::Tensor weight(const Slot& slot) const;
  bool is_used(const Value* value) const { return !value->users().empty(); }
  /// Sizes of an output as its meta says for these inputs.
  std::vector<int64_t> sizes_of(const Value* value) const;
  /// Strides of an output as its meta says, where they are those of a dense tensor; contiguous ones
  /// otherwise.
  std::vector<int64_t> dense_strides_of(const Value* value) const;
  /// A new contiguous tensor for an output of the node at hand.
  Operand define(const Value* value, c10::ScalarType dtype, c10::IntArrayRef sizes);
  /// The same with strides of the caller's choice; they must be dense.
  Operand define_strided(const Value* value, c10::ScalarType dtype, c10::IntArrayRef sizes,
                         c10::IntArrayRef strides);
  /// A new float32 tensor [n, c, …] with the channels last. If a cat of channels reads it, and all who
  /// read it take pixels at any distance, it lies in that cat's result already: its last stride says how far
  /// apart the pixels are.
  Slot define_channels_last(const Value* value, c10::IntArrayRef sizes);
  /// The result of a cat that define_channels_last has put something into; false if there is none.
  bool try_define_cat(const Value* value);
  /// The same for a result that the step at hand gets from the dispatcher, whatever memory that is; `reason`
  /// goes to the report.
  Slot define_by_aten(const Node& node, const std::string& reason);
  /// The step at hand may write `result`, an output that it defined, over the operand at `source`, element by
  /// element: that memory is reused if nothing else reads the operand afterwards.
  void may_overwrite(const Operand& result, const Operand& source);
  /// For an output that is the new content of `state`, a tensor of the session's that the node reads: makes the
  /// state's own memory that of the output, so that the step writes only what changes. False, nothing defined,
  /// where something could still read the old content.
  bool try_define_over_state(const Node& node, const Value* output, const Value* state);
  /// Memory that the step at hand alone uses.
  Operand scratch(size_t bytes);
  int threads() const { return inputs_.threads; }
  ConvChoice convolutions() const { return inputs_.convolutions; }
  /// A line for the report: what was chosen, and why.
  void note_choice(std::string line) { plan_->choices.push_back(std::move(line)); }
  /// A row-major copy, planned before the step at hand.
  Slot contiguous_copy(const Slot& slot, const Node& node);
  /// The slot as rows of its last dimension, neighbours in memory; a copy is planned first where its strides
  /// are others.
  Rows rows(const Slot& slot, const Node& node);

 private:
  void bind_inputs();
  void plan_node(const Node& node);
  bool try_scalar_node(const Node& node);
  bool try_view_node(const Node& node, const MetaAnswer& answer);
  bool try_list_node(const Node& node);
  bool try_fold(const Node& node);
  bool try_native(const Node& node, std::string& reason);
  /// What the operator says of its results; an error if the graph declares them otherwise, or if there
  /// is no memory for them.
  MetaAnswer ask(const Node& node) const;
  void require_declared(const Value* output, const at::Tensor& computed) const;
  /// Whether the node may have a native step; else `reason` says why not.
  bool is_ready_to_emit(const Node& node, const MetaAnswer& answer, std::string& reason) const;
  bool lies_inside(const Slot& slot) const;
  /// NotPlannable where a view with strides of its own would show something else than in eager.
  void require_plain_memory(const Node& node, const Slot& base) const;
  void plan_aten(const Node& node, const std::string& reason);
  void plan_results();
  void place_buffers();
  void settle_overwrites();
  void list_tensors();
  Work work_of(const Node& node) const;

  Slot new_slot(Buffer::Kind kind, c10::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides);
  Slot dynamic_slot(const Value* value);
  std::optional<int64_t> channel_in_cat(const Node& cat, const Value* value) const;
  std::vector<int64_t> strides_of(const Value* value) const;
  int64_t evaluate(const SymExpr& expression, const Value* value) const;
  void touch(const Slot& slot, int step);
  void touch_operands(const Node& node, int step);
  StepOperand operand_of(const Argument& argument, const c10::TypePtr& type) const;
  std::vector<StepOperand> schema_operands(const Node& node) const;
  std::vector<c10::IValue> meta_stack(const std::vector<StepOperand>& operands) const;
  const Planned& planned(const Value* value) const;
  void add_step(std::unique_ptr<Step> step, const Node& node);
  int next_step() const { return static_cast<int>(plan_->steps.size()); }

  const Graph& graph_;
  const PlanInputs& inputs_;
  std::unique_ptr<Plan> plan_;
  std::unordered_map<const Value*, Planned> values_;
  bool writes_in_place_ = false;
  std::unique_ptr<const StateReaders> state_readers_;  ///< made when the first node asks
  size_t folded_bytes_ = 0;
  struct Overwrite {
    int result, source;
  };
  std::unordered_map<const Value*, Slot> cats_;  ///< results of cats whose parts are put there at once
  std::vector<Slot> copies_;                     ///< made for the step at hand, which reads them
  std::vector<Overwrite> overwrites_;            ///< in the order of the steps
  std::vector<int> home_;                        ///< by buffer: the one whose memory it uses, mostly itself
};

/// Bytes from the first element to the end of the last.
size_t extent_bytes(const at::Tensor& tensor);

/// "aten::add.Tensor in layer …": of messages.
std::string describe(const Node& node);

/// Whether an argument of that type may be a tensor.
bool wants_tensor(const c10::TypePtr& type);

/// The types that a schema and its defaults give a node's arguments: for all who read them.
const c10::Argument* try_schema_argument(const Node& node, std::string_view name);

}  // namespace halftone::compiler
