// Finds softmax(q · kᵀ · scale + mask) · v where it is spelled with plain operators.
#pragma once

#include <optional>
#include <vector>

#include "compiler/passes/constants.h"
#include "compiler/passes/pass.h"

namespace halftone::compiler {

struct AttentionMask {
  enum class Kind {
    kAsIs,   ///< float to add, or bool where true keeps
    kKeeps,  ///< bool: where false, the score becomes `fill`
    kHides,  ///< bool: where true, the score becomes `fill`
  };
  Value* value = nullptr;
  Kind kind = Kind::kAsIs;
  double fill = 0;
};

struct AttentionMatch {
  Value* result = nullptr;  ///< [b, h, m, dv] or, all without heads, [b, m, dv]
  Value *q = nullptr, *k = nullptr, *v = nullptr;
  std::vector<AttentionMask> masks;
  bool causal = false;
  double scale = 1;
};

/// `node` is the product with v, in four dimensions or in three, or the view that gives a bmm its four
/// dimensions back. Notes in the context's log why a softmax between two products was not taken.
std::optional<AttentionMatch> try_match_attention(const Node& node, const Constants& constants,
                                                  const PassContext& context);

/// Keys and values whose heads were repeated for the queries: takes them as they were before.
void share_heads(AttentionMatch& match);

}  // namespace halftone::compiler
