// join_linears: linears of one input, alike in all but their weights, become one with the weights on top of
// each other; each result is a slice of the joined one. (Q, K and V; gate and up.)
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "compiler/ops/formats.h"
#include "compiler/passes/alias.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/view_chains.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

bool may_join(const Node& node) {
  if (!node.is("halftone::fused_linear") || !is_absent(node, "residual") || node.output()->users().empty())
    return false;
  for (size_t i = 1; i < node.outputs().size(); ++i) {
    if (!node.output(i)->users().empty()) return false;
  }
  const FusedFormat* format = try_fused_format(try_text(node, "format").value_or(""));
  if (format == nullptr || format->may_stack == nullptr) return true;
  const auto attributes = try_integers(node, "attributes");
  return attributes && attributes->size() == format->attributes.size() && format->may_stack(*attributes);
}

bool alike(const Node& a, const Node& b) {
  for (const std::string_view name :
       {"x", "x_scale", "x_zero_point", "format", "attributes", "activation", "symmetric"}) {
    if (operand(a, name) != operand(b, name)) return false;
  }
  return operand(a, "weight").list()->size() == operand(b, "weight").list()->size();
}

int64_t outputs_of(const Node& node) {
  return node.output()->meta()->sizes.back().constant();
}

// The parts below each other. at::cat starts OpenMP's threads, which spin while they wait, for copies of a
// millisecond; on a busy machine each cost ten. So alike parts are copied here.
at::Tensor stacked(const std::vector<at::Tensor>& parts) {
  const bool alike = std::all_of(parts.begin(), parts.end(), [&](const at::Tensor& part) {
    return part.scalar_type() == parts[0].scalar_type() && part.sizes().slice(1) == parts[0].sizes().slice(1);
  });
  if (!alike) return at::cat(parts);
  std::vector<int64_t> sizes = parts.at(0).sizes().vec();
  sizes[0] = 0;
  for (const at::Tensor& part : parts) sizes[0] += part.size(0);
  at::Tensor all = at::empty(sizes, parts[0].options().requires_grad(false));
  auto* out = static_cast<std::byte*>(all.mutable_data_ptr());
  for (const at::Tensor& part : parts) {
    const at::Tensor dense = part.contiguous();
    std::memcpy(out, dense.const_data_ptr(), dense.nbytes());
    out += dense.nbytes();
  }
  return all;
}

class Joiner {
 public:
  explicit Joiner(PassContext& context) : context_(context), constants_(context), restrider_(context.graph) {}

  bool run() {
    std::vector<Node*> left = snapshot(context_.graph);
    std::erase_if(left, [](const Node* node) {
      return !may_join(*node) || !node->output()->meta()->sizes.back().is_constant();
    });
    // By what they read first: only those can be alike.
    std::vector<std::vector<Node*>> readers;
    std::unordered_map<const Value*, size_t> known;
    for (Node* node : left) {
      const size_t index = known.try_emplace(try_tensor(*node, "x"), readers.size()).first->second;
      if (index == readers.size()) readers.emplace_back();
      readers[index].push_back(node);
    }
    for (std::vector<Node*>& some : readers) join_alike(std::move(some));
    if (joined_ > 0) context_.note("{} of linears", counted(joined_, "group"));
    return joined_ > 0;
  }

 private:
  void join_alike(std::vector<Node*> left) {
    while (!left.empty()) {
      std::vector<Node*> group, rest;
      for (Node* node : left) (alike(*left.front(), *node) ? group : rest).push_back(node);
      left = std::move(rest);
      if (group.size() > 1) try_join(std::move(group));
    }
  }

  void try_join(std::vector<Node*> group) {
    std::erase_if(group, [&](const Node* node) { return !has_constant_parts(*node); });
    int64_t total = 0;
    for (const Node* node : group) total += outputs_of(*node);
    const auto spread = [&](const std::vector<int64_t>& sizes) {
      std::vector<int64_t> strides(sizes.size(), 1);
      int64_t step = total;
      for (size_t i = sizes.size() - 1; i-- > 0; step *= sizes[i]) strides[i] = step;
      return strides;
    };
    for (const Node* node : group) {
      if (restrider_.try_restride(node->output(), LayoutChange::kSpread, spread)) continue;
      context_.note("%{} is not joined with {} others: it is returned, or a view needs its rows dense",
                    node->output()->name(), group.size() - 1);
      return;
    }
    if (group.size() > 1) join(group, total);
  }

  bool has_constant_parts(const Node& node) const {
    for (const Argument& part : *operand(node, "weight").list()) {
      if (!constants_.holds(part.value())) return false;
    }
    const Value* bias = try_tensor(node, "bias");
    return bias == nullptr || constants_.holds(bias);
  }

  Value* joined_part(const std::vector<Node*>& group, size_t index, const std::string& name) {
    std::vector<at::Tensor> parts;
    for (const Node* node : group)
      parts.push_back(constants_.tensor(operand(*node, "weight").list()->at(index).value()));
    return constants_.add(fmt::format("{}_part{}", name, index), stacked(parts));
  }

  Argument joined_bias(const std::vector<Node*>& group, const std::string& name) {
    const bool any =
        std::any_of(group.begin(), group.end(), [](const Node* node) { return !is_absent(*node, "bias"); });
    if (!any) return {};
    std::vector<at::Tensor> parts;
    for (const Node* node : group) {
      const at::Tensor bias = constants_.tensor(try_tensor(*node, "bias"));
      parts.push_back(bias.defined() ? bias : at::zeros({outputs_of(*node)}));
    }
    return constants_.add(name + "_bias", stacked(parts));
  }

  void join(const std::vector<Node*>& group, int64_t total) {
    Node& first = *group.front();
    const std::string name = first.output()->name() + "_joined";
    Argument::List parts;
    for (size_t i = 0; i < operand(first, "weight").list()->size(); ++i)
      parts.emplace_back(joined_part(group, i, name));
    const Argument bias = joined_bias(group, name);
    std::vector<NamedArgument> inputs = first.inputs();
    for (NamedArgument& input : inputs) {
      if (input.name == "weight") input.value = parts;
      if (input.name == "bias") input.value = bias;
    }
    std::vector<SymExpr> sizes = first.output()->meta()->sizes;
    sizes.back() = total;
    const TensorMeta meta = contiguous_meta(c10::ScalarType::Float, sizes);
    std::vector<OutputSpec> outputs = {{name, ValueType::kTensor, meta}};
    for (OutputSpec& spec : quantized_specs(name, meta, false)) outputs.push_back(std::move(spec));
    Node* joined = context_.graph.insert(&first, "halftone::fused_linear", std::move(inputs),
                                         std::move(outputs), first.source());
    int64_t start = 0;
    for (Node* node : group) {
      const int64_t end = start + outputs_of(*node);
      Node* slice =
          replace_value(node->output(), &first, "aten::slice.Tensor",
                        {{"self", joined->output()}, {"dim", int64_t{-1}}, {"start", start}, {"end", end}},
                        {}, node->source());
      TensorMeta narrow = *slice->output()->meta();
      narrow.strides = meta.strides;
      slice->output()->set_meta(std::move(narrow));
      start = end;
    }
    ++joined_;
  }

  PassContext& context_;
  Constants constants_;
  Restrider restrider_;
  size_t joined_ = 0;
};

}  // namespace

bool rewrite_join_linears(PassContext& context) {
  return Joiner(context).run();
}

}  // namespace halftone::compiler
