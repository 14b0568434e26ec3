#include "models.h"

#include <ATen/ATen.h>

#include "graph/flat_call.h"

namespace halftone::hostile {
namespace {

struct Model {
  const char* name;
  const char* text;
  std::vector<std::pair<const char*, std::vector<int64_t>>> weights;
  std::vector<at::Tensor> inputs;
};

at::Tensor numbers(std::vector<int64_t> sizes) {
  return at::randn(sizes);
}
at::Tensor indices(int64_t below, std::vector<int64_t> sizes) {
  return at::randint(below, sizes, at::kLong);
}

std::vector<Model> transformer_models() {
  return {
      {"mlp",
       R"(graph(%w: parameter "up.weight" f32[96, 64], %b: parameter "up.bias" f32[96], %v: parameter "down.weight" f32[64, 96], %g: parameter "norm.weight" f32[64], %h: parameter "norm.bias" f32[64], %x: user "x" f32[2, 3, 64]) {
  %n: tensor = aten::layer_norm(%x, [64], %g, %h) @ "norm" "LayerNorm"
  %u: tensor = aten::linear(%n, %w, %b) @ "up" "Linear"
  %a: tensor = aten::gelu(%u)
  %d: tensor = aten::linear(%a, %v) @ "down" "Linear"
  %r: tensor = aten::add.Tensor(%x, %d)
  %s: tensor = aten::softmax.int(%r, -1)
  %m: tensor = aten::mul.Tensor(%s, %r)
  return %m, %r
})",
       {{"up.weight", {96, 64}},
        {"up.bias", {96}},
        {"down.weight", {64, 96}},
        {"norm.weight", {64}},
        {"norm.bias", {64}}},
       {numbers({2, 3, 64})}},
      {"attention",
       R"(graph(%w: parameter "qkv.weight" f32[96, 32], %o: parameter "out.weight" f32[32, 32], %x: user "x" f32[2, 5, 32]) {
  %p: tensor = aten::linear(%x, %w) @ "qkv" "Linear"
  %l: list = aten::chunk(%p, 3, -1)
  %q: tensor, %k: tensor, %v: tensor = builtin::unpack(%l)
  %q1: tensor = aten::view(%q, [2, 5, 4, 8])
  %q2: tensor = aten::transpose.int(%q1, 1, 2)
  %k1: tensor = aten::view(%k, [2, 5, 4, 8])
  %k2: tensor = aten::transpose.int(%k1, 1, 2)
  %v1: tensor = aten::view(%v, [2, 5, 4, 8])
  %v2: tensor = aten::transpose.int(%v1, 1, 2)
  %a: tensor = aten::scaled_dot_product_attention(%q2, %k2, %v2, None, 0.0, true)
  %t: tensor = aten::transpose.int(%a, 1, 2)
  %c: tensor = aten::contiguous(%t)
  %f: tensor = aten::view(%c, [2, 5, 32])
  %y: tensor = aten::linear(%f, %o) @ "out" "Linear"
  return %y
})",
       {{"qkv.weight", {96, 32}}, {"out.weight", {32, 32}}},
       {numbers({2, 5, 32})}},
      {"decoder",
       R"(graph(%e: parameter "words.weight" f32[20, 32], %g: parameter "norm.weight" f32[32], %a: parameter "gate.weight" f32[64, 32], %b: parameter "up.weight" f32[64, 32], %c: parameter "down.weight" f32[32, 64], %i: user "i" i64[1, 4]) {
  %x: tensor = aten::embedding(%e, %i) @ "words" "Embedding"
  %p: tensor = aten::pow.Tensor_Scalar(%x, 2)
  %m: tensor = aten::mean.dim(%p, [-1], true)
  %m1: tensor = aten::add.Tensor(%m, 0.00001)
  %r: tensor = aten::rsqrt(%m1)
  %n: tensor = aten::mul.Tensor(%x, %r)
  %n1: tensor = aten::mul.Tensor(%g, %n)
  %h0: tensor = aten::slice.Tensor(%n1, 2, 0, 16)
  %h1: tensor = aten::slice.Tensor(%n1, 2, 16, 9223372036854775807)
  %h2: tensor = aten::neg(%h1)
  %h3: tensor = aten::cat([%h2, %h0], -1)
  %ga: tensor = aten::linear(%h3, %a) @ "gate" "Linear"
  %si: tensor = aten::silu(%ga)
  %up: tensor = aten::linear(%h3, %b) @ "up" "Linear"
  %gu: tensor = aten::mul.Tensor(%si, %up)
  %dn: tensor = aten::linear(%gu, %c) @ "down" "Linear"
  %re: tensor = aten::add.Tensor(%x, %dn)
  %lo: tensor = aten::linear(%re, %e) @ "head" "Linear"
  return %lo
})",
       {{"words.weight", {20, 32}},
        {"norm.weight", {32}},
        {"gate.weight", {64, 32}},
        {"up.weight", {64, 32}},
        {"down.weight", {32, 64}}},
       {indices(20, {1, 4})}},
      // State that compiled models write in place.
      {"cache",
       R"(graph(%s: buffer "cache" f32[2, 6, 8], %w: parameter "key.weight" f32[16, 8], %i: user "i" i64[2], %x: user "x" f32[2, 8]) {
  %k: tensor = aten::linear(%x, %w) @ "key" "Linear"
  %k1: tensor = aten::view(%k, [2, 2, 8])
  %k2: tensor = aten::transpose.int(%k1, 0, 1)
  %n: tensor = aten::index_copy(%s, 1, %i, %k2)
  %t: tensor = aten::transpose.int(%n, 1, 2)
  %q: tensor = aten::matmul(%k2, %t)
  %p: tensor = aten::softmax.int(%q, -1)
  %y: tensor = aten::matmul(%p, %n)
  return buffer_mutation "cache" %n, %y
})",
       {{"cache", {2, 6, 8}}, {"key.weight", {16, 8}}},
       {indices(6, {2}), numbers({2, 8})}},
  };
}

std::vector<Model> image_models() {
  return {
      {"images",
       R"(graph(%w: parameter "conv.weight" f32[8, 3, 3, 3], %b: parameter "conv.bias" f32[8], %g: parameter "bn.weight" f32[8], %h: parameter "bn.bias" f32[8], %m: buffer "bn.running_mean" f32[8], %v: buffer "bn.running_var" f32[8], %w1: parameter "depth.weight" f32[8, 1, 3, 3], %w2: parameter "point.weight" f32[8, 8, 1, 1], %f: parameter "fc.weight" f32[5, 8], %x: user "x" f32[2, 3, 9, 8]) {
  %c: tensor = aten::conv2d(%x, %w, %b, [1, 1], [1, 1], [1, 1], 1) @ "conv" "Conv2d"
  %n: tensor = aten::batch_norm(%c, %g, %h, %m, %v, false, 0.1, 0.00001, true) @ "bn" "BatchNorm2d"
  %r: tensor = aten::relu(%n)
  %d: tensor = aten::conv2d(%r, %w1, None, [2, 2], [1, 1], [1, 1], 8) @ "depth" "Conv2d"
  %d1: tensor = aten::hardswish(%d)
  %p: tensor = aten::conv2d(%d1, %w2, None, [1, 1], [0, 0], [1, 1], 1) @ "point" "Conv2d"
  %s: tensor = aten::add.Tensor(%p, %d1)
  %q: tensor = aten::max_pool2d(%s, [2, 2], [1, 1], [0, 0], [1, 1], false)
  %a: tensor = aten::adaptive_avg_pool2d(%q, [1, 1])
  %fl: tensor = aten::flatten.using_ints(%a, 1)
  %y: tensor = aten::linear(%fl, %f) @ "fc" "Linear"
  return %y
})",
       {{"conv.weight", {8, 3, 3, 3}},
        {"conv.bias", {8}},
        {"bn.weight", {8}},
        {"bn.bias", {8}},
        {"bn.running_mean", {8}},
        {"bn.running_var", {8}},
        {"depth.weight", {8, 1, 3, 3}},
        {"point.weight", {8, 8, 1, 1}},
        {"fc.weight", {5, 8}}},
       {numbers({2, 3, 9, 8})}},
      {"signals",
       R"(graph(%w: parameter "conv.weight" f32[6, 4, 3], %t: parameter "back.weight" f32[6, 4, 2], %x: user "x" f32[2, 4, 11]) {
  %c: tensor = aten::conv1d(%x, %w, None, [2], [1], [1], 1) @ "conv" "Conv1d"
  %r: tensor = aten::leaky_relu(%c, 0.2)
  %b: tensor = aten::conv_transpose1d(%r, %t, None, [2], [0], [0], 1, [1]) @ "back" "ConvTranspose1d"
  %p: tensor = aten::constant_pad_nd(%b, [1, 2], 0.5)
  %a: tensor = aten::avg_pool1d(%p, [3], [2], [0], false, true)
  %u: tensor = aten::upsample_nearest1d(%a, [9], None)
  %l: tensor = aten::mean.dim(%u, [2], false)
  return %l, %u
})",
       {{"conv.weight", {6, 4, 3}}, {"back.weight", {6, 4, 2}}},
       {numbers({2, 4, 11})}},
      {"joined images",
       R"(graph(%w: parameter "a.weight" f32[4, 4, 3, 3], %v: parameter "b.weight" f32[4, 4, 1, 1], %x: user "x" f32[1, 4, 6, 6]) {
  %a: tensor = aten::conv2d(%x, %w, None, [1, 1], [1, 1], [1, 1], 1) @ "a" "Conv2d"
  %a1: tensor = aten::relu(%a)
  %b: tensor = aten::conv2d(%x, %v, None, [1, 1], [0, 0], [1, 1], 1) @ "b" "Conv2d"
  %b1: tensor = aten::sigmoid(%b)
  %c: tensor = aten::cat([%a1, %b1, %x], 1)
  %p: tensor = aten::avg_pool2d(%c, [2, 2], [2, 2], [0, 0], false, true, None)
  %u: tensor = aten::upsample_nearest2d(%p, [6, 6], None, None)
  %m: tensor = aten::mean.dim(%u, [2, 3], true)
  %y: tensor = aten::mul.Tensor(%u, %m)
  return %y
})",
       {{"a.weight", {4, 4, 3, 3}}, {"b.weight", {4, 4, 1, 1}}},
       {numbers({1, 4, 6, 6})}},
  };
}

std::vector<Model> other_models() {
  return {
      {"views",
       R"(graph(%x: user "x" f32[4, 6], %y: user "y" f32[4, 6]) {
  %a: tensor = aten::view(%x, [2, 2, 6])
  %b: tensor = aten::permute(%a, [1, 0, 2])
  %c: tensor = aten::reshape(%b, [4, 6])
  %d: tensor = aten::slice.Tensor(%c, 0, 1, 3)
  %e: tensor = aten::expand(%d, [3, 2, 6])
  %f: tensor = aten::select.int(%e, 0, 1)
  %g: tensor = aten::unsqueeze(%f, 0)
  %h: tensor = aten::squeeze.dim(%g, 0)
  %i: tensor = aten::as_strided(%y, [2, 6], [6, 1], 6)
  %j: tensor = aten::cat([%h, %i, %d], 0)
  %l: list = aten::split.Tensor(%j, 2, 0)
  %m: tensor, %n: tensor, %o: tensor = builtin::unpack(%l)
  %p: tensor = aten::stack([%m, %n, %o], 1)
  %q: tensor = aten::transpose.int(%p, 0, 1)
  %r: tensor = aten::clone(%q)
  %s: tensor = aten::flatten.using_ints(%r, 1)
  %t: tensor = aten::t(%s)
  return %t, %i
})",
       {},
       {numbers({4, 6}), numbers({4, 6})}},
      {"indices",
       R"(graph(%e: parameter "table.weight" f32[10, 8], %i: user "i" i64[2, 3], %x: user "x" f32[4, 8]) {
  %a: tensor = aten::embedding(%e, %i, 0) @ "table" "Embedding"
  %f: tensor = aten::flatten.using_ints(%i)
  %g: tensor = aten::remainder.Scalar(%f, 4)
  %b: tensor = aten::index_select(%x, 0, %g)
  %h: tensor = aten::unsqueeze(%g, 1)
  %c: tensor = aten::gather(%b, 1, %h)
  %m: tensor = aten::gt.Scalar(%b, 0)
  %w: tensor = aten::masked_fill.Scalar(%b, %m, -1.5)
  %z: tensor = aten::zeros_like(%w)
  %s: tensor = aten::where.self(%m, %w, %z)
  %t: tensor = aten::view(%a, [6, 8])
  %u: tensor = aten::index.Tensor(%t, [%g])
  %v: tensor = aten::add.Tensor(%s, %u)
  %k: tensor = aten::arange.start_step(0, 8, 1)
  %y: tensor = aten::mul.Tensor(%v, %k)
  %cs: tensor = aten::cumsum(%y, 1)
  return %cs, %c
})",
       {{"table.weight", {10, 8}}},
       {indices(10, {2, 3}), numbers({4, 8})}},
      {"state",
       R"(graph(%t: buffer "total" f32[3, 4], %x: user "x" f32[3, 4]) {
  %a: tensor = aten::add_.Tensor(%t, %x)
  %s: tensor = aten::slice.Tensor(%t, 0, 0, 2)
  %m: tensor = aten::mul_.Scalar(%s, 0.5)
  %c: tensor = aten::sum.dim_IntList(%t, [0], false)
  %d: tensor = aten::copy(%x, %t)
  %e: tensor = aten::sub.Tensor(%d, %c)
  return %e
})",
       {{"total", {3, 4}}},
       {numbers({3, 4})}},
      {"loop",
       R"(graph(%x: user "x" f32[], %step: user "step" f32[]) {
  %y: f32[] = builtin::while_loop(graph(%u: user "u" f32[], %s: user "s" f32[]) {
      %c: bool[] = aten::lt.Scalar(%u, 10)
      return %c
    }, graph(%u: user "u" f32[], %s: user "s" f32[]) {
      %v: f32[] = aten::add.Tensor(%u, %s)
      return %v
    }, [%x], [%step])
  %p: bool[] = aten::gt.Scalar(%y, 5)
  %z: f32[] = builtin::cond(%p, graph(%a: user "a" f32[]) {
      %b: f32[] = aten::mul.Tensor(%a, %a)
      return %b
    }, graph(%a: user "a" f32[]) {
      return %a
    }, [%y])
  return %z
})",
       {},
       {at::scalar_tensor(1.), at::scalar_tensor(4.)}},
      {"sizes",
       R"(graph(%w: parameter "fc.weight" f32[6, 4], %x: user "x" f32[s0, s1, 4]) {
  %a: int(s0) = aten::sym_size.int(%x, 0)
  %b: int(s1) = aten::sym_size.int(%x, 1)
  %c: int(s0*s1) = sym::mul(%a, %b)
  %f: f32[s0*s1, 4] = aten::view(%x, [%c, 4])
  %l: f32[s0*s1, 6] = aten::linear(%f, %w) @ "fc" "Linear"
  %g: f32[s0*s1, 6] = aten::gelu(%l)
  %y: f32[s0, s1, 6] = aten::view(%g, [%a, %b, 6])
  %z: f32[s0, s1, 6] = aten::softmax.int(%y, -1)
  return %z, %c
})",
       {{"fc.weight", {6, 4}}},
       {numbers({2, 3, 4})}},
      {"arithmetic",
       R"(graph(%x: user "x" f32[3, 5], %y: user "y" f32[5]) {
  %a: tensor = aten::exp(%x)
  %b: tensor = aten::div.Tensor(%a, %y)
  %c: tensor = aten::clamp(%b, -3.0, 3.0)
  %d: tensor = aten::tanh(%c)
  %e: tensor = aten::sigmoid(%d)
  %f: tensor = aten::maximum(%e, %d)
  %g: tensor = aten::abs(%f)
  %h: tensor = aten::sqrt(%g)
  %i: tensor = aten::to.dtype(%h, dtype:f64)
  %j: tensor = aten::to.dtype(%i, dtype:f32)
  %k: tensor = aten::amax(%j, [-1], true)
  %l: tensor = aten::sub.Tensor(%j, %k)
  %m: tensor = aten::log_softmax.int(%l, 1)
  %n: tensor = aten::matmul(%m, %y)
  %o: tensor = aten::rsub.Scalar(%n, 1.0)
  %v: tensor, %u: tensor = aten::max.dim(%m, 1)
  return %o, %u
})",
       {},
       {numbers({3, 5}), numbers({5})}},
  };
}

std::shared_ptr<GraphModule> build(const Model& model) {
  auto graph = parse_graph(model.text);
  TensorMap tensors;
  for (const auto& [name, sizes] : model.weights) {
    at::Tensor tensor = at::randn(sizes) * 0.5;
    tensors[name] = std::string_view(name).ends_with("var") ? tensor.abs() + 0.5 : tensor;
  }
  CallSpec call = flat_call(*graph);
  auto module = std::make_shared<GraphModule>(std::move(graph), std::move(tensors), std::move(call));
  module->name = model.name;
  for (const at::Tensor& input : model.inputs) module->sample_inputs.emplace_back(input);
  return module;
}

}  // namespace

std::vector<std::shared_ptr<GraphModule>> make_models() {
  at::manual_seed(7);
  std::vector<std::shared_ptr<GraphModule>> modules;
  for (const auto& family : {transformer_models(), image_models(), other_models()}) {
    for (const Model& model : family) modules.push_back(build(model));
  }
  for (const auto& module : modules) {
    if (module->name == "sizes") module->ranges = {{"s0", {1, 64}}, {"s1", {1, 64}}};
  }
  return modules;
}

}  // namespace halftone::hostile
