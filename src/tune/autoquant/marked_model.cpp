#include "tune/autoquant/marked_model.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/errors.h"
#include "graph/ir/read_node.h"
#include "graph/operators/op_traits.h"
#include "quant/select/layer_chooser.h"

namespace halftone::aq {
namespace {

/// Layers that are one group, by union of those that share a value.
std::vector<size_t> leaders_of(const std::vector<GraphLayer>& layers) {
  std::vector<size_t> leader(layers.size());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](size_t i) {
    while (leader[i] != i) i = leader[i];
    return i;
  };
  std::map<const Value*, size_t> first_reader;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const LayerUse& use : layers[i].uses) {
      const auto [place, fresh] = first_reader.emplace(before_reshapes(input_of(*use.node)), i);
      if (fresh) continue;
      const size_t a = find(place->second), b = find(i);
      leader[std::max(a, b)] = std::min(a, b);
    }
  }
  for (size_t i = 0; i < leader.size(); ++i) leader[i] = find(i);
  return leader;
}

std::vector<Site> sites_of(const Graph& graph, const std::vector<const GraphLayer*>& layers) {
  std::vector<Site> sites;
  for (const auto& node : graph.nodes()) {
    for (const GraphLayer* layer : layers) {
      const bool uses = std::any_of(layer->uses.begin(), layer->uses.end(),
                                    [&](const LayerUse& use) { return use.node == node.get(); });
      if (!uses) continue;
      const Value* x = before_reshapes(input_of(*node));
      const auto found =
          std::find_if(sites.begin(), sites.end(), [&](const Site& site) { return site.x == x; });
      if (found != sites.end()) {
        found->linears.push_back(node.get());
      } else {
        sites.push_back({x, {node.get()}});
      }
    }
  }
  return sites;
}

void form_groups(MarkedModel& model) {
  model.groups.clear();
  model.weights = 0;
  const std::vector<size_t> leaders = leaders_of(model.layers);
  std::map<size_t, size_t> index;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const auto [place, fresh] = index.emplace(leaders[i], model.groups.size());
    if (fresh) model.groups.emplace_back();
    model.groups[place->second].layers.push_back(i);
    model.weights += model.layers[i].info.n * model.layers[i].info.k;
  }
  for (Group& group : model.groups) {
    std::vector<const GraphLayer*> layers;
    for (const size_t i : group.layers) layers.push_back(&model.layers[i]);
    group.sites = sites_of(model.module->graph(), layers);
  }
}

}  // namespace

const Value* before_reshapes(const Value* value) {
  while (value->producer() != nullptr && has_trait(*value->producer(), OpTrait::kReshape) &&
         value->producer()->input(0).value() != nullptr)
    value = value->producer()->input(0).value();
  return value;
}

Value* input_of(const Node& linear) {
  for (const char* name : {"input", "mat1", "self"}) {
    // addmm's "self" is its bias; "mat1" is asked for before it.
    if (Value* x = try_tensor(linear, name)) return x;
  }
  fail(ErrorCode::kInternal, "%{}: a {} without an input", linear.output()->name(), linear.target());
}

void fail_not_autoquantizable(const std::string& type) {
  fail(ErrorCode::kInvalidArgument, "NotAutoquantizable: found no autoquantizable layers in model {}", type);
}

MarkedModel mark(const GraphModule& module, const std::string& include, const std::string& exclude,
                 const std::string& type) {
  MarkedModel model;
  model.module = module.clone();
  model.module->mutable_graph();
  QuantizeOptions options;
  options.include = include;
  options.exclude = exclude;
  LayerChooser chooser(Int8WeightOnlyConfig{}, options);
  for (GraphLayer& layer : find_layers(*model.module)) {
    // One that is quantized already stays as it is, whatever the config asked for here is.
    if (layer.state.already || !layer.state.convolution.empty())
      continue;  // convolutions: nothing to choose from
    if (chooser.choose(layer.info, layer.state).outcome == LayerReport::Outcome::kQuantized)
      model.layers.push_back(std::move(layer));
  }
  const bool filtered = !include.empty() || !exclude.empty();
  if (!model.layers.empty() || filtered) chooser.finish();  // a pattern that matched nothing, or too much
  if (model.layers.empty()) fail_not_autoquantizable(type);
  form_groups(model);
  return model;
}

void keep_only(MarkedModel& model, const std::vector<std::string>& names) {
  std::erase_if(model.layers, [&](const GraphLayer& layer) {
    return std::find(names.begin(), names.end(), layer.info.name) == names.end();
  });
  form_groups(model);
}

}  // namespace halftone::aq
