// Graph: nodes, values and their uses.
#include "halftone/graph/graph.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/errors.h"
#include "graph/operators/operators.h"

namespace halftone {
namespace {

/// Calls visit(Value*&) for each value in the operand, nested ones too.
template <typename Visit>
void visit_values(Argument::Data& data, const Visit& visit);

template <typename Visit>
struct ValueVisitor {
  const Visit& visit;
  void operator()(Value*& value) const { visit(value); }
  void operator()(Argument::List& list) const {
    for (Argument& item : list) visit_values(const_cast<Argument::Data&>(item.data()), visit);
  }
  template <typename T>
  void operator()(T&) const {}
};

template <typename Visit>
void visit_values(Argument::Data& data, const Visit& visit) {
  std::visit(ValueVisitor<Visit>{visit}, data);
}

template <typename Visit>
void visit_values(const std::vector<NamedArgument>& inputs, const Visit& visit) {
  for (const NamedArgument& input : inputs)
    visit_values(const_cast<Argument::Data&>(input.value.data()), visit);
}

}  // namespace

std::string_view to_string(ValueType type) {
  switch (type) {
    case ValueType::kTensor:
      return "tensor";
    case ValueType::kInt:
      return "int";
    case ValueType::kFloat:
      return "float";
    case ValueType::kBool:
      return "bool";
    case ValueType::kString:
      return "str";
    case ValueType::kList:
      return "list";
    case ValueType::kNone:
      return "none";
  }
  return "unknown";
}

std::string_view to_string(InputKind kind) {
  switch (kind) {
    case InputKind::kUser:
      return "user";
    case InputKind::kParameter:
      return "parameter";
    case InputKind::kBuffer:
      return "buffer";
    case InputKind::kNonPersistentBuffer:
      return "non_persistent_buffer";
    case InputKind::kConstant:
      return "constant";
  }
  return "unknown";
}

std::string_view to_string(OutputKind kind) {
  switch (kind) {
    case OutputKind::kUser:
      return "user";
    case OutputKind::kBufferMutation:
      return "buffer_mutation";
    case OutputKind::kInputMutation:
      return "input_mutation";
  }
  return "unknown";
}

Value* Argument::value() const {
  const auto* value = std::get_if<Value*>(&data_);
  return value ? *value : nullptr;
}

std::optional<int64_t> Argument::as_int() const {
  if (const auto* number = std::get_if<int64_t>(&data_)) return *number;
  return std::nullopt;
}

bool Argument::operator==(const Argument& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (const auto* list = this->list()) return *list == *other.list();
  return data_ == other.data_;
}

const Argument* Node::try_input(std::string_view name) const {
  for (const NamedArgument& input : inputs_) {
    if (input.name == name) return &input.value;
  }
  return nullptr;
}

void Node::add_uses() {
  visit_values(inputs_, [this](Value*& value) { value->users_.push_back(this); });
}

void Node::require_values() const {
  visit_values(inputs_, [this](Value*& value) {
    if (!value) fail(ErrorCode::kInvalidArgument, "{}: an operand is a null value", target());
  });
}

void Node::drop_uses() {
  visit_values(inputs_, [this](Value*& value) {
    // From the back: what was added last is mostly dropped first, and user lists can be long.
    const auto found = std::find(value->users_.rbegin(), value->users_.rend(), this);
    if (found != value->users_.rend()) value->users_.erase(std::next(found).base());
  });
}

void Node::set_input(size_t index, Argument value) {
  drop_uses();
  inputs_.at(index).value = std::move(value);
  require_values();
  add_uses();
}

void Node::set_inputs(std::vector<NamedArgument> inputs) {
  drop_uses();
  inputs_ = std::move(inputs);
  require_values();
  add_uses();
}

void Node::replace_uses_of(Value* old_value, Value* new_value) {
  drop_uses();
  visit_values(inputs_, [&](Value*& value) {
    if (value == old_value) value = new_value;
  });
  add_uses();
}

std::vector<Value*> Node::input_values() const {
  std::vector<Value*> values;
  visit_values(inputs_, [&](Value*& value) { values.push_back(value); });
  return values;
}

/// The values by name, and where to go on when a name is taken. The keys are the values' own names.
struct Graph::Names {
  std::unordered_map<std::string_view, std::unique_ptr<Value>> values;
  std::unordered_map<std::string, size_t> next_suffix;

  std::string unique(std::string hint) {
    if (!hint.empty() && !values.contains(hint)) return hint;
    size_t& suffix = next_suffix[hint.empty() ? "v" : hint];
    std::string name;
    do {
      name = hint.empty() ? fmt::format("v{}", suffix++) : fmt::format("{}_{}", hint, ++suffix);
    } while (values.contains(name));
    return name;
  }
};

namespace {

const std::shared_ptr<const Source>& no_source() {
  static const auto none = std::make_shared<const Source>();
  return none;
}

}  // namespace

Graph::Graph() : return_node_(new Node()), names_(std::make_unique<Names>()) {
  static const std::string& target = *new std::string("return");  // for ever, like other targets
  return_node_->target_ = &target;
  return_node_->source_ = no_source();
  return_node_->graph_ = this;
}

Graph::~Graph() = default;

Value* Graph::new_value(OutputSpec spec, Node* producer, size_t index) {
  auto owned = std::unique_ptr<Value>(new Value());
  Value* value = owned.get();
  value->name_ = names_->unique(std::move(spec.name));
  value->type_ = spec.type;
  value->meta_ = std::move(spec.meta);
  value->expression_ = std::move(spec.expression);
  value->producer_ = producer;
  value->index_ = index;
  value->graph_ = this;
  names_->values.emplace(value->name_, std::move(owned));
  return value;
}

void Graph::delete_value(Value* value) {
  names_->values.erase(names_->values.find(value->name_));
}

Value* Graph::add_input(OutputSpec spec, InputKind kind, std::string target) {
  Value* value = new_value(std::move(spec), nullptr, inputs_.size());
  if (target.empty()) target = value->name_;
  inputs_.push_back({value, kind, std::move(target)});
  return value;
}

void Graph::erase_input(size_t index) {
  erase_inputs({index});
}

void Graph::erase_inputs(const std::vector<size_t>& indices) {
  if (indices.empty()) return;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Value* value = inputs_.at(indices[i]).value;
    if (i > 0 && indices[i] <= indices[i - 1])
      fail(ErrorCode::kInvalidArgument, "erase_inputs: the indices must ascend");
    if (!value->users_.empty())
      fail(ErrorCode::kState, "input %{} still has {} uses", value->name_, value->users_.size());
  }
  size_t next = 0, kept = indices.front();
  for (size_t i = kept; i < inputs_.size(); ++i) {
    if (next < indices.size() && indices[next] == i) {
      delete_value(inputs_[i].value);
      ++next;
      continue;
    }
    inputs_[i].value->index_ = kept;
    inputs_[kept++] = std::move(inputs_[i]);
  }
  inputs_.resize(kept);
}

void Graph::set_input_target(size_t index, InputKind kind, std::string target) {
  inputs_.at(index).kind = kind;
  inputs_.at(index).target = std::move(target);
}

void Graph::set_outputs(std::vector<Argument> values, std::vector<GraphOutput> outputs) {
  if (values.size() != outputs.size()) {
    fail(ErrorCode::kInvalidArgument, "{} output values but {} output descriptions", values.size(),
         outputs.size());
  }
  std::vector<NamedArgument> inputs;
  inputs.reserve(values.size());
  for (Argument& value : values) inputs.push_back({"", std::move(value)});
  return_node_->set_inputs(std::move(inputs));
  outputs_ = std::move(outputs);
}

Node* Graph::insert(Node* before, std::string_view target, std::vector<NamedArgument> inputs,
                    std::vector<OutputSpec> outputs, Source source) {
  const auto known = try_target(target);
  if (!known) fail(ErrorCode::kUnsupported, "no operator or built-in is called {}", target);
  auto node = std::unique_ptr<Node>(new Node());
  node->target_ = known->name;
  node->op_ = known->op;
  // Neighbours mostly belong to one layer.
  const auto place = before ? before->position_ : nodes_.end();
  if (place != nodes_.begin() && (*std::prev(place))->source() == source) {
    node->source_ = (*std::prev(place))->source_;
  } else {
    node->source_ = source == Source() ? no_source() : std::make_shared<const Source>(std::move(source));
  }
  return add(before, std::move(node), std::move(inputs), std::move(outputs));
}

Node* Graph::append_like(const Node& model, std::vector<NamedArgument> inputs,
                         std::vector<OutputSpec> outputs) {
  auto node = std::unique_ptr<Node>(new Node());
  node->target_ = model.target_;
  node->op_ = model.op_;
  node->source_ = model.source_;
  return add(nullptr, std::move(node), std::move(inputs), std::move(outputs));
}

Node* Graph::add(Node* before, std::unique_ptr<Node> owned, std::vector<NamedArgument> inputs,
                 std::vector<OutputSpec> outputs) {
  Node* node = owned.get();
  node->graph_ = this;
  node->position_ = nodes_.insert(before ? before->position_ : nodes_.end(), std::move(owned));
  node->outputs_.reserve(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    node->outputs_.push_back(new_value(std::move(outputs[i]), node, i));
  node->set_inputs(std::move(inputs));
  return node;
}

void Graph::reserve_values(size_t count) {
  names_->values.reserve(count);
}

void Graph::replace_all_uses(Value* old_value, Value* new_value) {
  if (old_value == new_value) return;
  // One entry for each use: the first visit of a user replaces all its uses, later ones find none.
  for (Node* user : std::exchange(old_value->users_, {})) {
    visit_values(user->inputs_, [&](Value*& value) {
      if (value != old_value) return;
      value = new_value;
      new_value->users_.push_back(user);
    });
  }
}

void Graph::move_before(Node* node, Node* before) {
  nodes_.splice(before ? before->position_ : nodes_.end(), nodes_, node->position_);
}

void Graph::erase(Node* node) {
  for (const Value* output : node->outputs_) {
    if (!output->users_.empty()) {
      fail(ErrorCode::kState, "{} cannot be erased: %{} still has {} uses", node->target(), output->name_,
           output->users_.size());
    }
  }
  node->drop_uses();
  for (Value* output : node->outputs_) delete_value(output);
  nodes_.erase(node->position_);
}

size_t Graph::erase_dead_nodes() {
  size_t erased = 0;
  // Backwards, so that a chain of dead nodes goes in one walk.
  for (auto next = nodes_.end(); next != nodes_.begin();) {
    Node* node = std::prev(next)->get();
    const bool dead = std::all_of(node->outputs_.begin(), node->outputs_.end(),
                                  [](const Value* output) { return output->users_.empty(); });
    if (dead && !has_side_effects(*node)) {
      erase(node);
      ++erased;
    } else {
      --next;
    }
  }
  return erased;
}

void Graph::sort_topologically() {
  std::unordered_map<const Node*, std::pair<size_t, size_t>>
      pending;                    // position in the given order, producers not yet placed
  std::map<size_t, Node*> ready;  // by position, so that the order stays where it is free
  for (const auto& node : nodes_) {
    size_t producers = 0;
    for (const Value* value : node->input_values()) producers += value->producer_ != nullptr ? 1 : 0;
    const size_t position = pending.size();
    pending[node.get()] = {position, producers};
    if (producers == 0) ready[position] = node.get();
  }
  NodeList sorted;
  while (!ready.empty()) {
    Node* node = ready.extract(ready.begin()).mapped();
    sorted.splice(sorted.end(), nodes_, node->position_);
    for (const Value* output : node->outputs_) {
      for (Node* user : output->users_) {
        if (user == return_node_.get()) continue;
        auto& [position, producers] = pending.at(user);
        if (--producers == 0) ready[position] = user;
      }
    }
  }
  const bool cycle = !nodes_.empty();  // what no order can place
  nodes_.splice(nodes_.begin(), sorted);
  if (cycle) fail(ErrorCode::kInvalidArgument, "the graph has a cycle through {}", nodes_.back()->target());
}

Value* Graph::try_value(std::string_view name) const {
  const auto found = names_->values.find(name);
  return found == names_->values.end() ? nullptr : found->second.get();
}

Value* Graph::value(std::string_view name) const {
  if (Value* value = try_value(name)) return value;
  fail(ErrorCode::kNotFound, "the graph has no value %{}", name);
}

void Graph::rename(Value* value, std::string name) {
  if (name == value->name_) return;
  if (name.empty() || names_->values.contains(name)) {
    fail(ErrorCode::kInvalidArgument, "%{} cannot be renamed to \"{}\"", value->name_, name);
  }
  auto entry = names_->values.extract(value->name_);
  value->name_ = std::move(name);
  entry.key() = value->name_;
  names_->values.insert(std::move(entry));
}

}  // namespace halftone
