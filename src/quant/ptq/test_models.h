// Shared by the tests of this folder: small graphs with their tensors, and flows in one call.
#pragma once

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_support.h"
#include "halftone/ptq/ptq.h"

namespace halftone {

/// Convolution, batch norm and relu (in place), a second convolution, the sum of both, relu.
inline std::shared_ptr<GraphModule> residual_model() {
  at::manual_seed(1);
  return module_from_text(
      R"(graph(%w1: parameter "conv1.weight" f32[4, 4, 3, 3], %g: parameter "bn1.weight" f32[4],
               %b: parameter "bn1.bias" f32[4], %m: buffer "bn1.running_mean" f32[4],
               %v: buffer "bn1.running_var" f32[4], %w2: parameter "conv2.weight" f32[4, 4, 1, 1],
               %b2: parameter "conv2.bias" f32[4], %x: user "x" f32[2, 4, 6, 6]) {
           %c1: f32[2, 4, 6, 6] = aten::conv2d(%x, %w1, None, [1, 1], [1, 1])  @ "conv1" "torch.nn.modules.conv.Conv2d"
           %n1: f32[2, 4, 6, 6] = aten::batch_norm(%c1, %g, %b, %m, %v, false, 0.1, 1e-05, false)  @ "bn1" "torch.nn.modules.batchnorm.BatchNorm2d"
           %r1: f32[2, 4, 6, 6] = aten::relu_(%n1)  @ "relu" "torch.nn.modules.activation.ReLU"
           %c2: f32[2, 4, 6, 6] = aten::conv2d(%r1, %w2, %b2)  @ "conv2" "torch.nn.modules.conv.Conv2d"
           %s: f32[2, 4, 6, 6] = aten::add_.Tensor(%c2, %r1)  @ "" "Block"
           %y: f32[2, 4, 6, 6] = aten::relu(%s)  @ "" "Block"
           return %y
         })",
      {{"conv1.weight", at::randn({4, 4, 3, 3}) * 0.3},
       {"bn1.weight", at::rand({4}) + 0.5},
       {"bn1.bias", at::randn({4}) * 0.1},
       {"bn1.running_mean", at::randn({4}) * 0.1},
       {"bn1.running_var", at::rand({4}) + 0.5},
       {"conv2.weight", at::randn({4, 4, 1, 1}) * 0.5},
       {"conv2.bias", at::randn({4})}});
}

inline at::Tensor residual_input(uint64_t seed) {
  at::manual_seed(seed);
  return at::randn({2, 4, 6, 6});
}

/// One linear without a bias, in a layer "fc".
inline std::shared_ptr<GraphModule> linear_model() {
  return module_from_text(
      R"(graph(%w: parameter "fc.weight" f32[2, 3], %x: user "x" f32[1, 3]) {
           %y: f32[1, 2] = aten::linear(%x, %w)  @ "fc" "torch.nn.modules.linear.Linear"
           return %y
         })",
      {{"fc.weight", at::tensor({1.27F, 0.0F, -0.635F, 0.0F, 2.54F, 0.5F}).view({2, 3})}});
}

/// MinMax for activations and weights: numbers that a reader can check.
inline QConfigMapping plain_mapping() {
  QConfigMapping mapping;
  ObserverConfig weight(ObserverKind::kPerChannelMinMax);
  weight.dtype = ConfigDType::kQInt8;
  weight.qscheme = QScheme::kPerChannelSymmetric;
  return mapping.set_global(QConfig{ObserverKind::kMinMax, weight});
}

/// "pattern @ layer", those that stay float with "!" before them.
inline std::vector<std::string> pattern_lines(const std::vector<MatchedPattern>& patterns) {
  std::vector<std::string> lines;
  for (const MatchedPattern& match : patterns)
    lines.push_back((match.quantized ? "" : "!") + match.pattern + " @ " + match.layer);
  return lines;
}

inline at::Tensor first_output(const std::shared_ptr<GraphModule>& module, const at::Tensor& x) {
  return Session(module).run({x}).at(0).toTensor();
}

inline size_t count_nodes(const GraphModule& module, std::string_view target) {
  size_t count = 0;
  for (const auto& node : module.graph().nodes()) count += node->is(target) ? 1 : 0;
  return count;
}

}  // namespace halftone
