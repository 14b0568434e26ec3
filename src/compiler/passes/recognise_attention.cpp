// recognise_attention: aten::scaled_dot_product_attention, and softmax(q · kᵀ · scale + mask) · v in other
// spellings, become halftone::attention. One thing differs on purpose: where a mask leaves a row nothing to
// look at, the spelled form gives NaN and attention gives what aten::scaled_dot_product_attention gives.
#include <array>
#include <cmath>
#include <numeric>

#include "compiler/passes/alias.h"
#include "compiler/passes/attention_match.h"
#include "compiler/passes/match.h"
#include "compiler/passes/view_chains.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kAsGoodAsHidden = -1e8;

class AttentionRewriter {
 public:
  explicit AttentionRewriter(PassContext& context)
      : context_(context), constants_(context), aliases_(context.graph), restrider_(context.graph) {}

  bool run() {
    for (Node* node : snapshot(context_.graph)) {
      if (node->op() == nullptr || node->outputs().empty() || node->output()->users().empty()) continue;
      auto found = node->is("aten::scaled_dot_product_attention")
                       ? try_operator(*node)
                       : try_match_attention(*node, constants_, context_);
      // Models do not use other scales, and the result for masked elements would depend on the kernel.
      if (found && found->scale > 0 && std::isfinite(found->scale)) try_replace(*found, *node);
    }
    if (found_ > 0) context_.note("{}", counted(found_, "attention"));
    return found_ > 0;
  }

 private:
  std::optional<AttentionMatch> try_operator(const Node& node) {
    AttentionMatch match;
    match.result = node.output();
    match.q = try_tensor(node, "query");
    match.k = try_tensor(node, "key");
    match.v = try_tensor(node, "value");
    const auto causal = try_flag(node, "is_causal");
    if (match.q == nullptr || match.k == nullptr || match.v == nullptr || !causal) return std::nullopt;
    if ((rank(match.q) != 3 && rank(match.q) != 4) || try_number(node, "dropout_p") != 0.0) {
      context_.note("%{} stays as it is: it drops, or has neither three nor four dimensions",
                    node.output()->name());
      return std::nullopt;
    }
    match.causal = *causal;
    if (Value* mask = try_tensor(node, "attn_mask")) match.masks.push_back({mask});
    const auto width = match.q->meta()->sizes.back().as_constant();
    const auto scale = try_number(node, "scale");
    if (!scale && (!is_absent(node, "scale") || !width)) return std::nullopt;
    match.scale = scale ? *scale : 1.0 / std::sqrt(static_cast<double>(*width));
    share_heads(match);
    return match;
  }

  std::string refusal(const AttentionMatch& match) const {
    for (const Value* value : {match.q, match.k, match.v, match.result}) {
      if (!is_float(value)) return "it is not float32";
      if (aliases_.is_written(value)) return "an operand is written";
    }
    const size_t dims = rank(match.q);
    if (rank(match.k) != dims || rank(match.v) != dims || rank(match.result) != dims)
      return "its operands differ in dimensions";
    const std::string heads = dims == 4 ? refused_heads(match) : refused_without_heads(match);
    if (!heads.empty()) return heads;
    for (const Value* value : {match.k, match.v}) {
      if (!same(value->meta()->sizes[0], match.q->meta()->sizes[0])) return "the batch is broadcast";
    }
    for (const AttentionMask& mask : match.masks) {
      if (aliases_.is_written(mask.value)) return "the mask is written";
      const auto& meta = mask.value->meta();
      if (!meta || (meta->dtype != c10::ScalarType::Float && meta->dtype != c10::ScalarType::Bool))
        return "the mask is neither float32 nor bool";
      // Added instead of put in place, it would show in rows that see nothing.
      if (mask.kind != AttentionMask::Kind::kAsIs && !(mask.fill <= kAsGoodAsHidden))
        return "masked scores are neither -inf nor below -1e8";
    }
    if (match.masks.size() > 1) return "it has several masks";
    return "";
  }

  static std::string refused_heads(const AttentionMatch& match) {
    const auto heads = match.q->meta()->sizes[1].as_constant(),
               shared = match.k->meta()->sizes[1].as_constant();
    if (!heads || !shared || *shared == 0 || *heads % *shared != 0) return "the number of heads is not known";
    return same(match.v->meta()->sizes[1], *shared) ? "" : "keys and values differ in heads";
  }
  static std::string refused_without_heads(const AttentionMatch& match) {
    for (const AttentionMask& mask : match.masks) {
      if (rank(mask.value) > 3) return "the mask has more dimensions than the scores";
    }
    // What attention gives is contiguous, and so are the products it replaces.
    return is_contiguous(match.result) ? "" : "its layout is not contiguous";
  }

  // [b, m, d] as [b, 1, m, d].
  Value* with_head(Value* value, Node& before) {
    TensorMeta meta = *value->meta();
    if (meta.strides.size() == 3)
      meta.strides.insert(meta.strides.begin() + 1,
                          SymExpr::make(SymExpr::Op::kMul, {meta.sizes[1], meta.strides[1]}));
    meta.sizes.insert(meta.sizes.begin() + 1, SymExpr(1));
    return context_.graph
        .insert(&before, "aten::unsqueeze", {{"self", value}, {"dim", int64_t{1}}},
                {{value->name() + "_head", ValueType::kTensor, std::move(meta)}}, before.source())
        ->output();
  }

  void try_replace(AttentionMatch match, Node& node) {
    const std::string why = refusal(match);
    if (!why.empty()) return context_.note("%{} is no fused attention: {}", match.result->name(), why);
    const bool without_heads = rank(match.q) == 3;
    if (without_heads) {
      for (Value** value : {&match.q, &match.k, &match.v}) *value = with_head(*value, node);
      for (AttentionMask& mask : match.masks) {
        if (rank(mask.value) == 3) mask.value = with_head(mask.value, node);
      }
    }
    Value* mask = match.masks.empty() ? nullptr : made_mask(match.masks.front(), node);
    TensorMeta meta = *match.result->meta();
    if (without_heads) meta.sizes.insert(meta.sizes.begin() + 1, SymExpr(1));
    Node* fused = context_.graph.insert(&node, "halftone::attention",
                                        {{"q", match.q},
                                         {"k", match.k},
                                         {"v", match.v},
                                         {"mask", optional_tensor(mask)},
                                         {"causal", match.causal},
                                         {"scale", match.scale}},
                                        {{"attention", ValueType::kTensor, layout(meta)}}, node.source());
    if (without_heads) {
      replace_value(match.result, &node, "aten::squeeze.dim",
                    {{"self", fused->output()}, {"dim", int64_t{1}}}, {}, node.source());
    } else if (has_layout(match.result) ||
               restrider_.try_restride(match.result, LayoutChange::kPermuted, strides)) {
      context_.graph.replace_all_uses(match.result, fused->output());
    } else {
      // A later node relies on the earlier layout.
      Node* copy = context_.graph.insert(
          &node, "aten::clone", {{"self", fused->output()}, {"memory_format", c10::MemoryFormat::Contiguous}},
          {{fused->output()->name() + "_copy", ValueType::kTensor,
            contiguous_meta(c10::ScalarType::Float, match.result->meta()->sizes)}},
          node.source());
      context_.graph.replace_all_uses(match.result, copy->output());
    }
    ++found_;
  }

  // Memory as [b, m, h, d].
  static TensorMeta layout(const TensorMeta& meta) {
    std::vector<SymExpr> turned = {meta.sizes[0], meta.sizes[2], meta.sizes[1], meta.sizes[3]};
    TensorMeta result = contiguous_meta(meta.dtype, std::move(turned));
    std::swap(result.sizes[1], result.sizes[2]);
    if (result.strides.size() == 4) std::swap(result.strides[1], result.strides[2]);
    return result;
  }
  static std::vector<int64_t> strides(const std::vector<int64_t>& sizes) {
    return {sizes[2] * sizes[1] * sizes[3], sizes[3], sizes[1] * sizes[3], 1};
  }
  static bool has_layout(const Value* value) {
    const TensorMeta expected = layout(*value->meta());
    const auto& known = value->meta()->strides;
    return known.size() == 4 &&
           std::equal(known.begin(), known.end(), expected.strides.begin(), expected.strides.end(), same);
  }

  // The mask as attention takes it: float to add, or bool where true keeps.
  Value* made_mask(const AttentionMask& mask, Node& before) {
    const TensorMeta& meta = *mask.value->meta();
    if (mask.kind == AttentionMask::Kind::kAsIs) return mask.value;
    if (mask.kind == AttentionMask::Kind::kKeeps && mask.fill == -kInfinity) return mask.value;
    if (mask.fill == -kInfinity) {
      return context_.graph
          .insert(&before, "aten::logical_not", {{"self", mask.value}},
                  {{mask.value->name() + "_not", ValueType::kTensor,
                    contiguous_meta(c10::ScalarType::Bool, meta.sizes)}},
                  before.source())
          ->output();
    }
    const bool keeps = mask.kind == AttentionMask::Kind::kKeeps;
    return context_.graph
        .insert(&before, "aten::where.Scalar",
                {{"condition", mask.value},
                 {"self", keeps ? 0.0 : mask.fill},
                 {"other", keeps ? mask.fill : 0.0}},
                {{mask.value->name() + "_added", ValueType::kTensor,
                  contiguous_meta(c10::ScalarType::Float, meta.sizes)}},
                before.source())
        ->output();
  }

  PassContext& context_;
  Constants constants_;
  AliasSets aliases_;
  Restrider restrider_;
  size_t found_ = 0;
};

}  // namespace

bool rewrite_recognise_attention(PassContext& context) {
  return AttentionRewriter(context).run();
}

}  // namespace halftone::compiler
