// Random graphs of convolutions and what stands between them, compiled against interpreted.
// HALFTONE_RANDOM_CONV_GRAPHS sets how many (120).
#include <cstdlib>
#include <random>

#include "compiler/executor/conv_test_support.h"

namespace halftone {
namespace {

/// Grows a graph of images [s0, channels, size, size], one operation at a time.
class ConvGraphGenerator {
 public:
  explicit ConvGraphGenerator(unsigned seed) : random_(seed), net_("%x: user \"x\" f32[s0, 4, 12, 12]") {
    at::manual_seed(seed);
    values_.push_back({"%x", 4, 12});
  }

  std::shared_ptr<GraphModule> make() {
    const int64_t operations = 3 + pick(10);
    for (int64_t i = 0; i < operations; ++i) add_operation();
    std::string results = values_.back().name;
    for (const Image& image : values_) {
      if (pick(6) == 0 && image.name != "%x") results += ", " + image.name;
    }
    return net_.make(results);
  }

 private:
  struct Image {
    std::string name;
    int64_t channels, size;
  };
  int64_t pick(int64_t count) { return static_cast<int64_t>(random_() % static_cast<unsigned>(count)); }
  Image any() { return values_[static_cast<size_t>(pick(static_cast<int64_t>(values_.size())))]; }
  Image recent() { return pick(3) == 0 ? any() : values_.back(); }
  static std::string type(const Image& image) {
    return fmt::format("f32[s0, {}, {}, {}]", image.channels, image.size, image.size);
  }
  void put(Image image, const std::string& call) {
    image.name = net_.add(type(image), call);
    values_.push_back(image);
  }

  void add_operation() {
    switch (pick(10)) {
      case 0:
      case 1:
      case 2:
        return add_conv();
      case 3:
        return add_transposed();
      case 4:
      case 5:
        return add_activation();
      case 6:
        return add_sum();
      case 7:
        return add_pool();
      case 8:
        return add_cat();
      default:
        return add_gate();
    }
  }
  void add_conv() {
    Image x = recent();
    const int64_t kernel = x.size >= 5 ? 1 + 2 * pick(3) : 1, pad = pick(kernel / 2 + 1),
                  stride = 1 + pick(2);
    const bool depthwise = pick(4) == 0;
    const int64_t groups = depthwise ? x.channels : pick(4) == 0 ? 2 : 1;
    Image y{"", depthwise ? x.channels : 4 * (1 + pick(5)), (x.size + 2 * pad - kernel) / stride + 1};
    const std::string w = net_.weight({y.channels, x.channels / groups, kernel, kernel}, 0.2);
    const std::string b = pick(2) == 0 ? net_.weight({y.channels}) : "None";
    put(y, fmt::format("aten::conv2d({}, {}, {}, [{}, {}], [{}, {}], [1, 1], {})", x.name, w, b, stride,
                       stride, pad, pad, groups));
    if (pick(3) == 0) {
      y.name = net_.batch_norm(type(y), values_.back().name, y.channels);
      values_.push_back(y);
    }
  }
  void add_transposed() {
    const Image x = recent();
    if (x.size > 12) return;
    const Image y{"", 4 * (1 + pick(3)), x.size * 2};
    put(y, fmt::format("aten::conv_transpose2d.input({}, {}, None, [2, 2])", x.name,
                       net_.weight({x.channels, y.channels, 2, 2})));
  }
  void add_activation() {
    const Image x = recent();
    const char* calls[] = {"aten::relu({})",      "aten::silu({})",    "aten::gelu({})",
                           "aten::hardswish({})", "aten::sigmoid({})", "aten::hardtanh({}, -1.0, 2.0)",
                           "aten::tanh({})",      "aten::neg({})"};
    put(x, fmt::format(fmt::runtime(calls[pick(8)]), x.name));
  }
  void add_sum() {
    const Image x = recent();
    for (int tries = 0; tries < 8; ++tries) {
      const Image y = any();
      if (y.channels != x.channels || y.size != x.size) continue;
      const char* op = pick(4) == 0 ? "aten::mul.Tensor" : "aten::add.Tensor";
      return put(x, fmt::format("{}({}, {})", op, x.name, y.name));
    }
  }
  void add_pool() {
    const Image x = recent();
    if (x.size < 4) return;
    const Image y{"", x.channels, (x.size - 2) / 2 + 1};
    const char* op = pick(2) == 0 ? "aten::max_pool2d" : "aten::avg_pool2d";
    put(y, fmt::format("{}({}, [2, 2])", op, x.name));
  }
  void add_cat() {
    const Image x = recent();
    for (int tries = 0; tries < 8; ++tries) {
      const Image y = any();
      if (y.size != x.size || x.channels + y.channels > 64) continue;
      return put({"", x.channels + y.channels, x.size},
                 fmt::format("aten::cat([{}, {}], 1)", x.name, y.name));
    }
  }
  void add_gate() {
    const Image x = recent();
    const std::string small = fmt::format("f32[s0, {}, 1, 1]", x.channels);
    std::string g = net_.add(small, fmt::format("aten::adaptive_avg_pool2d({}, [1, 1])", x.name));
    g = net_.add(small, fmt::format("aten::conv2d({}, {})", g, net_.weight({x.channels, x.channels, 1, 1})));
    g = net_.add(small, fmt::format("aten::sigmoid({})", g));
    put(x, fmt::format("aten::mul.Tensor({}, {})", x.name, g));
  }

  std::mt19937 random_;
  NetWriter net_;
  std::vector<Image> values_;
};

TEST(ConvModels, RandomGraphs) {
  const char* wanted = std::getenv("HALFTONE_RANDOM_CONV_GRAPHS");
  const int count = wanted ? std::atoi(wanted) : 120;
  ASSERT_GT(count, 0);
  for (int seed = 0; seed < count && !testing::Test::HasFailure(); ++seed) {
    const auto module = ConvGraphGenerator(static_cast<unsigned>(seed)).make();
    const auto compiled = compile(module);
    for (const int64_t batch : {1, 3}) {
      const at::Tensor x = at::randn({batch, 4, 12, 12});
      expect_close(compiled->run({x}), Session(module).run({x}),
                   fmt::format("seed {}\n{}", seed, print_graph(compiled->graph())));
    }
  }
}

}  // namespace
}  // namespace halftone
