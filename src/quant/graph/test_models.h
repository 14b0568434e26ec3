// Shared by the tests of this folder: small models and calls.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>

#include <memory>
#include <string>

#include "graph/test_support.h"
#include "halftone/graph/graph_module.h"

namespace halftone {

/// The first output of a call with one input.
inline at::Tensor run_one(const GraphModule& module, const at::Tensor& x) {
  // Sessions share ownership of their module; here it outlives them.
  Session session(std::shared_ptr<const GraphModule>(std::shared_ptr<void>(), &module));
  return session.run({x}).at(0).toTensor();
}

/// Embedding, two linears and a head: widths that every built-in scheme takes.
inline std::shared_ptr<GraphModule> small_model() {
  const char text[] =
      R"(graph(%e: parameter "words.weight" f32[20, 64] grad, %w0: parameter "up.weight" f32[96, 64] grad, %b0: parameter "up.bias" f32[96] grad, %w1: parameter "down.weight" f32[64, 96] grad, %w2: parameter "head.weight" f32[5, 64] grad, %b2: parameter "head.bias" f32[5] grad, %i: user "i" i64[3]) {
  %x: f32[3, 64] = aten::embedding(%e, %i)  @ "words" "Embedding"
  %u: f32[3, 96] = aten::linear(%x, %w0, %b0)  @ "up" "Linear"
  %g: f32[3, 96] = aten::gelu(%u)
  %d: f32[3, 64] = aten::linear(%g, %w1)  @ "down" "Linear"
  %y: f32[3, 5] = aten::linear(%d, %w2, %b2)  @ "head" "Linear"
  return %y
}
)";
  return module_from_text(text, {{"words.weight", at::randn({20, 64})},
                                 {"up.weight", at::randn({96, 64})},
                                 {"up.bias", at::randn({96})},
                                 {"down.weight", at::randn({64, 96})},
                                 {"head.weight", at::randn({5, 64})},
                                 {"head.bias", at::randn({5})}});
}

}  // namespace halftone
