// Random small graphs, compiled against interpreted. HALFTONE_RANDOM_GRAPHS sets how many (500).
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "graph/test_support.h"
#include "halftone/compile/compile.h"

namespace halftone {
namespace {

/// Grows a graph of values [s0, s1, width], one operation at a time.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {
    at::manual_seed(seed);
    add_value("x", 8 * (1 + pick(3)));
    inputs_ = fmt::format("%x: user \"x\" f32[s0, s1, {}]", values_[0].width);
  }

  std::shared_ptr<GraphModule> make() {
    const size_t operations = 2 + pick(12);
    for (size_t i = 0; i < operations; ++i) add_operation();
    // The newest value, and some others: what is also a result must survive fusion.
    std::string results = "%" + values_.back().name;
    for (const Entry& value : values_) {
      if (pick(6) == 0) results += ", %" + value.name;
    }
    text_ = fmt::format("graph({}) {{\n{}  return {}\n}}", inputs_, body_, results);
    return module_from_text(text_, tensors_);
  }

  int64_t width() const { return values_[0].width; }
  const std::string& text() const { return text_; }
  int64_t pick(int64_t count) { return static_cast<int64_t>(random_() % static_cast<unsigned>(count)); }

 private:
  struct Entry {
    std::string name;
    int64_t width;
  };

  void add_value(std::string name, int64_t width) { values_.push_back({std::move(name), width}); }
  std::string fresh() { return fmt::format("v{}", next_++); }
  Entry any() { return values_[static_cast<size_t>(pick(static_cast<int64_t>(values_.size())))]; }
  /// Newer values are likelier, so that chains grow long enough to be fused.
  Entry recent() { return pick(3) == 0 ? any() : values_.back(); }
  static std::string type(int64_t width) { return fmt::format("f32[s0, s1, {}]", width); }

  std::string weight(std::vector<int64_t> sizes, bool positive = false) {
    const std::string name = fmt::format("p{}", next_++);
    at::Tensor tensor = at::randn(sizes) * 0.4;
    tensors_[name] = positive ? tensor.abs() + 0.5 : tensor;
    inputs_ += fmt::format(", %{}: parameter \"{}\" f32[{}]", name, name, fmt::join(sizes, ", "));
    return "%" + name;
  }

  void line(const std::string& name, int64_t width, const std::string& call) {
    body_ += fmt::format("  %{}: {} = {}\n", name, type(width), call);
    add_value(name, width);
  }

  void add_operation() {
    switch (pick(11)) {
      case 0:
      case 1:
      case 2:
        return add_linear();
      case 3:
        return add_unary();
      case 4:
      case 5:
        return add_binary();
      case 6:
        return add_norm();
      case 7:
        return add_attention();
      case 8:
        return add_row_broadcast();
      case 9:
        return add_softmax();
      default:
        return add_halves();
    }
  }

  void add_linear() {
    const Entry x = recent();
    const int64_t n = 8 * (1 + pick(4));
    const std::string w = weight({n, x.width});
    const std::string bias = pick(2) == 0 ? weight({n}) : "None";
    line(fresh(), n, fmt::format("aten::linear(%{}, {}, {})", x.name, w, bias));
  }
  void add_unary() {
    const Entry x = recent();
    const char* calls[] = {"aten::gelu(%{})", "aten::relu(%{})",  "aten::silu(%{})",
                           "aten::tanh(%{})", "aten::clone(%{})", "aten::detach(%{})"};
    line(fresh(), x.width, fmt::format(fmt::runtime(calls[pick(6)]), x.name));
  }
  void add_binary() {
    const Entry x = recent();
    for (size_t tries = 0; tries < 8; ++tries) {
      const Entry y = any();
      if (y.width != x.width) continue;
      const char* op = pick(3) == 0   ? "aten::mul.Tensor"
                       : pick(4) == 0 ? "aten::sub.Tensor"
                                      : "aten::add.Tensor";
      return line(fresh(), x.width, fmt::format("{}(%{}, %{})", op, x.name, y.name));
    }
  }
  void add_norm() {
    const Entry x = recent();
    const std::string gamma = pick(2) == 0 ? weight({x.width}, true) : "None";
    const std::string beta = gamma != "None" && pick(2) == 0 ? weight({x.width}) : "None";
    line(fresh(), x.width, fmt::format("aten::layer_norm(%{}, [{}], {}, {})", x.name, x.width, gamma, beta));
  }
  void add_row_broadcast() {
    const Entry x = recent();
    line(fresh(), x.width, fmt::format("aten::add.Tensor(%{}, {})", x.name, weight({x.width})));
  }
  void add_softmax() {
    const Entry x = recent();
    line(fresh(), x.width, fmt::format("aten::softmax.int(%{}, -1)", x.name));
  }
  /// Self-attention of `x` in heads of 4, as a model spells it.
  void add_attention() {
    const Entry x = recent();
    const int64_t heads = x.width / 4;
    const std::string n = fresh();
    std::string split[2];
    for (std::string& each : split) {
      const std::string view = fresh();
      each = fresh();
      body_ += fmt::format("  %{}: f32[s0, s1, {}, 4] = aten::unflatten.int(%{}, -1, [{}, 4])\n", view, heads,
                           x.name, heads);
      body_ += fmt::format("  %{}: f32[s0, {}, s1, 4; {}*s1, 4, {}, 1] = aten::transpose.int(%{}, 1, 2)\n",
                           each, heads, 4 * heads, 4 * heads, view);
    }
    const std::string y = fresh(), back = fresh();
    const bool causal = pick(2) == 0;
    body_ += fmt::format(
        "  %{}: f32[s0, {}, s1, 4; {}*s1, 4, {}, 1] = aten::scaled_dot_product_attention(%{}, %{}, %{}, "
        "None, 0.0, {})\n",
        y, heads, 4 * heads, 4 * heads, split[0], split[1], split[0], causal);
    body_ += fmt::format("  %{}: f32[s0, s1, {}, 4] = aten::transpose.int(%{}, 1, 2)\n", back, heads, y);
    line(fresh(), x.width, fmt::format("aten::flatten.using_ints(%{}, 2)", back));
  }
  /// A gated unit: one half times the activated other.
  void add_halves() {
    const Entry x = recent();
    if (x.width % 8 != 0) return;  // halves must still split into heads of 4
    const int64_t half = x.width / 2;
    const std::string a = fresh(), b = fresh(), g = fresh();
    body_ += fmt::format("  %{}: f32[s0, s1, {}; {}*s1, {}, 1] = aten::slice.Tensor(%{}, -1, 0, {})\n", a,
                         half, x.width, x.width, x.name, half);
    body_ += fmt::format("  %{}: f32[s0, s1, {}; {}*s1, {}, 1] = aten::slice.Tensor(%{}, -1, {})\n", b, half,
                         x.width, x.width, x.name, half);
    body_ += fmt::format("  %{}: f32[s0, s1, {}] = aten::silu(%{})\n", g, half, a);
    line(fresh(), half, fmt::format("aten::mul.Tensor(%{}, %{})", g, b));
  }

  std::mt19937 random_;
  std::string inputs_, body_, text_;
  TensorMap tensors_;
  std::vector<Entry> values_;
  int next_ = 0;
};

int graph_count() {
  const char* wanted = std::getenv("HALFTONE_RANDOM_GRAPHS");
  return wanted ? std::atoi(wanted) : 500;
}

TEST(RandomGraphs, CompiledEqualsInterpreted) {
  ASSERT_GT(graph_count(), 0);
  for (int seed = 0; seed < graph_count(); ++seed) {
    Generator generator(static_cast<unsigned>(seed));
    const auto module = generator.make();
    const auto compiled = compile(module);
    for (const auto& [batch, tokens] :
         {std::pair{1 + generator.pick(3), 1 + generator.pick(9)}, {int64_t{2}, int64_t{1}}}) {
      const at::Tensor x = at::randn({batch, tokens, generator.width()});
      const auto expected = Session(module).run({x});
      const auto found = compiled->run({x});
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        // Values grow by squares of squares, and cancel again: errors count against the largest one.
        const at::Tensor difference = (found[i].toTensor() - expected[i].toTensor()).abs();
        const double scale = std::max(1.0, expected[i].toTensor().abs().max().item<double>());
        ASSERT_LE(difference.max().item<double>(), 1e-4 * scale)
            << "seed " << seed << ", result " << i << "\n"
            << generator.text() << "\n"
            << print_graph(compiled->graph());
      }
    }
  }
}

}  // namespace
}  // namespace halftone
