#include "quant/graph/find_layers.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <unordered_set>

#include "graph/run/mutation.h"
#include "quant/graph/match_layer.h"
#include "quant/graph/quantized_node.h"
#include "quant/graph/weight_view.h"

namespace halftone {
namespace {

/// Which elements of which memory a weight is, in which orientation, as what: tied weights are equal here.
using WeightKey = std::tuple<const void*, int64_t, std::vector<int64_t>, std::vector<int64_t>,
                             c10::ScalarType, std::string>;

WeightKey key_of(const at::Tensor& matrix, c10::ScalarType dtype, std::string_view kind) {
  return {matrix.storage().unsafeGetStorageImpl(),
          matrix.storage_offset(),
          matrix.sizes().vec(),
          matrix.strides().vec(),
          dtype,
          std::string(kind)};
}

int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.nbytes());
}

class Finder {
 public:
  explicit Finder(const GraphModule& module) : module_(module), tensors_(module.tensors()), tracer_(module) {
    const std::vector<bool> written = inputs_written_in_place(module.graph());
    for (size_t i = 0; i < written.size(); ++i) {
      if (written[i]) written_.insert(module.graph().inputs()[i].target);
    }
    for (const GraphOutput& output : module.graph().outputs()) {
      if (output.kind == OutputKind::kBufferMutation) written_.insert(output.target);
    }
  }

  std::vector<GraphLayer> run() {
    for (const auto& node : module_.graph().nodes()) {
      add_quantized(*node);
      if (const auto matched = try_match_layer(*node)) add_node(*node, *matched);
      add_subgraphs(*node, nullptr, node->target());
    }
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (layers_[i].uses.empty() && !layers_[i].state.already) layers_[i].state.obstacle = obstacles_[i];
    }
    tell_kinds_apart();
    return std::move(layers_);
  }

 private:
  using Operands = std::vector<const Value*>;

  const GraphInput& input(size_t index) const { return module_.graph().inputs()[index]; }

  /// The layer of that key, made if there is none.
  size_t layer_at(const WeightKey& key, const Node& node, GraphLayer layer) {
    const auto [place, fresh] = index_.emplace(key, layers_.size());
    if (!fresh) return place->second;
    layers_.push_back(std::move(layer));
    obstacles_.emplace_back();
    sources_.push_back(node.source().layer);
    return place->second;
  }

  void add_use(size_t index, Node& node, const MatchedLayer& matched, const std::string& obstacle) {
    if (obstacle.empty()) {
      layers_[index].uses.push_back({&node, matched.form});
      if (!matched.convolution.empty()) layers_[index].state.convolution = matched.convolution;
    } else if (obstacles_[index].empty()) {
      obstacles_[index] = obstacle;
    }
  }

  /// A convolution: all of its weight, and only if nothing is between the stored tensor and the node.
  void add_convolution(Node& node, const MatchedLayer& matched, const WeightView& view) {
    if (view.tensor.dim() < 3) return;
    const at::Tensor matrix = view.tensor.flatten(1);
    std::string obstacle = matched.obstacle;
    if (obstacle.empty() && view.expanded) obstacle = "its weight is repeated";
    if (obstacle.empty()) obstacle = weight_obstacle(view, matrix);
    GraphLayer layer = describe(view, matrix, matched.kind);
    layer.weight = view.tensor;
    add_use(layer_at(key_of(view.tensor, view.dtype, matched.kind), node, std::move(layer)), node, matched,
            obstacle);
  }

  void add_node(Node& node, const MatchedLayer& matched) {
    const Node* producer = matched.weight != nullptr ? matched.weight->producer() : nullptr;
    if (producer != nullptr && try_quantized_node(*producer))
      return;  // a convolution that is quantized already
    auto view = tracer_.trace(matched.weight);
    if (!view) return add_computed(node, matched);
    if (!c10::isFloatingType(view->dtype) || !view->tensor.is_floating_point()) return;
    if (matched.form == LinearForm::kConvolution) return add_convolution(node, matched, *view);
    std::string obstacle = matched.obstacle;
    at::Tensor matrix = view->tensor;
    const bool conv_of_one = matched.form == LinearForm::kConv1d && matrix.dim() == 3 && matrix.size(2) == 1;
    if (conv_of_one) matrix = matrix.squeeze(2);
    if (matrix.dim() == 1) return;  // a product with a vector
    if (matrix.dim() != 2) {
      if (obstacle.empty()) obstacle = fmt::format("its weight has {} dimensions", matrix.dim());
      matrix = matrix.flatten(1);
    } else if (matched.transposed) {
      matrix = matrix.t();
    }
    if (view->expanded != node.is("aten::bmm") && obstacle.empty()) obstacle = "its weight is repeated";
    if (obstacle.empty()) obstacle = weight_obstacle(*view, matrix);
    add_use(layer_at(key_of(matrix, view->dtype, matched.kind), node, describe(*view, matrix, matched.kind)),
            node, matched, obstacle);
  }

  std::string weight_obstacle(const WeightView& view, const at::Tensor& matrix) const {
    if (written_.contains(input(view.input).target)) return "the graph writes to its weight";
    if (matrix.numel() == 0) return "its weight is empty";
    return {};
  }

  GraphLayer describe(const WeightView& view, const at::Tensor& matrix, std::string_view kind) const {
    const std::string& target = input(view.input).target;
    GraphLayer layer;
    layer.base = target + describe_part(view.tensor, tensors_->find(target)->second);
    layer.info = {layer_of_tensor(part_name(layer.base, "weight")), std::string(kind), matrix.size(0),
                  matrix.size(1)};
    layer.matrix = matrix;
    layer.dtype = view.dtype;
    layer.bytes = bytes_of(matrix);
    return layer;
  }

  /// A weight that the graph computes from stored tensors only: reported, not quantized.
  void add_computed(Node& node, const MatchedLayer& matched) {
    const auto root = tracer_.constant_root(matched.weight);
    if (!root || !matched.weight->meta() || !c10::isFloatingType(matched.weight->meta()->dtype)) return;
    const auto& sizes = matched.weight->meta()->sizes;
    if (sizes.size() != 2 || !sizes[0].is_constant() || !sizes[1].is_constant()) return;
    const Node* producer = matched.weight->producer();
    GraphLayer layer;
    layer.info = {layer_of_tensor(part_name(input(*root).target, "weight")), std::string(matched.kind),
                  sizes[0].constant(), sizes[1].constant()};
    if (matched.transposed) std::swap(layer.info.n, layer.info.k);
    layer.bytes =
        layer.info.n * layer.info.k * static_cast<int64_t>(c10::elementSize(matched.weight->meta()->dtype));
    const WeightKey key{matched.weight, 0, {}, {}, matched.weight->meta()->dtype, layer.info.kind};
    const std::string obstacle = producer != nullptr
                                     ? fmt::format("its weight is computed by {}", producer->target())
                                     : "the model holds no tensor for its weight";
    add_use(layer_at(key, node, std::move(layer)), node, matched, obstacle);
  }

  void add_quantized(Node& node) {
    const auto quantized = try_quantized_node(node);
    if (!quantized) return;
    GraphLayer layer;
    layer.info = quantized->layer;
    layer.state.already = quantized->config;
    layer.state.from_graph = true;
    const Value* weight = nullptr;
    for (const NamedArgument& operand : node.inputs()) {
      if (operand.name == "x" || operand.name == "indices" || operand.name == "bias") continue;
      const Argument::List single = {operand.value};
      for (const Argument& item : operand.value.list() != nullptr ? *operand.value.list() : single) {
        const auto view = tracer_.trace(item.value());
        if (!view) continue;
        if (weight == nullptr) weight = item.value();
        layer.bytes += bytes_of(view->tensor);
      }
    }
    layer_at({weight, 0, {}, {}, c10::ScalarType::Undefined, layer.info.kind}, node, std::move(layer));
  }

  /// The linears inside cond, while_loop, …: reported, not quantized. Subgraphs see only their own inputs,
  /// which are the operands in order, lists taken apart. `outer`: what the inputs of the node's own graph
  /// stand for; nullptr: themselves.
  void add_subgraphs(const Node& node, const Operands* outer, const std::string& builtin) {
    if (node.op() != nullptr) return;
    Operands operands;
    for (const NamedArgument& operand : node.inputs()) {
      if (operand.value.list() == nullptr) continue;
      for (const Argument& item : *operand.value.list()) operands.push_back(resolve(item.value(), outer));
    }
    for (const NamedArgument& operand : node.inputs()) {
      const auto* graph = operand.value.get_if<std::shared_ptr<Graph>>();
      if (graph == nullptr || *graph == nullptr) continue;
      for (const auto& inner : (*graph)->nodes()) {
        add_subgraphs(*inner, &operands, builtin);
        if (const auto matched = try_match_layer(*inner)) add_inner(*inner, *matched, operands, builtin);
      }
    }
  }

  /// The value of the module's graph that an operand inside a subgraph is a view of; nullptr if there is
  /// none.
  static const Value* resolve(const Value* value, const Operands* outer) {
    if (outer == nullptr) return value;
    while (value != nullptr && value->producer() != nullptr) {
      const Node& producer = *value->producer();
      const bool one_operand = producer.op() != nullptr && producer.input_values().size() == 1;
      value = one_operand ? producer.input(0).value() : nullptr;
    }
    return value != nullptr && value->index() < outer->size() ? (*outer)[value->index()] : nullptr;
  }

  void add_inner(Node& node, const MatchedLayer& matched, const Operands& operands,
                 const std::string& builtin) {
    const Value* weight = resolve(matched.weight, &operands);
    const auto view = weight != nullptr ? tracer_.trace(weight) : std::nullopt;
    if (!view || !view->tensor.is_floating_point() || view->tensor.dim() != 2 || view->expanded) return;
    MatchedLayer inner = matched;
    // Which way round the weight is stands in the subgraph; for the report its stored form is as good.
    const WeightKey key = key_of(view->tensor, view->dtype, matched.kind);
    add_use(layer_at(key, node, describe(*view, view->tensor, matched.kind)), node, inner,
            fmt::format("it stands inside a graph of {}", builtin));
  }

  /// A tied weight gives one name to a linear and to an embedding; the layers that the nodes come from tell
  /// them apart.
  void tell_kinds_apart() {
    std::map<std::string, std::unordered_set<std::string>> kinds;
    for (const GraphLayer& layer : layers_) kinds[layer.info.name].insert(layer.info.kind);
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (kinds.at(layers_[i].info.name).size() > 1 && !sources_[i].empty())
        layers_[i].info.name = sources_[i];
    }
  }

  const GraphModule& module_;
  std::shared_ptr<const TensorMap> tensors_;
  WeightTracer tracer_;
  std::unordered_set<std::string> written_;
  std::map<WeightKey, size_t> index_;
  std::vector<GraphLayer> layers_;
  std::vector<std::string> obstacles_;  ///< of each layer: the first node's that cannot be rewritten
  std::vector<std::string> sources_;    ///< of each layer: where its first node comes from
};

}  // namespace

std::vector<GraphLayer> find_layers(const GraphModule& module) {
  return Finder(module).run();
}

}  // namespace halftone
