// Models of autoquant's tests: perceptrons with known layers, whose linears are large enough to gain.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>

#include "graph/test_support.h"
#include "halftone/graph/graph_module.h"
#include "halftone/tune/autoquant.h"

namespace halftone::aq {

/// A block: norm, three linears that read it (q, k, v) and are multiplied, a linear back, the residual.
inline std::string block_text(int index, int64_t width) {
  const std::string shape = fmt::format("f32[rows, {}]", width);
  std::string text;
  const std::string in = fmt::format("h{}", index), name = fmt::format("b{}", index);
  text += fmt::format("  %n{}: {} = aten::layer_norm(%{}, [{}], %g{}, %z{})\n", index, shape, in, width,
                      index, index);
  for (const char* part : {"q", "k", "v"})
    text += fmt::format("  %{}{}: {} = aten::linear(%n{}, %w{}{})  @ \"{}.{}\" \"Linear\"\n", part, index,
                        shape, index, part, index, name, part);
  text += fmt::format("  %m{}: {} = aten::mul.Tensor(%q{}, %k{})\n", index, shape, index, index);
  text += fmt::format("  %a{}: {} = aten::mul.Tensor(%m{}, %v{})\n", index, shape, index, index);
  text += fmt::format("  %o{}: {} = aten::linear(%a{}, %wo{})  @ \"{}.o\" \"Linear\"\n", index, shape, index,
                      index, name);
  text += fmt::format("  %h{}: {} = aten::add.Tensor(%{}, %o{})\n", index + 1, shape, in, index);
  return text;
}

/// `blocks` of those; all linears are width × width.
inline std::shared_ptr<GraphModule> block_model(int blocks, int64_t width) {
  std::string inputs, nodes;
  TensorMap tensors;
  for (int i = 0; i < blocks; ++i) {
    inputs += fmt::format(
        "%g{}: parameter \"b{}.norm.weight\" f32[{}], %z{}: parameter \"b{}.norm.bias\" f32[{}], ", i, i,
        width, i, i, width);
    tensors[fmt::format("b{}.norm.weight", i)] = at::zeros({width}) + 1;
    tensors[fmt::format("b{}.norm.bias", i)] = at::zeros({width});
    for (const char* part : {"q", "k", "v", "o"}) {
      inputs +=
          fmt::format("%w{}{}: parameter \"b{}.{}.weight\" f32[{}, {}], ", part, i, i, part, width, width);
      tensors[fmt::format("b{}.{}.weight", i, part)] =
          at::randn({width, width}) / std::sqrt(static_cast<double>(width));
    }
    nodes += block_text(i, width);
  }
  auto module =
      module_from_text(fmt::format("graph({}%h0: user \"x\" f32[rows, {}]) {{\n{}  return %h{}\n}}\n", inputs,
                                   width, nodes, blocks),
                       std::move(tensors));
  module->ranges["rows"] = {1, 4096};
  return module;
}

inline Sample rows_call(int64_t rows, int64_t width) {
  return {{at::randn({rows, width})}, {}};
}

/// Quick, and the same on a busy machine: no final comparison, few schemes.
inline AutoquantOptions quick_options() {
  AutoquantOptions options;
  options.schemes = {"int8dq-7bit", "int4wo", "bf16wo"};
  options.time_limit = 20;
  options.final_comparison = false;
  return options;
}

}  // namespace halftone::aq
