// Makes the plan of one shape. One walk over the nodes: each becomes nothing (sizes, views and foldable
// nodes are done here), a native step, or a step of ATen. The operators themselves say which sizes come out
// and which results are views, run on tensors without data (ask()); so the planner needs no list of
// operators for that, and a wrong declaration in a file is found before memory is laid out. Buffers get
// their place last, when the first and last step of each are known.
#include "compiler/executor/planner.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/errors.h"
#include "compiler/executor/aten_step.h"
#include "compiler/executor/copy_step.h"
#include "compiler/executor/emit.h"
#include "compiler/executor/memory/memory.h"
#include "graph/aten/torch_errors.h"
#include "graph/operators/op_traits.h"
#include "graph/operators/operand_guards.h"
#include "graph/operators/operands.h"
#include "graph/operators/sym_ops.h"

namespace halftone::compiler {

namespace {

at::Tensor meta_tensor(c10::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  return at::empty_strided(sizes, strides, at::TensorOptions(dtype).device(at::kMeta));
}

/// Of sizes that require_memory_for has seen.
std::vector<int64_t> contiguous_strides(c10::IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

bool gives_only_numbers(const Node& node) {
  return std::all_of(node.outputs().begin(), node.outputs().end(), [](const Value* output) {
    return output->type() != ValueType::kTensor && output->type() != ValueType::kList;
  });
}

}  // namespace

const c10::Argument* try_schema_argument(const Node& node, std::string_view name) {
  if (!node.op()) return nullptr;
  for (const c10::Argument& argument : node.op()->schema().arguments()) {
    if (argument.name() == name) return &argument;
  }
  return nullptr;
}

Planner::Planner(const Graph& graph, const PlanInputs& inputs)
    : graph_(graph), inputs_(inputs), plan_(std::make_unique<Plan>()) {
  for (const auto& node : graph.nodes()) writes_in_place_ = writes_in_place_ || writes_to_operand(*node);
}

std::unique_ptr<Plan> Planner::make() {
  bind_inputs();
  for (const auto& node : graph_.nodes()) {
    try {
      plan_node(*node);
    } catch (const NotPlannable&) {
      throw;
    } catch (const std::exception&) {
      rethrow_at(describe(*node), ErrorCode::kInvalidArgument);
    }
  }
  plan_results();
  place_buffers();
  list_tensors();
  plan_->threads = inputs_.threads;
  return std::move(plan_);
}

void Planner::bind_inputs() {
  for (size_t i = 0; i < graph_.inputs().size(); ++i) {
    const c10::IValue& value = inputs_.values[i];
    const Value* input = graph_.inputs()[i].value;
    if (!value.isTensor()) {
      values_[input].data = value;
      continue;
    }
    const at::Tensor& tensor = value.toTensor();
    Slot slot;
    slot.buffer = static_cast<int>(plan_->buffers.size());
    slot.meta = meta_tensor(tensor.scalar_type(), tensor.sizes(), tensor.strides());
    Buffer buffer{.kind = Buffer::Kind::kInput, .bytes = extent_bytes(slot.meta), .index = i};
    if (inputs_.is_constant[i]) {
      buffer.kind = Buffer::Kind::kConstant;
      buffer.constant = tensor;
    }
    plan_->buffers.push_back(std::move(buffer));
    values_[input].data = std::move(slot);
  }
}

void Planner::plan_node(const Node& node) {
  // The order matters: numbers come first, because sizes of later nodes are computed from them; views
  // before steps, because a view needs no step; folding before native steps, because a constant is cheaper
  // than any kernel.
  if (try_list_node(node) || try_scalar_node(node)) return;
  if (!node.op()) throw NotPlannable(describe(node) + " is control flow");
  const MetaAnswer answer = ask(node);
  // What the operator refuses it shall refuse itself, in the run, as in eager.
  if (answer.kind == MetaAnswer::Kind::kRefused) return plan_aten(node, answer.reason);
  if (try_view_node(node, answer) || try_fold(node)) return;
  std::string reason = "no native kernel";
  const bool native =
      try_emitter(node.target()) && is_ready_to_emit(node, answer, reason) && try_native(node, reason);
  if (!native) plan_aten(node, reason);
}

/// builtin::unpack and builtin::getitem of a list that is known piece by piece.
bool Planner::try_list_node(const Node& node) {
  const bool unpack = node.is("builtin::unpack");
  if (!unpack && !node.is("builtin::getitem")) return false;
  const Value* sequence = node.inputs().empty() ? nullptr : node.input(0).value();
  if (sequence == nullptr)
    throw NotPlannable(describe(node) + " takes a list apart that the graph spells out");
  const Planned& source = planned(sequence);
  const std::vector<Slot>* list = source.list();
  if (!list) throw NotPlannable(describe(node) + " takes a list apart whose pieces are not known ahead");
  if (unpack) {
    if (list->size() != node.outputs().size())
      throw NotPlannable(describe(node) + ": the list has another length");
    for (size_t i = 0; i < list->size(); ++i) values_[node.output(i)].data = (*list)[i];
    return true;
  }
  int64_t index = node.input(1).as_int().value_or(0);
  if (index < 0) index += static_cast<int64_t>(list->size());
  if (index < 0 || std::cmp_greater_equal(index, list->size()))
    throw NotPlannable(describe(node) + ": out of range");
  values_[node.output()].data = (*list)[static_cast<size_t>(index)];
  return true;
}

/// Sizes and arithmetic on them; also asserts on numbers: they have their say here, once a shape.
bool Planner::try_scalar_node(const Node& node) {
  if (!gives_only_numbers(node)) return false;
  if (const SymFunction function = node.op() ? nullptr : try_sym_function(node.target())) {
    std::vector<c10::IValue> numbers;
    for (const NamedArgument& input : node.inputs())
      numbers.push_back(operand_of(input.value, nullptr).constant);
    values_[node.output()].data = function(numbers);
    return true;
  }
  if (!node.op()) return false;
  const std::vector<StepOperand> operands = schema_operands(node);
  const bool reads_tensor = std::any_of(operands.begin(), operands.end(), [](const StepOperand& each) {
    return each.kind == StepOperand::Kind::kSlot;
  });
  const bool sizes_only = node.target().starts_with("aten::sym_");
  if (reads_tensor && !sizes_only) {
    if (!node.outputs().empty()) throw NotPlannable(describe(node) + " makes a number of data");
    return false;  // an assert on data: a step
  }
  std::vector<c10::IValue> stack = meta_stack(operands);
  node.op()->callBoxed(stack);
  for (size_t i = 0; i < node.outputs().size(); ++i) values_[node.output(i)].data = stack.at(i);
  return true;
}

/// Views cost nothing: the operator itself, run on tensors without data, says where the result lies. So do
/// `reshape` and the like, unless they copy.
bool Planner::try_view_node(const Node& node, const MetaAnswer& answer) {
  if (answer.kind != MetaAnswer::Kind::kKnown) return false;
  const c10::FunctionSchema& schema = node.op()->schema();
  if (schema.returns().size() != 1 || schema.arguments().empty()) return false;
  const c10::AliasInfo* alias = schema.returns()[0].alias_info();
  const c10::AliasInfo* source = schema.arguments()[0].alias_info();
  if (!alias || !source || alias->isWrite() || source->isWrite()) return false;
  const Slot* base = tensor(node, schema.arguments()[0].name());
  if (!base) return false;
  const c10::IValue& result = answer.results.at(0);
  if (result.isTensor()) {
    if (!result.toTensor().is_alias_of(base->meta)) return false;
    if (node.is("aten::as_strided")) require_plain_memory(node, *base);
    const at::Tensor& view = result.toTensor();
    if (view.scalar_type() != base->dtype() || view.is_conj() != base->meta.is_conj() ||
        view.is_neg() != base->meta.is_neg()) {
      // Other elements in the same memory (view_as_real, lazy conjugates): left to ATen, which copies; not if
      // it is written to.
      if (writes_in_place_)
        throw NotPlannable(describe(node) + " views memory as another dtype, and the graph writes in place");
      return false;
    }
    const Slot slot{base->buffer, result.toTensor()};
    if (!lies_inside(slot)) throw NotPlannable(describe(node) + " reaches beyond its operand");
    values_[node.output()].data = slot;
    return true;
  }
  if (!result.isTensorList()) return false;
  std::vector<Slot> pieces;
  for (const at::Tensor& piece : result.toTensorVector()) {
    if (!piece.is_alias_of(base->meta)) return false;
    pieces.push_back({base->buffer, piece});
    if (!lies_inside(pieces.back())) throw NotPlannable(describe(node) + " reaches beyond its operand");
  }
  values_[node.output()].data = std::move(pieces);
  return true;
}

/// What depends on nothing but sizes and constants is computed once, here: positions, masks of zeros.
bool Planner::try_fold(const Node& node) {
  constexpr size_t kMaxBytes = size_t{1} << 20;  // for a plan; it is memory that every shape pays
  if (writes_in_place_ || has_side_effects(node) || node.outputs().size() != 1) return false;
  if (node.output()->type() != ValueType::kTensor || !node.output()->meta()) return false;
  const std::vector<StepOperand> operands = schema_operands(node);
  std::vector<c10::IValue> stack;
  for (const StepOperand& operand : operands) {
    if (operand.kind == StepOperand::Kind::kList) return false;
    if (operand.kind == StepOperand::Kind::kConstant) {
      stack.push_back(operand.constant);
    } else if (has_trait(node, OpTrait::kReadsSizesOnly)) {
      stack.emplace_back(at::empty_strided(operand.slot.sizes(), operand.slot.strides(),
                                           at::TensorOptions(operand.slot.dtype())));
    } else if (const at::Tensor tensor = weight(operand.slot); tensor.defined()) {
      stack.emplace_back(tensor);
    } else {
      return false;
    }
  }
  size_t bytes = c10::elementSize(node.output()->meta()->dtype);
  for (const int64_t size : sizes_of(node.output())) bytes *= static_cast<size_t>(size);
  if (folded_bytes_ + bytes > kMaxBytes) return false;
  folded_bytes_ += bytes;
  if (const OperandGuard guard = try_operand_guard(*node.op())) guard(stack);
  node.op()->callBoxed(stack);
  const at::Tensor result = stack.at(0).toTensor().contiguous();
  require_declared(node.output(), result);
  const Slot slot = new_slot(Buffer::Kind::kConstant, result.scalar_type(), result.sizes(), result.strides());
  Buffer& buffer = plan_->buffers.back();
  buffer.constant = result;
  buffer.folded = true;
  values_[node.output()].data = slot;
  return true;
}

bool Planner::try_native(const Node& node, std::string& reason) {
  const Emitter emitter = try_emitter(node.target());
  if (!emitter) return false;
  copies_.clear();
  std::unique_ptr<Step> step = emitter(node, *this, reason);
  if (!step) return false;
  for (const Slot& copy : copies_) touch(copy, next_step());
  add_step(std::move(step), node);
  return true;
}

void Planner::plan_aten(const Node& node, const std::string& reason) {
  plan_->left_to_aten.push_back(fmt::format("{}: {}", describe(node), reason));
  std::vector<AtenOutput> outputs;
  const c10::FunctionSchema& schema = node.op()->schema();
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const Value* output = node.output(i);
    const c10::AliasInfo* alias = i < schema.returns().size() ? schema.returns()[i].alias_info() : nullptr;
    if (alias && alias->isWrite()) {
      // The result of an in-place operator is its operand.
      for (const c10::Argument& argument : schema.arguments()) {
        if (argument.alias_info() && *argument.alias_info() == *alias) {
          const Slot* same = tensor(node, argument.name());
          if (!same || node.op()->hasTag(at::Tag::inplace_view) ||
              (output->meta() && sizes_of(output) != same->sizes()))
            throw NotPlannable(describe(node) + " changes the sizes or strides of its operand");
          values_[output].data = *same;
          outputs.push_back({.slot = *same, .in_place = true});
        }
      }
      if (outputs.size() == i) outputs.push_back({});
    } else if (output->type() == ValueType::kTensor && !is_used(output)) {
      // Its size may be another one than the meta function says: embedding_bag's bags, for one.
      outputs.push_back({});
    } else if (output->type() == ValueType::kTensor) {
      const Slot slot = dynamic_slot(output);
      values_[output].data = slot;
      outputs.push_back({.slot = slot});
    } else if (output->type() == ValueType::kNone) {
      values_[output].data = c10::IValue();
      outputs.push_back({});
    } else {
      throw NotPlannable(describe(node) + " returns something other than tensors");
    }
  }
  add_step(std::make_unique<AtenStep>(*node.op(), schema_operands(node), std::move(outputs)), node);
}

void Planner::plan_results() {
  const int end = next_step();
  for (const NamedArgument& result : graph_.return_node().inputs()) {
    const Value* value = result.value.value();
    if (!value) {
      ResultPlan& plain = plan_->results.emplace_back();
      plain.value = operand_of(result.value, nullptr).constant;
      continue;
    }
    const Planned& known = planned(value);
    if (const c10::IValue* number = known.number()) {
      plan_->results.push_back({.value = *number});
      continue;
    }
    const Slot* slot = known.slot();
    if (!slot) throw NotPlannable(fmt::format("result %{} is a list", value->name()));
    touch(*slot, end);
    // Results never lie in the arena: what backs one is made anew for each run.
    Buffer& buffer = plan_->buffers[static_cast<size_t>(slot->buffer)];
    if (buffer.kind == Buffer::Kind::kArena) {
      // A caller may keep a result for any time, while the arena belongs to the next run.
      buffer.kind = Buffer::Kind::kOutput;
      plan_->outputs.push_back({.buffer = slot->buffer});
    }
    plan_->results.push_back(
        {.kind = buffer.folded ? ResultPlan::Kind::kCopy : ResultPlan::Kind::kViewOfTensor, .slot = *slot});
  }
}

void Planner::may_overwrite(const Operand& result, const Operand& source) {
  if (result.valid() && source.valid() && result.byte_offset == 0 && source.byte_offset == 0)
    overwrites_.push_back({result.buffer, source.buffer});
}

/// A result moves into its operand's memory where the step that writes the one is the last to read the other.
void Planner::settle_overwrites() {
  home_.resize(plan_->buffers.size());
  std::iota(home_.begin(), home_.end(), 0);
  for (const Overwrite& each : overwrites_) {
    Buffer& result = plan_->buffers[static_cast<size_t>(each.result)];
    const int home = home_[static_cast<size_t>(each.source)];
    Buffer& source = plan_->buffers[static_cast<size_t>(home)];
    const bool in_arena = result.kind == Buffer::Kind::kArena && source.kind == Buffer::Kind::kArena;
    // Equal sizes only: such a step reads and writes its elements at the same offsets.
    if (!in_arena || result.bytes != source.bytes || source.last != result.first) continue;
    if (home_[static_cast<size_t>(each.result)] != each.result) continue;  // has a home already
    home_[static_cast<size_t>(each.result)] = home;
    // The operand may itself have moved into another buffer: homes form chains, and the one at the end
    // lives as long as all of them.
    source.last = std::max(source.last, result.last);
  }
}

void Planner::place_buffers() {
  settle_overwrites();
  std::vector<Lifetime> lifetimes;
  std::vector<size_t> in_arena;
  for (size_t i = 0; i < plan_->buffers.size(); ++i) {
    const Buffer& buffer = plan_->buffers[i];
    if (buffer.kind != Buffer::Kind::kArena || home_[i] != static_cast<int>(i)) continue;
    in_arena.push_back(i);
    lifetimes.push_back({buffer.bytes, buffer.first, std::max(buffer.first, buffer.last)});
  }
  const ArenaLayout layout = lay_out(lifetimes);
  for (size_t i = 0; i < in_arena.size(); ++i) plan_->buffers[in_arena[i]].offset = layout.offsets[i];
  for (size_t i = 0; i < plan_->buffers.size(); ++i)
    plan_->buffers[i].offset = plan_->buffers[static_cast<size_t>(home_[i])].offset;
  plan_->arena_bytes = layout.bytes;
  size_t bytes = layout.bytes;
  for (const PlannedOutput& output : plan_->outputs)
    bytes += plan_->buffers[static_cast<size_t>(output.buffer)].bytes;
  if (bytes > machine_memory())
    fail(ErrorCode::kInvalidArgument, "a run needs {} bytes, more than this machine has", bytes);
}

/// What a run binds, where, and when it lets go.
void Planner::list_tensors() {
  const int end = next_step();
  for (size_t i = 0; i < plan_->buffers.size(); ++i) {
    const Buffer& buffer = plan_->buffers[i];
    const int index = static_cast<int>(i);
    if (buffer.kind == Buffer::Kind::kInput) plan_->inputs.push_back(index);
    if (buffer.kind == Buffer::Kind::kDynamic && buffer.last < end)
      plan_->drops.push_back({std::max(buffer.first, buffer.last), index});
    if (buffer.kind != Buffer::Kind::kConstant && buffer.kind != Buffer::Kind::kArena)
      plan_->tensors_of_a_run.push_back(index);
  }
  std::stable_sort(plan_->drops.begin(), plan_->drops.end(),
                   [](const Drop& a, const Drop& b) { return a.step < b.step; });
  for (PlannedOutput& output : plan_->outputs) {
    int users = 0;
    for (size_t i = 0; i < plan_->results.size(); ++i) {
      const ResultPlan& result = plan_->results[i];
      if (result.kind == ResultPlan::Kind::kValue || result.slot.buffer != output.buffer) continue;
      ++users;
      // Only a result that is the whole buffer can be written straight into a tensor of the caller
      // (run_into).
      const bool whole =
          result.slot.meta.is_contiguous() && result.slot.meta.storage_offset() == 0 &&
          extent_bytes(result.slot.meta) == plan_->buffers[static_cast<size_t>(output.buffer)].bytes;
      output.result = whole ? static_cast<int>(i) : -1;
    }
    if (users != 1) output.result = -1;
  }
}

Slot Planner::new_slot(Buffer::Kind kind, c10::ScalarType dtype, c10::IntArrayRef sizes,
                       c10::IntArrayRef strides) {
  Slot slot;
  slot.buffer = static_cast<int>(plan_->buffers.size());
  slot.meta = meta_tensor(dtype, sizes, strides);
  require_memory_for(slot.meta);
  plan_->buffers.push_back({.kind = kind,
                            .dtype = dtype,
                            .bytes = extent_bytes(slot.meta),
                            .first = next_step(),
                            .last = next_step()});
  return slot;
}

Slot Planner::dynamic_slot(const Value* value) {
  if (!value->meta()) throw NotPlannable(fmt::format("the sizes of %{} are not known", value->name()));
  const std::vector<int64_t> sizes = sizes_of(value);
  return new_slot(Buffer::Kind::kDynamic, value->meta()->dtype, sizes, strides_of(value));
}

namespace {

/// Whether two elements may have one address: each stride must be larger than what the smaller ones reach.
bool may_overlap(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride, size
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 1) steps.emplace_back(strides[i], sizes[i]);
  }
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : steps) {
    if (stride <= reach) return true;
    const auto more = checked_mul(stride, size - 1);
    const auto all = more ? checked_add(reach, *more) : std::nullopt;
    if (!all) return true;
    reach = *all;
  }
  return false;
}

}  // namespace

/// As the meta says; contiguous ones where it says nothing, or elements would lie on each other: no operator
/// gives a new tensor like that.
std::vector<int64_t> Planner::strides_of(const Value* value) const {
  std::vector<int64_t> strides;
  for (const SymExpr& stride : value->meta()->strides) strides.push_back(evaluate(stride, value));
  if (strides.size() != value->meta()->sizes.size()) strides = contiguous_strides(sizes_of(value));
  for (const int64_t stride : strides) {
    if (stride < 0) throw NotPlannable(fmt::format("%{} is declared with a negative stride", value->name()));
  }
  const std::vector<int64_t> sizes = sizes_of(value);
  return may_overlap(sizes, strides) ? contiguous_strides(sizes) : strides;
}

std::vector<int64_t> Planner::dense_strides_of(const Value* value) const {
  const std::vector<int64_t> sizes = sizes_of(value), strides = strides_of(value);
  const bool dense = meta_tensor(value->meta()->dtype, sizes, strides).is_non_overlapping_and_dense();
  return dense ? strides : contiguous_strides(sizes);
}

int64_t Planner::evaluate(const SymExpr& expression, const Value* value) const {
  try {
    return expression.evaluate(inputs_.bindings);
  } catch (const Error& error) {
    throw NotPlannable(
        fmt::format("{}, a size of %{}, is not known before the run", expression.to_string(), value->name()));
  }
}

std::vector<int64_t> Planner::sizes_of(const Value* value) const {
  if (!value->meta()) throw NotPlannable(fmt::format("the sizes of %{} are not known", value->name()));
  std::vector<int64_t> sizes;
  for (const SymExpr& size : value->meta()->sizes) sizes.push_back(evaluate(size, value));
  return sizes;
}

Operand Planner::define(const Value* value, c10::ScalarType dtype, c10::IntArrayRef sizes) {
  return define_strided(value, dtype, sizes, contiguous_strides(sizes));
}

Operand Planner::define_strided(const Value* value, c10::ScalarType dtype, c10::IntArrayRef sizes,
                                c10::IntArrayRef strides) {
  const Slot slot = new_slot(Buffer::Kind::kArena, dtype, sizes, strides);
  values_[value].data = slot;
  return slot.operand();
}

Slot Planner::define_by_aten(const Node& node, const std::string& reason) {
  plan_->left_to_aten.push_back(fmt::format("{}: {}", describe(node), reason));
  const Slot slot = dynamic_slot(node.output());
  values_[node.output()].data = slot;
  return slot;
}

Operand Planner::scratch(size_t bytes) {
  if (bytes > machine_memory())
    fail(ErrorCode::kInvalidArgument, "needs {} bytes of scratch memory, more than this machine has", bytes);
  const int buffer = static_cast<int>(plan_->buffers.size());
  plan_->buffers.push_back({.kind = Buffer::Kind::kArena,
                            .bytes = bytes,
                            .first = next_step(),
                            .last = next_step(),
                            .scratch = true});
  return {buffer, 0};
}

std::optional<Rows> try_rows(const Slot& slot) {
  const auto sizes = slot.sizes();
  const auto strides = slot.strides();
  if (sizes.empty()) return std::nullopt;
  const size_t last = sizes.size() - 1;
  Rows rows{slot.operand(), 1, sizes[last], sizes[last]};
  if (rows.k > 1 && strides[last] != 1) return std::nullopt;
  if (slot.numel() == 0) {  // strides mean nothing
    for (size_t i = 0; i < last; ++i) rows.rows *= sizes[i];
    return rows;
  }
  int64_t expected = -1;  // the stride that the next dimension outwards must have to be merged
  for (size_t i = last; i-- > 0;) {
    if (sizes[i] != 1) {
      if (expected < 0) {
        rows.stride = strides[i];
      } else if (strides[i] != expected) {
        return std::nullopt;
      }
      expected = strides[i] * sizes[i];
    }
    rows.rows *= sizes[i];
  }
  return rows;
}

Slot Planner::contiguous_copy(const Slot& slot, const Node& node) {
  const Slot copy =
      new_slot(Buffer::Kind::kArena, slot.dtype(), slot.sizes(), contiguous_strides(slot.sizes()));
  touch(slot, next_step());
  std::unique_ptr<Step> step = make_copy_step(slot, copy);
  step->work.bytes = 2 * copy.numel() * static_cast<int64_t>(copy.meta.element_size());
  add_step(std::move(step), node);
  copies_.push_back(copy);
  return copy;
}

Rows Planner::rows(const Slot& slot, const Node& node) {
  if (slot.meta.dim() == 0) fail(ErrorCode::kInternal, "a tensor without dimensions has no rows");
  if (const std::optional<Rows> direct = try_rows(slot)) return *direct;
  return *try_rows(contiguous_copy(slot, node));
}

void Planner::touch(const Slot& slot, int step) {
  int& last = plan_->buffers[static_cast<size_t>(slot.buffer)].last;
  last = std::max(last, step);
}

void Planner::touch_operands(const Node& node, int step) {
  for (const Value* value : node.input_values()) {
    const Planned& known = planned(value);
    if (const Slot* slot = known.slot()) touch(*slot, step);
    if (const std::vector<Slot>* list = known.list()) {
      for (const Slot& slot : *list) touch(slot, step);
    }
  }
}

void Planner::add_step(std::unique_ptr<Step> step, const Node& node) {
  touch_operands(node, next_step());
  step->node = &node;
  if (step->work.bytes == 0) step->work = work_of(node);
  plan_->steps.push_back(std::move(step));
}

const Planned& Planner::planned(const Value* value) const {
  const auto found = values_.find(value);
  if (found == values_.end()) {
    fail(ErrorCode::kInternal, "%{} is used before the planner has seen it", value->name());
  }
  return found->second;
}

}  // namespace halftone::compiler
