#include "compiler/passes/attention_match.h"

#include <algorithm>
#include <numeric>

#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

struct Product {
  Value *a = nullptr, *b = nullptr;
  Value* added = nullptr;  // of a baddbmm: added + alpha · a · b
  double alpha = 1;
};

// The four-dimensional tensor that was flattened to [b·h, …] for a bmm.
Value* try_unflattened(const Value* value, const std::vector<SymExpr>& batch) {
  Node* view = try_producer(value, {"aten::view", "aten::_unsafe_view", "aten::reshape"});
  Value* x = view != nullptr ? try_tensor(*view, "self") : nullptr;
  if (x == nullptr || rank(x) != 4 || rank(value) != 3) return nullptr;
  const auto &sizes = x->meta()->sizes, &flat = value->meta()->sizes;
  const bool same_batch = same(sizes[0], batch[0]) && same(sizes[1], batch[1]);
  return same_batch && same(sizes[2], flat[1]) && same(sizes[3], flat[2]) ? x : nullptr;
}

// The operands of a matmul, bmm or baddbmm; nothing if what is added is scaled.
std::optional<Product> try_operands(const Node* node) {
  if (node == nullptr) return std::nullopt;
  Product product;
  if (node->is("aten::baddbmm")) {
    const auto alpha = try_number(*node, "alpha"), beta = try_number(*node, "beta");
    if (!alpha || (beta != 1.0 && beta != 0.0)) return std::nullopt;
    product = {try_tensor(*node, "batch1"), try_tensor(*node, "batch2"),
               beta == 1.0 ? try_tensor(*node, "self") : nullptr, *alpha};
  } else {
    product = {try_tensor(*node, "self"), try_tensor(*node, node->is("aten::bmm") ? "mat2" : "other")};
  }
  return product.a != nullptr && product.b != nullptr ? std::optional(product) : std::nullopt;
}

// Whether a tensor that was added to [b·h, …] may be added to [b, h, …] as it is.
bool is_same_for_all_heads(const Value* added) {
  return rank(added) == 1 || rank(added) == 2 || (rank(added) == 3 && same(added->meta()->sizes[0], 1));
}

// a · b in four dimensions or, without heads, in three; in four also as a view of a bmm.
std::optional<Product> try_product(const Value* value) {
  if (value == nullptr || (rank(value) != 3 && rank(value) != 4)) return std::nullopt;
  if (const Node* plain = try_producer(value, {"aten::matmul", "aten::bmm", "aten::baddbmm"})) {
    const auto product = try_operands(plain);
    return product && rank(product->a) == rank(value) && rank(product->b) == rank(value) ? product
                                                                                         : std::nullopt;
  }
  if (rank(value) != 4) return std::nullopt;
  const Node* view = try_producer(value, {"aten::view", "aten::_unsafe_view", "aten::reshape"});
  const Node* bmm =
      view != nullptr ? try_producer(try_tensor(*view, "self"), {"aten::bmm", "aten::baddbmm"}) : nullptr;
  auto product = try_operands(bmm);
  if (!product || (product->added != nullptr && !is_same_for_all_heads(product->added))) return std::nullopt;
  const auto& flat = bmm->output()->meta();
  const auto& sizes = value->meta()->sizes;
  if (!flat || !same(flat->sizes[1], sizes[2]) || !same(flat->sizes[2], sizes[3])) return std::nullopt;
  product->a = try_unflattened(product->a, sizes);
  product->b = try_unflattened(product->b, sizes);
  return product->a != nullptr && product->b != nullptr ? product : std::nullopt;
}

// Through copies that only lay the tensor out for a bmm.
Value* without_copies(Value* value) {
  for (;;) {
    const Node* copy = try_producer(value, {"aten::clone", "aten::contiguous"});
    Value* x = copy != nullptr ? try_tensor(*copy, "self") : nullptr;
    if (x == nullptr || !is_float(x)) return value;
    value = x;
  }
}

// x and the factor where `value` is x · factor, as often as it is scaled.
Value* unscaled(Value* value, double& scale, const Constants& constants) {
  for (;;) {
    value = without_copies(value);
    const Node* node =
        try_producer(value, {"aten::mul.Tensor", "aten::mul.Scalar", "aten::div.Tensor", "aten::div.Scalar"});
    if (node == nullptr || (node->target().starts_with("aten::div") && !is_absent(*node, "rounding_mode")))
      return value;
    Value* x = try_tensor(*node, "self");
    auto factor = constants.number(operand(*node, "other"));
    const bool divides = node->target().starts_with("aten::div");
    if (!factor && !divides) {
      x = try_tensor(*node, "other");
      factor = constants.number(operand(*node, "self"));
    }
    if (!factor || x == nullptr || !same_sizes(x, value) || *factor == 0) return value;
    scale *= divides ? 1.0 / *factor : *factor;
    value = x;
  }
}

// k where `value` is kᵀ in the last two dimensions.
Value* try_turned(const Value* value) {
  const auto last = static_cast<int64_t>(rank(value)) - 1;
  const auto positive = [&](int64_t dim) { return positive_dim(dim, rank(value)); };
  if (const Node* turn = try_producer(value, {"aten::transpose.int", "aten::transpose_copy.int"})) {
    const auto a = try_number(*turn, "dim0"), b = try_number(*turn, "dim1");
    if (!a || !b) return nullptr;
    const auto x = positive(static_cast<int64_t>(*a)), y = positive(static_cast<int64_t>(*b));
    return std::min(x, y) == last - 1 && std::max(x, y) == last ? try_tensor(*turn, "self") : nullptr;
  }
  if (const Node* turn = try_producer(value, {"aten::permute", "aten::permute_copy"})) {
    const auto dims = try_integers(*turn, "dims");
    if (!dims || dims->size() != rank(value)) return nullptr;
    std::vector<int64_t> wanted(dims->size());
    std::iota(wanted.begin(), wanted.end(), 0);
    std::swap(wanted[wanted.size() - 1], wanted[wanted.size() - 2]);
    const bool turns = std::equal(dims->begin(), dims->end(), wanted.begin(),
                                  [&](int64_t dim, int64_t want) { return positive(dim) == want; });
    return turns ? try_tensor(*turn, "self") : nullptr;
  }
  if (const Node* turn = try_producer(value, {"aten::mT"})) return try_tensor(*turn, "self");
  return nullptr;
}

// One mask between the scores and the softmax; the scores below it.
Value* try_unmasked(const Value* scores, std::vector<AttentionMask>& masks, const Constants& constants) {
  const Node* node = scores->producer();
  if (node == nullptr) return nullptr;
  using Kind = AttentionMask::Kind;
  if (node->is("aten::add.Tensor") && try_number(*node, "alpha") == 1.0) {
    Value *a = try_tensor(*node, "self"), *b = try_tensor(*node, "other");
    if (a == nullptr || b == nullptr) return nullptr;
    // The mask is the operand that is broadcast or, where both have the sizes, the second.
    if (!same_sizes(a, scores) || try_producer(b, {"aten::matmul", "aten::bmm"}) != nullptr) std::swap(a, b);
    if (!same_sizes(a, scores)) return nullptr;
    masks.push_back({b, Kind::kAsIs});
    return a;
  }
  if (node->is("aten::masked_fill.Scalar") || node->is("aten::masked_fill.Tensor")) {
    const auto fill = constants.number(operand(*node, "value"));
    Value *x = try_tensor(*node, "self"), *mask = try_tensor(*node, "mask");
    if (!fill || x == nullptr || mask == nullptr || !same_sizes(x, scores)) return nullptr;
    masks.push_back({mask, Kind::kHides, *fill});
    return x;
  }
  if (node->target().starts_with("aten::where")) {
    Value *mask = try_tensor(*node, "condition"), *a = try_tensor(*node, "self"),
          *b = try_tensor(*node, "other");
    const auto kept = constants.number(operand(*node, "other")),
               hidden = constants.number(operand(*node, "self"));
    if (mask == nullptr) return nullptr;
    if (a != nullptr && kept && same_sizes(a, scores)) {
      masks.push_back({mask, Kind::kKeeps, *kept});
      return a;
    }
    if (b != nullptr && hidden && same_sizes(b, scores)) {
      masks.push_back({mask, Kind::kHides, *hidden});
      return b;
    }
  }
  return nullptr;
}

// The softmax behind the weights of v; also behind the guard that makes rows without any finite score zero:
// where(not any(scores != -inf), 0, softmax(scores)).
Node* try_softmax(Value* weights) {
  weights = without_copies(weights);
  if (const Node* guard = try_producer(weights, {"aten::where.self"})) {
    const Node* zeros =
        try_producer(try_tensor(*guard, "self"), {"aten::full_like", "aten::full", "aten::zeros_like"});
    const Node* none = try_producer(try_tensor(*guard, "condition"), {"aten::logical_not"});
    const Node* any = none != nullptr ? try_producer(try_tensor(*none, "self"), {"aten::any.dim"}) : nullptr;
    const bool zero =
        zeros != nullptr && (zeros->is("aten::zeros_like") || try_number(*zeros, "fill_value") == 0.0);
    if (any == nullptr || !zero) return nullptr;
    weights = try_tensor(*guard, "other");
  }
  Node* softmax = try_producer(weights, {"aten::softmax.int", "aten::_softmax", "aten::_safe_softmax"});
  if (softmax == nullptr) return nullptr;
  const auto dim = try_number(*softmax, "dim");
  const bool plain =
      is_absent(*softmax, "dtype") && try_flag(*softmax, "half_to_float").value_or(false) == false;
  const size_t dims = rank(weights);
  return dim && plain && positive_dim(static_cast<int64_t>(*dim), dims) + 1 == static_cast<int64_t>(dims)
             ? softmax
             : nullptr;
}

// The tensor whose heads were repeated, each next to itself, or nullptr.
Value* try_ungrouped(Value* value) {
  if (const Node* repeat = try_producer(value, {"aten::repeat_interleave.self_int"})) {
    const auto dim = try_number(*repeat, "dim");
    return dim && positive_dim(static_cast<int64_t>(*dim), 4) == 1 ? try_tensor(*repeat, "self") : nullptr;
  }
  const Node* merge =
      try_producer(value, {"aten::view", "aten::_unsafe_view", "aten::reshape", "aten::flatten.using_ints"});
  Value* repeated = merge != nullptr ? try_tensor(*merge, "self") : nullptr;
  if (repeated == nullptr || rank(repeated) != 5) return nullptr;
  const Node* expand = try_producer(without_copies(repeated), {"aten::expand"});
  const Node* insert =
      expand != nullptr ? try_producer(try_tensor(*expand, "self"), {"aten::unsqueeze"}) : nullptr;
  Value* x = insert != nullptr ? try_tensor(*insert, "self") : nullptr;
  if (x == nullptr || rank(x) != 4 || rank(expand->output()) != 5) return nullptr;
  const auto dim = try_number(*insert, "dim");
  if (!dim || positive_dim(static_cast<int64_t>(*dim), 5) != 2) return nullptr;
  for (const size_t kept : {0, 2, 3}) {
    if (!same(x->meta()->sizes[kept], value->meta()->sizes[kept])) return nullptr;
  }
  return x;
}

}  // namespace

void share_heads(AttentionMatch& match) {
  if (match.k == nullptr || match.v == nullptr || rank(match.k) != 4 || rank(match.v) != 4) return;
  Value *k = try_ungrouped(match.k), *v = try_ungrouped(match.v);
  if (k == nullptr || v == nullptr || rank(k) != 4 || rank(v) != 4) return;
  match.k = k;
  match.v = v;
}

std::optional<AttentionMatch> try_match_attention(const Node& node, const Constants& constants,
                                                  const PassContext& context) {
  const auto outer = try_product(node.output());
  Node* softmax = outer && outer->added == nullptr && outer->alpha == 1 ? try_softmax(outer->a) : nullptr;
  if (softmax == nullptr) return std::nullopt;
  AttentionMatch match;
  match.result = node.output();
  if (only_user(softmax->output()) == nullptr) {
    // They would be computed twice.
    context.note("%{} is no attention: its weights are a result too", match.result->name());
    return std::nullopt;
  }
  Value* scores = try_tensor(*softmax, "self");
  while (scores != nullptr && !try_product(without_copies(scores))) {
    scores = without_copies(scores);
    Value* below = try_unmasked(scores, match.masks, constants);
    if (below == nullptr) {
      // A factor above a mask would scale the mask too.
      below = unscaled(scores, match.scale, constants);
      if (below == scores || !try_product(without_copies(below))) {
        context.note("%{} is no attention: between the products stands {}", match.result->name(),
                     scores->producer() != nullptr ? scores->producer()->target() : "an input");
        return std::nullopt;
      }
    }
    scores = below;
  }
  const auto inner = scores != nullptr ? try_product(without_copies(scores)) : std::nullopt;
  if (!inner) return std::nullopt;
  if (inner->added != nullptr) {
    if (match.scale != 1) {
      context.note("%{} is no attention: the sum of scores and mask is scaled", match.result->name());
      return std::nullopt;
    }
    match.masks.push_back({inner->added});
  }
  match.scale *= inner->alpha;
  match.q = unscaled(inner->a, match.scale, constants);
  Value* turned = unscaled(inner->b, match.scale, constants);
  Value* k = try_turned(turned);
  if (k == nullptr) {
    context.note("%{} is no attention: its keys are not transposed", match.result->name());
    return std::nullopt;
  }
  match.k = unscaled(k, match.scale, constants);
  match.v = without_copies(outer->b);
  share_heads(match);
  return match;
}

}  // namespace halftone::compiler
