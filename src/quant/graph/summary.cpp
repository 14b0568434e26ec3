// summarize(): layers, totals, inputs and outputs of a model.
#include "halftone/cli/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "graph/ir/text_names.h"
#include "quant/graph/quantized_node.h"

namespace halftone {
namespace {

constexpr size_t kMaxOps = 6;  // kinds that the table names

// "aten::add.Tensor" → "add"
std::string short_name(std::string_view target) {
  const size_t colons = target.find("::");
  if (colons != std::string_view::npos) target.remove_prefix(colons + 2);
  return std::string(target.substr(0, target.find('.')));
}

struct TensorSize {
  int64_t elements = 0;
  int64_t bytes = 0;
};

class Summarizer {
 public:
  explicit Summarizer(const GraphModule& module)
      : module_(module), graph_(module.graph()), tensors_(module.tensors()) {
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind != InputKind::kUser) stored_[input.value] = &input;
    }
    for (const auto& node : graph_.nodes()) count_quantized(*node);
  }

  ModelSummary run() {
    for (const auto& node : graph_.nodes()) group_of(node->source()).members.push_back(node.get());
    for (const Group& group : groups_) summary_.layers.push_back(summarize_layer(group));
    for (const LayerSummary& layer : summary_.layers) summary_.nodes += layer.nodes;
    count_tensors();
    describe_inputs();
    describe_outputs();
    return std::move(summary_);
  }

 private:
  struct Group {
    Source source;
    std::vector<const Node*> members;
  };

  Group& group_of(const Source& source) {
    const auto [place, fresh] = index_.emplace(source.layer, groups_.size());
    if (fresh) groups_.push_back({source, {}});
    return groups_[place->second];
  }

  /// A quantized weight has as many parameters as the one that it stands for, its scales and zero points
  /// none.
  void count_quantized(const Node& node) {
    const bool is_static = is_static_int8_layer(node);
    const auto quantized = is_static ? std::nullopt : try_quantized_node(node);
    if (!is_static && !quantized) return;
    const Value* weight = is_static ? node.try_input("weight")->value() : quantized->weight;
    constexpr std::array<std::string_view, 5> kParts = {"weight", "scale", "zero_point", "weight_scale",
                                                        "parts"};
    for (const NamedArgument& operand : node.inputs()) {
      if (std::find(kParts.begin(), kParts.end(), operand.name) == kParts.end()) continue;
      if (const Value* part = operand.value.value(); part != nullptr && part != weight) elements_[part] = 0;
      if (operand.value.list() == nullptr) continue;
      for (const Argument& item : *operand.value.list())
        if (item.value() != nullptr && item.value() != weight) elements_[item.value()] = 0;
    }
    if (quantized && quantized->layer.n > 0 && quantized->layer.k > 0)
      elements_[weight] = is_counted(weight) ? 0 : quantized->layer.n * quantized->layer.k;
  }

  /// Whether the weight that this tensor stands for is there as well: whole, for another layer that shares
  /// it, or quantized in another way.
  bool is_counted(const Value* weight) {
    const auto input = stored_.find(weight);
    if (input == stored_.end()) return false;
    const std::string layer = layer_of_tensor(input->second->target);
    const auto first = quantized_layers_.emplace(layer, weight).first;
    return first->second != weight || tensors_->contains(layer) || tensors_->contains(layer + ".weight");
  }

  TensorSize size_of(const GraphInput& input) const {
    const auto found = tensors_->find(input.target);
    if (found == tensors_->end()) return {};
    const auto counted = elements_.find(input.value);
    return {counted != elements_.end() ? counted->second : found->second.numel(),
            static_cast<int64_t>(found->second.nbytes())};
  }

  LayerSummary summarize_layer(const Group& group) const {
    LayerSummary layer{group.source.layer, group.source.module_type};
    std::vector<std::pair<std::string, size_t>> counts;
    std::unordered_map<std::string, size_t> places;
    std::unordered_set<const Value*> parameters;
    for (const Node* node : group.members) {
      count_ops(*node, layer, counts, places);
      if (layer.quantizable.empty()) layer.quantizable = quantizable_as(*node);
      for (const Value* value : node->input_values()) {
        const auto found = stored_.find(value);
        if (found == stored_.end() || found->second->kind != InputKind::kParameter) continue;
        if (!parameters.insert(value).second) continue;
        const TensorSize size = size_of(*found->second);
        layer.parameters += size.elements;
        layer.parameter_bytes += size.bytes;
      }
    }
    layer.ops = list_ops(counts);
    describe_shapes(group, layer);
    return layer;
  }

  static void count_ops(const Node& node, LayerSummary& layer,
                        std::vector<std::pair<std::string, size_t>>& counts,
                        std::unordered_map<std::string, size_t>& places) {
    ++layer.nodes;
    const auto [place, fresh] = places.emplace(short_name(node.target()), counts.size());
    if (fresh) counts.emplace_back(place->first, 0);
    ++counts[place->second].second;
    for (const NamedArgument& input : node.inputs()) {
      const auto* subgraph = input.value.get_if<std::shared_ptr<Graph>>();
      if (subgraph == nullptr || *subgraph == nullptr) continue;
      for (const auto& inner : (*subgraph)->nodes()) count_ops(*inner, layer, counts, places);
    }
  }

  static std::string list_ops(const std::vector<std::pair<std::string, size_t>>& counts) {
    std::string text;
    for (size_t i = 0; i < std::min(counts.size(), kMaxOps); ++i) {
      if (i != 0) text += ", ";
      text += counts[i].first;
      if (counts[i].second > 1) text += fmt::format(" ×{}", counts[i].second);
    }
    if (counts.size() > kMaxOps) text += fmt::format(", {} more", counts.size() - kMaxOps);
    return text;
  }

  void describe_shapes(const Group& group, LayerSummary& layer) const {
    const std::unordered_set<const Node*> members(group.members.begin(), group.members.end());
    for (const Node* node : group.members) {
      for (const Value* value : node->input_values()) {
        const bool outside = value->producer() == nullptr || !members.contains(value->producer());
        if (outside && layer.input_shape.empty() && value->type() == ValueType::kTensor &&
            !stored_.contains(value)) {
          layer.input_shape = format_shape(*value);
        }
      }
      for (const Value* output : node->outputs()) {
        const bool leaves = std::any_of(output->users().begin(), output->users().end(),
                                        [&](const Node* user) { return !members.contains(user); });
        if (leaves && output->type() == ValueType::kTensor) layer.output_shape = format_shape(*output);
      }
    }
  }

  // The parameter behind a weight operand; exports without linear ops reach it through a transposition.
  const GraphInput* parameter_behind(const Argument* argument) const {
    constexpr std::array<std::string_view, 6> kViews = {"aten::t",       "aten::transpose.int",
                                                        "aten::permute", "aten::numpy_T",
                                                        "aten::detach",  "aten::contiguous"};
    const Value* value = argument ? argument->value() : nullptr;
    while (value != nullptr) {
      const auto found = stored_.find(value);
      if (found != stored_.end())
        return found->second->kind == InputKind::kParameter ? found->second : nullptr;
      const Node* producer = value->producer();
      if (producer == nullptr || producer->inputs().empty()) return nullptr;
      if (std::find(kViews.begin(), kViews.end(), producer->target()) == kViews.end()) return nullptr;
      value = producer->input(0).value();
    }
    return nullptr;
  }

  bool is_floating_weight(const Argument* argument) const {
    const GraphInput* parameter = parameter_behind(argument);
    if (parameter == nullptr) return false;
    const auto found = tensors_->find(parameter->target);
    if (found != tensors_->end()) return found->second.is_floating_point() && found->second.dim() >= 2;
    const auto& meta = parameter->value->meta();
    return meta && c10::isFloatingType(meta->dtype) && meta->sizes.size() >= 2;
  }

  std::string quantizable_as(const Node& node) const {
    struct Rule {
      std::string_view target;
      std::string_view weight;
      std::string_view kind;
    };
    constexpr std::array kRules = {
        Rule{"aten::linear", "weight", "linear"},
        Rule{"aten::addmm", "mat2", "linear"},
        Rule{"aten::mm", "mat2", "linear"},
        Rule{"aten::matmul", "other", "linear"},
        Rule{"aten::embedding", "weight", "embedding"},
        Rule{"aten::embedding_bag", "weight", "embedding"},
        Rule{"aten::embedding_bag.padding_idx", "weight", "embedding"},
        Rule{"aten::_embedding_bag", "weight", "embedding"},
        Rule{"aten::_embedding_bag_forward_only", "weight", "embedding"},
        Rule{"aten::conv1d", "weight", "conv"},
        Rule{"aten::conv2d", "weight", "conv"},
        Rule{"aten::conv3d", "weight", "conv"},
        Rule{"aten::conv1d.padding", "weight", "conv"},
        Rule{"aten::conv2d.padding", "weight", "conv"},
        Rule{"aten::conv3d.padding", "weight", "conv"},
        Rule{"aten::convolution", "weight", "conv"},
    };
    for (const Rule& rule : kRules) {
      if (node.is(rule.target) && is_floating_weight(node.try_input(rule.weight)))
        return std::string(rule.kind);
    }
    return {};
  }

  void count_tensors() {
    std::set<std::tuple<const void*, int64_t, int64_t>> seen;  // memory, its beginning, its length
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind == InputKind::kUser) continue;
      const TensorSize size = size_of(input);
      const auto found = tensors_->find(input.target);
      if (found != tensors_->end() && found->second.has_storage() && size.bytes > 0) {
        const at::Tensor& tensor = found->second;
        const void* storage = tensor.storage().unsafeGetStorageImpl();
        if (!seen.emplace(storage, tensor.storage_offset(), size.bytes).second) {
          summary_.tied_parameters += input.kind == InputKind::kParameter;
          continue;
        }
      }
      add_tensor(input.kind, size);
    }
  }

  void add_tensor(InputKind kind, const TensorSize& size) {
    const bool constant = kind == InputKind::kConstant;
    const bool parameter = kind == InputKind::kParameter;
    (parameter ? summary_.parameters : constant ? summary_.constants : summary_.buffers) += size.elements;
    (parameter  ? summary_.parameter_bytes
     : constant ? summary_.constant_bytes
                : summary_.buffer_bytes) += size.bytes;
  }

  static void describe_type(const Value& value, std::string& dtype, std::string& sizes) {
    if (value.type() == ValueType::kTensor && value.meta()) {
      dtype = dtype_name(value.meta()->dtype);
      sizes = format_sizes(value.meta()->sizes);
    } else {
      dtype = to_string(value.type());
    }
  }

  void describe_inputs() {
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind != InputKind::kUser) continue;
      InputSummary described{input.target};
      describe_type(*input.value, described.dtype, described.sizes);
      if (const auto& meta = input.value->meta()) {
        for (size_t i = 0; i < meta->sizes.size(); ++i) {
          if (meta->sizes[i].is_constant()) continue;
          DynamicDimension dimension{i, meta->sizes[i].to_string(), std::nullopt};
          const auto range = meta->sizes[i].is_symbol() ? module_.ranges.find(meta->sizes[i].symbol())
                                                        : module_.ranges.end();
          if (range != module_.ranges.end()) dimension.range = range->second;
          described.dynamic.push_back(std::move(dimension));
        }
      }
      summary_.inputs.push_back(std::move(described));
    }
  }

  void describe_outputs() {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (graph_.outputs()[i].kind != OutputKind::kUser) continue;
      OutputSummary described;
      if (const Value* value = graph_.output_value(i).value()) {
        describe_type(*value, described.dtype, described.sizes);
      } else {
        described.dtype = graph_.output_value(i).is_none() ? "none" : "constant";
      }
      summary_.outputs.push_back(std::move(described));
    }
    const std::vector<std::string> paths = module_.call_spec().result.leaf_paths();
    for (size_t i = 0; i < std::min(paths.size(), summary_.outputs.size()); ++i)
      summary_.outputs[i].path = paths[i];
  }

  const GraphModule& module_;
  const Graph& graph_;
  std::shared_ptr<const TensorMap> tensors_;
  std::unordered_map<const Value*, const GraphInput*> stored_;
  std::unordered_map<std::string, const Value*> quantized_layers_;
  std::unordered_map<const Value*, int64_t> elements_;  ///< where they are not those of the stored tensor
  std::unordered_map<std::string, size_t> index_;
  std::vector<Group> groups_;
  ModelSummary summary_;
};

}  // namespace

ModelSummary summarize(const GraphModule& module) {
  return Summarizer(module).run();
}

std::string format_sizes(const std::vector<SymExpr>& sizes) {
  std::string text = "[";
  for (const SymExpr& size : sizes) {
    if (text.size() > 1) text += ", ";
    text += size.to_string();
  }
  return text + "]";
}

std::string format_shape(const Value& value) {
  if (value.type() != ValueType::kTensor || !value.meta()) return std::string(to_string(value.type()));
  return std::string(dtype_name(value.meta()->dtype)) + format_sizes(value.meta()->sizes);
}

std::string format_range(const SymbolRange& range) {
  // Exported files write "no bound" as a number near the largest one.
  constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max() / 2;
  return range.max >= kUnbounded ? fmt::format("{}…", range.min) : fmt::format("{}…{}", range.min, range.max);
}

}  // namespace halftone
