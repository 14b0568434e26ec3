// conv_bench [--batch N] [--json]: every convolution of ResNet-50, ours beside what libtorch has for it: fp32
// on packed weights (mkldnn::_convolution_pointwise) and static int8 (onednn::qconv_pointwise). All run as
// operators on ATen's threads, channels last, with relu behind them. Answers are compared before times.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "graph/flat_call.h"
#include "halftone/cli/table.h"
#include "halftone/compile/compile.h"
#include "halftone/graph/graph_module.h"
#include "halftone/tune/measure.h"

namespace {

using namespace halftone;
using Stack = std::vector<c10::IValue>;

struct ConvLayer {
  int64_t in, out, size, kernel, stride;
  int times;  ///< in the network
  std::string name() const {
    return fmt::format("{}x{} {}→{} at {}/{}", kernel, kernel, in, out, size, stride);
  }
  int64_t pad() const { return kernel / 2; }
  double multiply_adds(int64_t batch) const {
    const int64_t side = (size + 2 * pad() - kernel) / stride + 1;
    return static_cast<double>(batch * side * side * out) * static_cast<double>(in * kernel * kernel);
  }
};

/// 224 x 224, the stride in the 3x3 convolutions; each shape once.
std::vector<ConvLayer> resnet50_layers() {
  std::vector<ConvLayer> layers = {{3, 64, 224, 7, 2, 1}};
  const int blocks[] = {3, 4, 6, 3};
  int64_t width = 64, in = 64, size = 56;
  for (int stage = 0; stage < 4; ++stage, width *= 2) {
    const int64_t stride = stage == 0 ? 1 : 2;
    layers.push_back({in, width, size, 1, 1, 1});
    layers.push_back({width, width, size, 3, stride, 1});
    layers.push_back({in, 4 * width, size, 1, stride, 1});  // the shortcut
    size /= stride;
    layers.push_back({width, 4 * width, size, 1, 1, blocks[stage]});
    layers.push_back({4 * width, width, size, 1, 1, blocks[stage] - 1});
    layers.push_back({width, width, size, 3, 1, blocks[stage] - 1});
    in = 4 * width;
  }
  return layers;
}

/// An operator with its operands; calls give its first result.
std::function<at::Tensor()> bind(const char* name, const char* overload, Stack operands) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  return [op, operands = std::move(operands)] {
    Stack stack = operands;
    op.callBoxed(stack);
    return stack.at(0).toTensor();
  };
}

using Pair = std::vector<int64_t>;
const c10::List<std::optional<at::Scalar>> kNoScalars;

struct Way {
  std::string name;
  std::function<at::Tensor()> run;
};

std::string dims(const at::Tensor& t) {
  return fmt::format("[{}; {}]", fmt::join(t.sizes(), ", "), fmt::join(t.strides(), ", "));
}

/// A graph of `text` compiled; calls give its result for `x`.
std::function<at::Tensor()> compiled(const std::string& text, TensorMap tensors, const at::Tensor& x) {
  auto graph = parse_graph(text);
  CallSpec call = flat_call(*graph);
  auto module = std::make_shared<GraphModule>(std::move(graph), std::move(tensors), std::move(call));
  auto session = std::make_shared<Session>(module, compile(module));
  return [session, x] { return session->run({x}).at(0).toTensor(); };
}

std::vector<Way> float_ways(const ConvLayer& layer, const at::Tensor& x, const at::Tensor& w,
                            const at::Tensor& b, const at::Tensor& exact) {
  const Pair pad(2, layer.pad()), stride(2, layer.stride), one(2, 1);
  const Pair sizes = x.sizes().vec();
  const at::Tensor packed =
      bind("mkldnn::_reorder_convolution_weight", "", {w, pad, stride, one, int64_t{1}, sizes})();
  const std::string text = fmt::format(
      R"(graph(%w: parameter "w" f32{}, %b: parameter "b" f32[{}], %x: user "x" f32{}) {{
        %c: f32{} = aten::conv2d(%x, %w, %b, [{}, {}], [{}, {}])
        %y: f32{} = aten::relu(%c)
        return %y
      }})",
      dims(w), layer.out, dims(x), dims(exact), layer.stride, layer.stride, layer.pad(), layer.pad(),
      dims(exact));
  return {{"halftone fp32", compiled(text, {{"w", w}, {"b", b}}, x)},
          {"mkldnn fp32", bind("mkldnn::_convolution_pointwise", "",
                               {x, packed, b, pad, stride, one, int64_t{1}, "relu", kNoScalars, ""})}};
}

/// Widths of activations and weights; onednn's kernel has the operands of 7 and 8.
std::vector<Way> int8_ways(const ConvLayer& layer, const at::Tensor& x, const at::Tensor& w,
                           const at::Tensor& b, const at::Tensor& exact) {
  const double out_scale = exact.max().item<double>() / 255;
  const Pair pad(2, layer.pad()), stride(2, layer.stride), one(2, 1);
  const auto quantized = [](const at::Tensor& t, double scale, int64_t zero, int64_t low, int64_t high) {
    return (t / scale).round().add(static_cast<double>(zero)).clamp(low, high);
  };
  std::vector<Way> ways;
  for (const auto& [activation, weight] : {std::pair(7, 7), std::pair(7, 8), std::pair(8, 8)}) {
    const int64_t most = activation == 7 ? 127 : 255, zero = activation == 7 ? 64 : 128;
    const double x_scale = 8.0 / static_cast<double>(most + 1);
    const at::Tensor qx = quantized(x, x_scale, zero, 0, most).to(at::kByte);
    const at::Tensor w_scale = (w.abs().amax({1, 2, 3}) / (weight == 7 ? 63 : 127)).clamp_min(1e-9);
    const at::Tensor qw = (w / w_scale.view({-1, 1, 1, 1})).round().to(at::kChar);
    const std::string text = fmt::format(
        R"(graph(%w: parameter "w" i8{}, %s: parameter "s" f32[{}], %b: parameter "b" f32[{}], %x: user "x" u8{}) {{
          %y: u8{} = halftone::int8_conv(%x, %w, %s, %b, None, stride=[{}, {}], padding=[{}, {}], dilation=[1, 1],
            transposed=false, output_padding=[0, 0], groups=1, x_scale={:.17g}, x_zero_point={}, x_max={},
            out_scale={:.17g}, out_zero_point=0, out_min=0, out_max=255)
          return %y
        }})",
        dims(qw), layer.out, layer.out, dims(qx), dims(exact), layer.stride, layer.stride, layer.pad(),
        layer.pad(), x_scale, zero, most, out_scale);
    ways.push_back({fmt::format("halftone {}x{}", activation, weight),
                    compiled(text, {{"w", qw}, {"s", w_scale}, {"b", b}}, qx)});
    if (activation == 8 || weight == 7) continue;
    const at::Tensor zeros = at::zeros({layer.out}, at::kInt);
    const Pair sizes = x.sizes().vec();
    const at::Tensor packed = bind("onednn::qconv_prepack", "",
                                   {qw, w_scale, x_scale, zero, stride, pad, one, int64_t{1}, sizes})();
    ways.push_back({"onednn 7x8",
                    bind("onednn::qconv_pointwise", "",
                         {qx, x_scale, zero, packed, w_scale, zeros, b, stride, pad, one, int64_t{1},
                          out_scale, int64_t{0}, static_cast<int64_t>(at::kByte), "relu", kNoScalars, ""})});
  }
  return ways;
}

double cosine(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.flatten().to(at::kDouble), y = b.flatten().to(at::kDouble);
  return (x.dot(y) / (x.norm() * y.norm())).item<double>();
}

std::vector<Way> make_ways(const ConvLayer& layer, int64_t batch) {
  const at::Tensor x = at::randn({batch, layer.in, layer.size, layer.size})
                           .clamp(-3.9, 3.9)
                           .contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor w = at::randn({layer.out, layer.in, layer.kernel, layer.kernel}) /
                       std::sqrt(layer.in * layer.kernel * layer.kernel);
  const at::Tensor b = at::randn({layer.out}) / 4;
  const at::Tensor exact = at::relu(at::conv2d(x, w, b, layer.stride, layer.pad()));
  std::vector<Way> ways = float_ways(layer, x, w, b, exact);
  for (Way& way : int8_ways(layer, x, w, b, exact)) ways.push_back(std::move(way));
  for (const Way& way : ways) {
    // onednn's byte products saturate if the machine has no VNNI, but not with 7-bit activations.
    const double agrees = cosine(way.run().to(at::kFloat), exact);
    if (agrees < 0.99)
      throw std::runtime_error(
          fmt::format("{}: {}: cosine {:.4f} to fp32: wrong, not timed", layer.name(), way.name, agrees));
  }
  return ways;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t batch = 1;
  double seconds = 1;
  bool json = false;
  CLI::App app("ResNet-50's convolutions beside libtorch's");
  app.add_option("--batch", batch)->capture_default_str();
  app.add_option("--seconds", seconds, "for each layer")->capture_default_str();
  app.add_flag("--json", json, "a line for each layer");
  CLI11_PARSE(app, argc, argv);
  try {
    const at::NoGradGuard no_grad;
    at::manual_seed(0);
    std::vector<Row> rows;
    std::vector<std::string> names;
    std::vector<double> totals;
    for (const ConvLayer& layer : resnet50_layers()) {
      const std::vector<Way> ways = make_ways(layer, batch);
      std::vector<TimedCandidate> timed_candidates;
      for (const Way& way : ways) {
        timed_candidates.push_back({});
        timed_candidates.back().name = way.name;
        timed_candidates.back().run = [&way] { way.run(); };
      }
      MeasureOptions options;
      options.seconds = seconds;
      const Measurements measured = measure(timed_candidates, options);
      Row row = {layer.name(), std::to_string(layer.times)};
      nlohmann::ordered_json line = {{"layer", layer.name()}, {"times", layer.times}, {"batch", batch}};
      totals.resize(ways.size());
      names.clear();
      for (size_t i = 0; i < ways.size(); ++i) {
        if (measured.rows[i].failed) throw std::runtime_error(ways[i].name + ": " + measured.rows[i].reason);
        names.push_back(ways[i].name);
        totals[i] += layer.times * measured.rows[i].median;
        row.push_back(fmt::format("{:.3f}", measured.rows[i].median));
        line[ways[i].name] = measured.rows[i].median;
      }
      if (json) fmt::print("{}\n", line.dump());
      rows.push_back(std::move(row));
    }
    if (json) return 0;
    Row sum = {"all 53", ""};
    for (const double total : totals) sum.push_back(fmt::format("{:.2f}", total));
    rows.push_back(std::move(sum));
    std::vector<Column> columns = {{"convolution"}, {"times", Align::kRight}};
    for (const std::string& name : names) columns.push_back({name, Align::kRight});
    fmt::print("ms, batch {}, {} threads\n{}", batch, at::get_num_threads(),
               render_table(columns, rows, 120));
  } catch (const std::exception& error) {
    fmt::print(stderr, "conv_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
