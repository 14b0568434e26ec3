#include "compiler/passes/passes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/errors.h"
#include "base/nearest.h"
#include "compiler/ops/ops.h"
#include "compiler/passes/alias.h"
#include "graph/rewrite/run_rewrite.h"
#include "graph/run/mutation.h"

namespace halftone::compiler {

std::span<const Pass> all_passes() {
  static const std::vector<Pass> passes = {
      {"functionalize", "operators that write to a result without other readers return a new one",
       rewrite_functionalize},
      {"clean_up",
       "removes dropout, detach and whatever changes nothing; checks that metadata already proves",
       rewrite_clean_up},
      {"restore_weights", "makes floats of the weights of convolutions that are stored in 8 bits",
       rewrite_restore_weights, "restore_int8_weight"},
      {"view_copies", "turns copying views of contiguous tensors into views", rewrite_view_copies},
      {"canonical_linear", "spells every matrix product with a weight as aten::linear, on unflattened rows",
       rewrite_canonical_linear},
      {"patches_to_linear", "makes a linear of a convolution whose patches do not overlap",
       rewrite_patches_to_linear, "conv"},
      {"fold_zero_embedding", "adds the first row of a table where it is read with nothing but zeros",
       rewrite_fold_zero_embedding, "embedding"},
      {"fold_constants", "computes what depends on constants only", rewrite_fold_constants},
      {"common_subexpressions", "computes equal things once", rewrite_common_subexpressions},
      {"fold_batch_norm", "folds batch norm into the convolution or linear before it",
       rewrite_fold_batch_norm, "batch_norm"},
      {"fold_scalars", "folds factors and offsets after a linear into its weight and bias",
       rewrite_fold_scalars},
      {"recognise_attention", "finds attention in all its spellings", rewrite_recognise_attention},
      {"fuse_conv", "brings convolutions into one form that takes bias, residual and activation",
       rewrite_fuse_conv, "conv"},
      {"channels_last", "keeps channels neighbours in memory from one convolution to the next",
       rewrite_channels_last, "conv"},
      {"fuse_conv_residual", "adds residuals where a convolution writes its result",
       rewrite_fuse_conv_residual, "conv"},
      {"fuse_conv_activation", "applies activations where a convolution writes its result",
       rewrite_fuse_conv_activation, "conv"},
      {"fuse_linear", "brings linears of all formats into one form that takes bias, activation and residual",
       rewrite_fuse_linear},
      {"fuse_activation", "applies activations where a linear writes its result", rewrite_fuse_activation},
      {"fuse_residual", "adds residuals where a linear writes its result", rewrite_fuse_residual},
      {"fuse_norm", "brings layer and RMS norms into one form", rewrite_fuse_norm},
      {"fuse_norm_sum", "adds inside the norm that reads the sum", rewrite_fuse_norm_sum},
      {"join_linears", "multiplies once where several linears read the same input", rewrite_join_linears},
      {"quantize_once", "quantizes an activation once for all int8 linears that read it, where it is made",
       rewrite_quantize_once},
      {"clean_up_again", "removes copies that the passes before made needless", rewrite_clean_up},
      {"drop_unused", "removes constants that nothing reads any more", rewrite_drop_unused},
  };
  return passes;
}

void run_passes(Graph& graph, TensorMap& tensors, const std::map<std::string, SymbolRange>& ranges,
                const std::vector<std::string>& disabled, std::vector<std::string>& log) {
  register_fused_operators();
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) names.push_back(pass.name);
  for (const std::string& name : disabled) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail(ErrorCode::kInvalidArgument, "there is no pass \"{}\"{}; known: {}", name,
           did_you_mean(name, names), fmt::join(names, ", "));
  }
  // No pass makes an operator whose name has such a word where there was none with it.
  std::set<std::string, std::less<>> targets;
  for (const auto& node : graph.nodes()) {
    if (!targets.contains(node->target())) targets.insert(std::string(node->target()));
  }
  const auto may_apply = [&](const Pass& pass) {
    return pass.only_with.empty() ||
           std::any_of(targets.begin(), targets.end(), [&](std::string_view target) {
             return target.find(pass.only_with) != std::string_view::npos;
           });
  };
  PassContext context{graph, tensors, ranges, log};
  context.mutates = has_writers(graph) && AliasSets(graph).any_written();
  for (const Pass& pass : all_passes()) {
    context.pass = pass.name;
    if (std::find(disabled.begin(), disabled.end(), pass.name) != disabled.end()) {
      context.note("switched off");
      continue;
    }
    if (!may_apply(pass) || !run_rewrite(graph, pass.name, [&] { return pass.rewrite(context); })) {
      context.note("found nothing");
      continue;
    }
    context.mutates = context.mutates && has_writers(graph) && AliasSets(graph).any_written();
  }
}

}  // namespace halftone::compiler
