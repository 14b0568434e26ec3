#include "tune/autoquant/problem.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/zeros.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/errors.h"
#include "base/sha256.h"
#include "compiler/passes/match.h"
#include "graph/flat_call.h"
#include "graph/ir/text_names.h"
#include "graph/operators/op_traits.h"

namespace halftone::aq {
namespace {

constexpr int64_t kMakerWidth = 16;

bool is_stored(const Value* value) {
  return value->producer() == nullptr && value->graph().inputs().at(value->index()).kind != InputKind::kUser;
}

/// Computed from stored tensors only: a weight that is transposed or cast.
bool is_constant(const Value* value) {
  if (value->type() != ValueType::kTensor) return false;
  if (value->producer() == nullptr) return is_stored(value);
  const auto operands = value->producer()->input_values();
  return !operands.empty() && value->producer()->op() != nullptr && !has_side_effects(*value->producer()) &&
         std::all_of(operands.begin(), operands.end(), is_constant);
}

std::vector<SymExpr> as_expressions(const std::vector<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

const GraphLayer& layer_of_node(const MarkedModel& model, const Node* node) {
  for (const GraphLayer& layer : model.layers) {
    for (const LayerUse& use : layer.uses) {
      if (use.node == node) return layer;
    }
  }
  fail(ErrorCode::kInternal, "%{} belongs to no marked layer", node->output()->name());
}

class ProblemBuilder {
 public:
  ProblemBuilder(const MarkedModel& model, const Neighbourhood& part, const SeenValues& seen)
      : model_(model), part_(part), seen_(seen), stored_(model.module->tensors()) {
    for (const Node* node : part.nodes) {
      if (is_linear(node)) linears_.push_back(node);
    }
  }

  Problem run() {
    if (part_.maker != nullptr) add_maker();
    for (const Node* node : part_.nodes) {
      if (part_.joined && is_linear(node)) {
        if (node == linears_.front()) add_joined();
      } else {
        copy(*node);
        if (is_linear(node))
          describe_layer(layer_of_node(model_, node).info);
        else if (!has_trait(*node, OpTrait::kReshape))
          words_.push_back(short_name(*node));
      }
    }
    set_results();
    Problem problem;
    problem.weights = weights_;
    problem.has_maker = part_.maker != nullptr;
    problem.inputs = std::move(inputs_);
    problem.key = key();
    CallSpec call = flat_call(*graph_);
    problem.module = std::make_shared<GraphModule>(std::move(graph_), std::move(tensors_), std::move(call));
    problem.module->name = "autoquant's problem";
    return problem;
  }

 private:
  bool is_linear(const Node* node) const {
    return std::any_of(model_.layers.begin(), model_.layers.end(), [&](const GraphLayer& layer) {
      return std::any_of(layer.uses.begin(), layer.uses.end(),
                         [&](const LayerUse& use) { return use.node == node; });
    });
  }

  static std::string short_name(const Node& node) {
    std::string name = node.target().substr(node.target().find("::") + 2);
    return name.substr(0, name.find('.'));
  }

  void describe_layer(const LayerInfo& info) {
    words_.push_back(fmt::format("{} {}x{}", info.kind, info.n, info.k));
    weights_ += info.n * info.k;
  }

  std::optional<TensorMeta> meta_of(const Value* value) const {
    const auto found = seen_.find(value);
    if (found == seen_.end() || found->second.number) return value->meta();
    TensorMeta meta;
    meta.dtype = found->second.dtype;
    meta.sizes = as_expressions(found->second.sizes);
    meta.strides = as_expressions(found->second.strides);
    return meta;
  }

  Value* add_stored(const at::Tensor& tensor) {
    const std::string name = fmt::format("p{}", tensors_.size());
    TensorMeta meta;
    meta.dtype = tensor.scalar_type();
    meta.sizes = as_expressions(tensor.sizes().vec());
    meta.strides = as_expressions(tensor.strides().vec());
    tensors_[name] = tensor.detach();
    return graph_->add_input({name, ValueType::kTensor, meta}, InputKind::kParameter, name);
  }

  /// A tensor that another part of the model makes.
  Value* add_user(const Value* value) {
    const auto found = seen_.find(value);
    if (found == seen_.end() || found->second.number)
      fail(ErrorCode::kUnsupported, "%{} was no tensor in calibration", value->name());
    const Seen& seen = found->second;
    const at::Generator generator = at::detail::createCPUGenerator(inputs_.size());
    at::Tensor tensor = at::empty_strided(seen.sizes, seen.strides, at::TensorOptions(seen.dtype));
    if (tensor.is_floating_point()) {
      const at::Tensor values = at::normal(0, 1, seen.sizes, generator, at::TensorOptions(at::kFloat));
      // Repeated elements (a stride of 0) keep the last one.
      for (size_t i = 0; i < seen.sizes.size(); ++i) {
        if (seen.sizes[i] > 1 && seen.strides[i] == 0) return add_input(tensor.zero_(), value);
      }
      tensor.copy_(values);
    } else {
      tensor.zero_();
    }
    return add_input(std::move(tensor), value);
  }

  Value* add_input(at::Tensor tensor, const Value* value) {
    const std::string name = fmt::format("x{}", inputs_.size());
    const auto meta = meta_of(value);
    shapes_.push_back(
        fmt::format("{}[{}]", dtype_name(tensor.scalar_type()), fmt::join(tensor.sizes(), ", ")));
    inputs_.emplace_back(std::move(tensor));
    return graph_->add_input({name, ValueType::kTensor, meta}, InputKind::kUser, name);
  }

  Value* mapped(Value* value) {
    if (const auto known = values_.find(value); known != values_.end()) return known->second;
    Value* made = nullptr;
    if (is_stored(value)) {
      made = add_stored(stored_->at(value->graph().inputs().at(value->index()).target));
    } else if (is_constant(value)) {
      copy(*value->producer());
      return values_.at(value);
    } else {
      made = add_user(value);
    }
    values_.emplace(value, made);
    return made;
  }

  Argument mapped(const Argument& argument) {
    if (Value* value = argument.value()) {
      if (value->type() == ValueType::kTensor) return mapped(value);
      const auto found = seen_.find(value);
      if (found == seen_.end() || !found->second.number)
        fail(ErrorCode::kUnsupported, "%{} was no number in calibration", value->name());
      return *found->second.number;
    }
    if (const auto* list = argument.list()) {
      Argument::List items;
      for (const Argument& item : *list) items.push_back(mapped(item));
      return items;
    }
    return argument;
  }

  void copy(const Node& node) {
    std::vector<NamedArgument> operands;
    for (const NamedArgument& operand : node.inputs())
      operands.push_back({operand.name, mapped(operand.value)});
    std::vector<OutputSpec> outputs;
    for (const Value* output : node.outputs())
      outputs.push_back({fmt::format("v{}", made_++), output->type(), meta_of(output)});
    const Node* copied = graph_->append(node.target(), std::move(operands), std::move(outputs));
    for (size_t i = 0; i < node.outputs().size(); ++i) values_[node.output(i)] = copied->output(i);
  }

  at::Tensor bias_of(const Node& linear, int64_t n) const {
    const Value* bias = try_tensor(linear, "bias");
    if (bias == nullptr) return at::zeros({n});
    if (!is_stored(bias)) fail(ErrorCode::kUnsupported, "%{} is computed", bias->name());
    return stored_->at(bias->graph().inputs().at(bias->index()).target);
  }

  /// Writes what the real maker would, and multiplies next to nothing.
  void add_maker() {
    const Value* made = made_value();
    const TensorMeta meta = *meta_of(made);
    const int64_t n = meta.sizes.back().constant();
    std::vector<int64_t> sizes;
    for (const SymExpr& size : meta.sizes) sizes.push_back(size.constant());
    sizes.back() = kMakerWidth;
    const at::Generator generator = at::detail::createCPUGenerator(0);
    at::Tensor x = at::normal(0, 1, sizes, generator, at::TensorOptions(at::kFloat));
    const at::Tensor weight = at::normal(0, 0.5, {n, kMakerWidth}, generator, at::TensorOptions(at::kFloat));
    const std::string name = std::string(kMakerLayer) + ".weight";
    tensors_[name] = weight;
    Value* stored =
        graph_->add_input({"maker_weight", ValueType::kTensor, contiguous_meta(at::kFloat, {n, kMakerWidth})},
                          InputKind::kParameter, name);
    Value* input =
        graph_->add_input({"maker_x", ValueType::kTensor, contiguous_meta(at::kFloat, as_expressions(sizes))},
                          InputKind::kUser, "maker_x");
    inputs_.emplace_back(std::move(x));
    Node* node = graph_->append(
        "aten::linear", {{"input", input}, {"weight", stored}},
        {{fmt::format("v{}", made_++), ValueType::kTensor, contiguous_meta(at::kFloat, meta.sizes)}});
    values_[made] = node->output();
    words_.emplace_back("behind a linear");
    sizes.back() = n;
    shapes_.push_back(fmt::format("f32[{}]", fmt::join(sizes, ", ")));
  }

  /// The first value behind the maker that the nodes read: its result, or a reshape of it.
  const Value* made_value() const {
    for (const Node* node : part_.nodes) {
      for (const Value* value : node->input_values()) {
        if (before_reshapes(value) == part_.maker->output()) return value;
      }
    }
    fail(ErrorCode::kInternal, "%{} is read by none", part_.maker->output()->name());
  }

  /// The weights of all on top of each other, as the compiler has them.
  void add_joined() {
    std::vector<at::Tensor> weights, biases;
    bool any_bias = false;
    int64_t n = 0;
    for (const Node* linear : linears_) {
      const GraphLayer& layer = layer_of_node(model_, linear);
      weights.push_back(layer.matrix.to(layer.dtype));
      biases.push_back(bias_of(*linear, layer.info.n));
      any_bias = any_bias || try_tensor(*linear, "bias") != nullptr;
      n += layer.info.n;
    }
    const int64_t k = weights.front().size(1);
    std::vector<NamedArgument> operands = {{"input", mapped(input_of(*linears_.front()))},
                                           {"weight", add_stored(at::cat(weights))}};
    if (any_bias) operands.push_back({"bias", add_stored(at::cat(biases))});
    std::vector<SymExpr> sizes = meta_of(linears_.front()->output())->sizes;
    sizes.back() = n;
    Node* node = graph_->append(
        "aten::linear", std::move(operands),
        {{fmt::format("v{}", made_++), ValueType::kTensor, contiguous_meta(at::kFloat, sizes)}});
    results_.emplace_back(node->output());
    describe_layer({"", "linear", n, k});
    words_.back() += fmt::format(" ({} joined)", linears_.size());
  }

  /// What nodes outside read.
  void set_results() {
    const std::set<const Node*> inside(part_.nodes.begin(), part_.nodes.end());
    for (const Node* node : part_.nodes) {
      if (part_.joined && is_linear(node)) continue;
      for (const Value* output : node->outputs()) {
        const bool read = std::any_of(output->users().begin(), output->users().end(),
                                      [&](const Node* user) { return !inside.contains(user); });
        if (read) results_.emplace_back(values_.at(output));
      }
    }
    std::vector<GraphOutput> kinds(results_.size());
    graph_->set_outputs(std::move(results_), std::move(kinds));
    lint_or_throw(*graph_, "autoquant's problem");
  }

  std::string key() const {
    const std::string text = print_graph(*graph_);
    const std::string hash = to_hex(sha256(std::as_bytes(std::span(text))));
    // Cache sizes are powers of two: so are the steps in which the rest of the model counts.
    int64_t beside = 1;
    while (beside < model_.weights - weights_) beside *= 2;
    return fmt::format("{} on {} beside {} weights #{}", fmt::join(words_, ", "), fmt::join(shapes_, ", "),
                       beside, hash.substr(0, 12));
  }

  const MarkedModel& model_;
  const Neighbourhood& part_;
  const SeenValues& seen_;
  std::shared_ptr<const TensorMap> stored_;
  std::vector<const Node*> linears_;
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  TensorMap tensors_;
  std::unordered_map<const Value*, Value*> values_;
  std::vector<c10::IValue> inputs_;
  std::vector<Argument> results_;
  std::vector<std::string> words_, shapes_;
  int64_t weights_ = 0;
  int made_ = 0;
};

}  // namespace

Problem cut_out(const MarkedModel& model, const Neighbourhood& part, const SeenValues& seen) {
  return ProblemBuilder(model, part, seen).run();
}

std::vector<const Value*> outside_values(const GraphModule& module, const Neighbourhood& part) {
  std::set<const Value*> inside;
  std::vector<const Value*> outside;
  for (const Node* node : part.nodes) {
    for (const Value* value : node->input_values()) {
      if (inside.contains(value) || is_constant(value)) continue;
      inside.insert(value);
      outside.push_back(value);
    }
    inside.insert(node->outputs().begin(), node->outputs().end());
  }
  return outside;
}

}  // namespace halftone::aq
