#include "quant/ptq/fuse.h"

#include <algorithm>

#include "base/errors.h"
#include "graph/rewrite/functionalize.h"
#include "graph/rewrite/unused_inputs.h"
#include "graph/run/mutation.h"
#include "halftone/ptq/ptq.h"
#include "quant/ptq/canonical_linear.h"
#include "quant/ptq/constants.h"
#include "quant/ptq/match.h"

namespace halftone {
namespace ptq {
namespace {

constexpr std::string_view kIntrinsicModules = "torch.ao.nn.intrinsic.";

/// The type of what fusing gives in inference: without the batch norm. "" where that is the root itself.
std::string fused_type(const BackendPatternConfig& config) {
  if (!config.fused_module()) return {};
  std::string type = *config.fused_module();
  const size_t norm = type.find("Bn", kIntrinsicModules.size());
  if (norm == std::string::npos) return type;
  type.erase(norm, 2);
  for (const char* root : {"Conv1d", "Conv2d", "Conv3d", "Linear1d"}) {
    if (type == std::string(kIntrinsicModules) + root) return {};
  }
  return type;
}

void check_fuser(const BackendPatternConfig& config) {
  const std::string& method = *config.fuser_method();
  if (method.starts_with("sequential(") || method.starts_with("torch.ao.quantization.")) return;
  fail(ErrorCode::kUnsupported, "{}: the fuser method \"{}\" is a name only: what it does is not known here",
       config.pattern().to_text(), method);
}

bool is_norm(const FusedOp& fused_op) {
  return fused_op.nodes.size() == 1 && fused_op.root->is("aten::batch_norm");
}

}  // namespace

std::vector<std::string> fuse_ops(GraphModule& module, FusedOpGraph& fused_ops, const BackendConfig& config) {
  const std::vector<BackendPatternConfig> configs = config.configs();
  std::vector<const BackendPatternConfig*> with_method;
  for (const BackendPatternConfig* each : in_order_of_matching(configs)) {
    if (!each->fuser_method()) continue;
    check_fuser(*each);
    with_method.push_back(each);
  }
  const std::vector<std::string> written = mutated_tensor_names(module.graph());
  std::vector<std::string> folded;
  for (const PatternMatch& match : find_matches(fused_ops, with_method)) {
    std::vector<FusedOp*> parts;
    FusedOp* norm = nullptr;
    for (FusedOp* fused_op : match.fused_ops) {
      if (is_norm(*fused_op) && fused_op != match.root) {
        norm = fused_op;
      } else {
        parts.push_back(fused_op);
      }
    }
    if (norm != nullptr) {
      if (!can_fold(module, *match.root->root, *norm->root, written)) continue;
      folded.push_back(norm->layer);
      Value* before = norm->output();
      Value* after = match.root->output();
      for (const auto& fused_op : fused_ops.fused_ops())
        std::replace(fused_op->args.begin(), fused_op->args.end(), before, after);
      Node& node = *norm->root;
      fused_ops.erase(norm);
      fold_norm(module, *match.root->root, node, written);
    }
    if (parts.size() > 1) fused_ops.fuse(parts, match.root, fused_type(*match.config));
  }
  remove_unused_inputs(module);
  return folded;
}

}  // namespace ptq

std::shared_ptr<GraphModule> fuse(const GraphModule& module, const BackendConfig& config,
                                  std::vector<std::string>* folded) {
  std::shared_ptr<GraphModule> copy = module.clone();
  functionalize(copy->mutable_graph());
  ptq::make_linears(copy->mutable_graph());
  ptq::FusedOpGraph fused_ops(copy->mutable_graph());
  const std::vector<std::string> layers = ptq::fuse_ops(*copy, fused_ops, config);
  lint_or_throw(copy->graph(), "fuse");
  if (folded != nullptr) folded->insert(folded->end(), layers.begin(), layers.end());
  return copy;
}

}  // namespace halftone
