// halftone::attention on the fused kernel.
#include "compiler/executor/emit.h"
#include "kernels/attention/attention.h"

namespace halftone::compiler {

namespace {

class AttentionStep final : public Step {
 public:
  const kernels::AttentionKernel* chosen = nullptr;
  kernels::AttentionProblem problem;
  kernels::AttentionArgs args;  ///< strides and scale; pointers are filled in for each run
  Operand q, k, v, mask, keep, y, workspace;

  void run(Frame& frame) const override {
    kernels::AttentionArgs ready = args;
    ready.q = frame.at<const float>(q);
    ready.k = frame.at<const float>(k);
    ready.v = frame.at<const float>(v);
    ready.mask = frame.at<const float>(mask);
    ready.keep = frame.at<const uint8_t>(keep);
    ready.y = frame.at<float>(y);
    ready.workspace = frame.at<void>(workspace);
    kernels::attention(*chosen, problem, ready, *frame.parallel_for);
  }
  std::string kernel() const override { return chosen->name; }
};

bool is_usable(const Slot* slot) {
  return slot && slot->dtype() == at::kFloat && slot->meta.dim() == 4 &&
         (slot->meta.stride(3) == 1 || slot->meta.size(3) <= 1);
}

kernels::AttentionStrides strides_of(const Slot& slot) {
  return {slot.meta.stride(0), slot.meta.stride(1), slot.meta.stride(2)};
}

/// Broadcast to [batch, heads, m, n]: dimensions of one element, and missing ones, repeat.
bool read_mask(const Slot& mask, const kernels::AttentionProblem& problem, AttentionStep& step) {
  const int64_t wanted[4] = {problem.batch, problem.heads, problem.m, problem.n};
  int64_t strides[4] = {0, 0, 0, 0};
  const int64_t missing = 4 - mask.meta.dim();
  if (missing < 0) return false;
  for (int64_t i = 0; i < mask.meta.dim(); ++i) {
    const int64_t place = missing + i;
    if (mask.meta.size(i) == 1) continue;
    if (mask.meta.size(i) != wanted[place]) return false;
    strides[place] = mask.meta.stride(i);
  }
  step.args.mask_strides = {strides[0], strides[1], strides[2], strides[3]};
  if (mask.dtype() == at::kBool) {
    step.keep = mask.operand();
  } else if (mask.dtype() == at::kFloat) {
    step.mask = mask.operand();
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<Step> emit_attention(const Node& node, Planner& planner, std::string& reason) {
  const Slot* q = planner.tensor(node, "q");
  const Slot* k = planner.tensor(node, "k");
  const Slot* v = planner.tensor(node, "v");
  if (!is_usable(q) || !is_usable(k) || !is_usable(v)) {
    reason = "not three float32 tensors of four dimensions with a dense last one";
    return nullptr;
  }
  auto step = std::make_unique<AttentionStep>();
  step->problem = {.batch = q->meta.size(0),
                   .heads = q->meta.size(1),
                   .kv_heads = k->meta.size(1),
                   .m = q->meta.size(2),
                   .n = k->meta.size(2),
                   .d = q->meta.size(3),
                   .dv = v->meta.size(3),
                   .causal = planner.constant(node, "causal").toBool()};
  const kernels::AttentionProblem& problem = step->problem;
  if (k->meta.size(3) != problem.d || v->meta.size(2) != problem.n) {
    reason = "rows of keys and values do not fit";  // the operator says so too
    return nullptr;
  }
  if (k->meta.size(0) != problem.batch || v->meta.size(0) != problem.batch ||
      v->meta.size(1) != problem.kv_heads || problem.kv_heads == 0 || problem.heads % problem.kv_heads != 0) {
    reason = "batches or heads are broadcast";
    return nullptr;
  }
  if (const Slot* mask = planner.tensor(node, "mask"); mask && !read_mask(*mask, problem, *step)) {
    reason = "the mask is neither float32 nor boolean, or of another shape";
    return nullptr;
  }
  step->args.scale = static_cast<float>(planner.constant(node, "scale").toDouble());
  step->args.q_strides = strides_of(*q);
  step->args.k_strides = strides_of(*k);
  step->args.v_strides = strides_of(*v);
  step->q = q->operand();
  step->k = k->operand();
  step->v = v->operand();
  step->chosen = &kernels::choose_attention(problem);
  // In memory [batch, m, heads, dv]: what follows merges heads without a copy.
  const int64_t row = problem.heads * problem.dv;
  step->args.y_strides = {problem.m * row, problem.dv, row};
  step->y =
      planner.define_strided(node.output(), at::kFloat, {problem.batch, problem.heads, problem.m, problem.dv},
                             {problem.m * row, problem.dv, row, 1});
  if (problem.batch * problem.heads * row == 0 || problem.m == 0) return std::make_unique<NothingStep>();
  step->args.workspace_bytes = kernels::attention_workspace_bytes(problem, planner.threads());
  step->workspace = planner.scratch(step->args.workspace_bytes);
  return step;
}

}  // namespace halftone::compiler
