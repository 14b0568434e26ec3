// recognise_attention: aten::scaled_dot_product_attention, and softmax(q · kᵀ · scale + mask) · v in other
// spellings, become halftone::attention. One thing differs on purpose: where a mask leaves a row nothing to
// look at, the spelled form gives NaN and attention gives what aten::scaled_dot_product_attention gives.
#include <array>
#include <cmath>
#include <numeric>

#include "compiler/passes/alias.h"
#include "compiler/passes/attention_match.h"
#include "compiler/passes/rewrite.h"
#include "compiler/passes/view_chains.h"

namespace halftone::compiler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class AttentionRewriter {
 public:
  explicit AttentionRewriter(PassContext& context)
      : context_(context), constants_(context), aliases_(context.graph) {}

  bool run() {
    for (Node* node : snapshot(context_.graph)) {
      if (node->op() == nullptr || node->outputs().empty() || node->output()->users().empty()) continue;
      auto found = node->is("aten::scaled_dot_product_attention")
                       ? try_operator(*node)
                       : try_match_attention(*node, constants_, context_);
      if (found) try_replace(*found, *node);
    }
    if (found_ > 0) context_.note("{} attentions", found_);
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
    if (rank(match.q) != 4 || try_number(node, "dropout_p") != 0.0) {
      context_.note("%{} stays as it is: it drops, or has not four dimensions", node.output()->name());
      return std::nullopt;
    }
    match.causal = *causal;
    if (Value* mask = try_tensor(node, "attn_mask")) match.masks.push_back({mask});
    const auto width = match.q->meta()->sizes[3].as_constant();
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
    if (rank(match.k) != 4 || rank(match.v) != 4 || rank(match.result) != 4)
      return "it has not four dimensions";
    const auto heads = match.q->meta()->sizes[1].as_constant(),
               shared = match.k->meta()->sizes[1].as_constant();
    if (!heads || !shared || *shared == 0 || *heads % *shared != 0) return "the number of heads is not known";
    if (!same(match.v->meta()->sizes[1], *shared)) return "keys and values differ in heads";
    for (const Value* value : {match.k, match.v}) {
      if (!same(value->meta()->sizes[0], match.q->meta()->sizes[0])) return "the batch is broadcast";
    }
    for (const AttentionMask& mask : match.masks) {
      if (aliases_.is_written(mask.value)) return "the mask is written";
      const auto& meta = mask.value->meta();
      if (!meta || (meta->dtype != c10::ScalarType::Float && meta->dtype != c10::ScalarType::Bool))
        return "the mask is neither float32 nor bool";
    }
    if (match.masks.size() > 1) return "it has several masks";
    return "";
  }

  void try_replace(const AttentionMatch& match, Node& node) {
    const std::string why = refusal(match);
    if (!why.empty()) return context_.note("%{} is no fused attention: {}", match.result->name(), why);
    Value* mask = match.masks.empty() ? nullptr : made_mask(match.masks.front(), node);
    if (!match.masks.empty() && mask == nullptr) {
      return context_.note("%{} is no fused attention: masked scores are neither -inf nor below -1e8",
                           match.result->name());
    }
    Node* fused = context_.graph.insert(&node, "halftone::attention",
                                        {{"q", match.q},
                                         {"k", match.k},
                                         {"v", match.v},
                                         {"mask", optional_tensor(mask)},
                                         {"causal", match.causal},
                                         {"scale", match.scale}},
                                        {{"attention", ValueType::kTensor, layout(*match.result->meta())}},
                                        node.source());
    if (has_layout(match.result) || try_restride(match.result, LayoutChange::kPermuted, strides)) {
      context_.graph.replace_all_uses(match.result, fused->output());
    } else {
      // Somebody downstream counts on the layout that was.
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
    if (!(mask.fill <= -1e8))
      return nullptr;  // added instead of put in place, it would show in rows that see nothing
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
  size_t found_ = 0;
};

}  // namespace

bool rewrite_recognise_attention(PassContext& context) {
  return AttentionRewriter(context).run();
}

}  // namespace halftone::compiler
