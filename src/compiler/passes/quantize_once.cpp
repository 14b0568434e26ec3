// quantize_once: an activation that int8 linears read is quantized where it is made: a norm or a linear
// writes quantized rows itself; anything else that several linears read is quantized once before them. Same
// bytes as if each linear did it.
#include <map>

#include "compiler/ops/formats.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

struct Key {
  Value* x;
  bool symmetric;
  auto operator<=>(const Key&) const = default;
};

// In the graph's order, which addresses have not.
struct Readers {
  Key key;
  std::vector<Node*> linears;
};

bool takes_quantized_rows(const Node& node) {
  if (!node.is("halftone::fused_linear")) return false;
  const FusedFormat* format = try_fused_format(try_text(node, "format").value_or(""));
  return format != nullptr && format->takes_quantized_rows;
}

std::vector<Readers> find_readers(const Graph& graph) {
  std::vector<Readers> all;
  std::map<Key, size_t> index;
  for (const auto& node : graph.nodes()) {
    if (!takes_quantized_rows(*node) || !is_absent(*node, "x_scale")) continue;
    const auto attributes = try_integers(*node, "attributes");
    Value* x = try_tensor(*node, "x");
    if (x == nullptr || !is_float(x) || !attributes || attributes->size() != 2) continue;
    const Key key{x, attributes->back() != 0};
    const auto [place, fresh] = index.emplace(key, all.size());
    if (fresh) all.push_back({key, {}});
    all[place->second].linears.push_back(node.get());
  }
  return all;
}

// The first of three outputs q, scale, zero_point of the node that makes x; -1 if it makes none or they
// are taken.
int quantized_outputs(const Value* x, bool symmetric) {
  const Node* maker = try_producer(x, {"halftone::norm", "halftone::fused_linear"});
  if (maker == nullptr || x->index() != 0) return -1;
  const int first = maker->is("halftone::norm") ? 2 : 1;
  bool used = false;
  for (int i = first; i < first + 3; ++i)
    used = used || !maker->output(static_cast<size_t>(i))->users().empty();
  return !used || try_flag(*maker, "symmetric") == symmetric ? first : -1;
}

}  // namespace

bool rewrite_quantize_once(PassContext& context) {
  size_t made = 0, shared = 0;
  for (const auto& [key, linears] : find_readers(context.graph)) {
    Node* maker = key.x->producer();
    int first = quantized_outputs(key.x, key.symmetric);
    if (first >= 0) {
      set_operand(*maker, "symmetric", key.symmetric);
      TensorMeta bytes = *maker->output(static_cast<size_t>(first))->meta();
      bytes.dtype = key.symmetric ? c10::ScalarType::Char : c10::ScalarType::Byte;
      maker->output(static_cast<size_t>(first))->set_meta(std::move(bytes));
      ++made;
    } else if (linears.size() > 1) {
      maker = context.graph.insert(
          linears.front(), "halftone::quantize_rows", {{"x", key.x}, {"symmetric", key.symmetric}},
          quantized_specs(key.x->name(), *key.x->meta(), key.symmetric), linears.front()->source());
      first = 0;
      ++shared;
    } else {
      continue;  // the linear's own quantization is as good
    }
    for (Node* linear : linears) {
      const auto output = [&](int i) { return maker->output(static_cast<size_t>(first + i)); };
      set_operand(*linear, "x", output(0));
      set_operand(*linear, "x_scale", output(1));
      set_operand(*linear, "x_zero_point", output(2));
    }
  }
  if (made + shared > 0)
    context.note("{} quantized where made, {} once for several linears", counted(made, "activation"), shared);
  return made + shared > 0;
}

}  // namespace halftone::compiler
