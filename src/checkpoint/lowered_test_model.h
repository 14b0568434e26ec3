// A small static int8 model for tests: a convolution, a table, a mean, a linear.
#pragma once

#include "graph/test_support.h"
#include "halftone/ptq/lower.h"
#include "quant/ptq/quantize_op.h"

namespace halftone {

inline std::shared_ptr<GraphModule> lowered_model() {
  ops::dequantize_per_tensor(at::zeros({1}, at::kByte), 1.0, 0);
  at::manual_seed(51);
  auto module = module_from_text(
      R"(graph(%w: parameter "conv.weight" i8[8, 3, 3, 3], %s: constant "conv.scale" f32[8], %z: constant "conv.zero_point" i32[8],
      %fc: parameter "fc.weight" i8[5, 8], %x: user "x" f32[s0, 3, 10, 10]) {
  %q: u8[s0, 3, 10, 10] = halftone::quantize_per_tensor(%x, 0.03, 60, 0, 127, dtype:u8)
  %d: f32[s0, 3, 10, 10] = halftone::dequantize_per_tensor(%q, 0.03, 60)
  %dw: f32[8, 3, 3, 3] = halftone::dequantize_per_channel(%w, %s, %z, 0)
  %c: f32[s0, 8, 10, 10] = aten::conv2d(%d, %dw, None, [1, 1], [1, 1])  @ "conv" "torch.nn.modules.conv.Conv2d"
  %cq: u8[s0, 8, 10, 10] = halftone::quantize_per_tensor(%c, 0.1, 64, 0, 127, dtype:u8)
  %cd: f32[s0, 8, 10, 10] = halftone::dequantize_per_tensor(%cq, 0.1, 64)
  %h: f32[s0, 8, 10, 10] = aten::hardswish(%cd)  @ "act" "torch.nn.modules.activation.Hardswish"
  %hq: u8[s0, 8, 10, 10] = halftone::quantize_per_tensor(%h, 0.05, 10, 0, 127, dtype:u8)
  %hd: f32[s0, 8, 10, 10] = halftone::dequantize_per_tensor(%hq, 0.05, 10)
  %m: f32[s0, 8] = aten::mean.dim(%hd, [2, 3])
  %mq: u8[s0, 8] = halftone::quantize_per_tensor(%m, 0.02, 10, 0, 127, dtype:u8)
  %md: f32[s0, 8] = halftone::dequantize_per_tensor(%mq, 0.02, 10)
  %dfc: f32[5, 8] = halftone::dequantize_per_tensor(%fc, 0.02, 0)
  %y: f32[s0, 5] = aten::linear(%md, %dfc)  @ "fc" "torch.nn.modules.linear.Linear"
  return %y
})",
      {{"conv.weight", at::randint(-64, 65, {8, 3, 3, 3}, at::kChar)},
       {"conv.scale", at::rand({8}) * 0.02 + 0.01},
       {"conv.zero_point", at::zeros({8}, at::kInt)},
       {"fc.weight", at::randint(-127, 128, {5, 8}, at::kChar)}});
  LowerResult lowered = lower(*module, {.require_all = true});
  lowered.module->sample_inputs = {at::randn({2, 3, 10, 10})};
  return lowered.module;
}

}  // namespace halftone
