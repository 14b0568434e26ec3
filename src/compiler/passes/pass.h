// The interface of rewrites. One rewrite a file; passes.h lists them all.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/cli/message.h"
#include "halftone/graph/graph_module.h"

namespace halftone::compiler {

/// Borrowed for the run of the passes.
struct PassContext {
  Graph& graph;
  TensorMap& tensors;  ///< of the graph's parameters, buffers and constants; new constants go here
  const std::map<std::string, SymbolRange>& ranges;
  std::vector<std::string>& log;
  std::string_view pass = {};  ///< the name of the one that runs, for the log
  bool mutates = false;        ///< some node writes to an operand

  /// A line for what was done or, where a near-match was refused, why.
  template <typename... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) const {
    log.push_back(fmt::format("{}: {}", pass, fmt::format(format, std::forward<Args>(args)...)));
  }
};

/// True if something changed. Nodes that have become useless may be left behind: run_passes removes them.
using Rewrite = bool (*)(PassContext&);

bool rewrite_functionalize(PassContext& context);
bool rewrite_clean_up(PassContext& context);
bool rewrite_view_copies(PassContext& context);
bool rewrite_canonical_linear(PassContext& context);
bool rewrite_fold_zero_embedding(PassContext& context);
bool rewrite_patches_to_linear(PassContext& context);
bool rewrite_restore_weights(PassContext& context);
bool rewrite_fold_constants(PassContext& context);
bool rewrite_common_subexpressions(PassContext& context);
bool rewrite_fold_batch_norm(PassContext& context);
bool rewrite_fold_scalars(PassContext& context);
bool rewrite_recognise_attention(PassContext& context);
bool rewrite_fuse_conv(PassContext& context);
bool rewrite_channels_last(PassContext& context);
bool rewrite_fuse_conv_residual(PassContext& context);
bool rewrite_fuse_conv_activation(PassContext& context);
bool rewrite_fuse_linear(PassContext& context);
bool rewrite_fuse_activation(PassContext& context);
bool rewrite_fuse_residual(PassContext& context);
bool rewrite_fuse_norm(PassContext& context);
bool rewrite_fuse_norm_sum(PassContext& context);
bool rewrite_join_linears(PassContext& context);
bool rewrite_quantize_once(PassContext& context);
bool rewrite_drop_unused(PassContext& context);

}  // namespace halftone::compiler
