// Random joint graphs of views, lists, cheap, costly and random operators: whatever is saved, forward and
// backward give the bits that the joint graph gives.
#include <ATen/Context.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "autograd/partition/operator_classes.h"
#include "autograd/partition/test_support.h"

namespace halftone::partition {
namespace {

constexpr size_t kPrimals = 3;
constexpr size_t kTangents = 2;
constexpr size_t kResults = 3;

/// All values in the pool are f32[4, 4].
class Program {
 public:
  explicit Program(unsigned seed) : random_(seed) {}

  JointGraph make() {
    std::vector<std::string> inputs;
    for (size_t i = 0; i < kPrimals + kTangents; ++i) {
      const std::string name = i < kPrimals ? fmt::format("p{}", i) : fmt::format("d{}", i - kPrimals);
      inputs.push_back(fmt::format("%{}: user \"{}\" f32[4, 4]", name, name));
      if (i < kPrimals) pool_.push_back(name);
    }
    for (size_t i = 4 + random_() % 12; i > 0; --i) statement();
    std::vector<std::string> outputs;
    for (size_t i = 0; i < kResults; ++i) outputs.push_back("%" + any());
    const size_t forward_values = next_;
    for (size_t i = 0; i < kTangents; ++i) pool_.push_back(fmt::format("d{}", i));
    for (size_t i = 2 + random_() % 12; i > 0; --i) statement();
    for (size_t i = 0; i < kPrimals; ++i) outputs.push_back(random_() % 5 == 0 ? "None" : "%" + any());
    const std::string text = fmt::format("graph({}) {{\n{}  return {}\n}}\n", fmt::join(inputs, ", "), body_,
                                         fmt::join(outputs, ", "));
    // Half of the graphs come without the hint, but only if nothing random stands in backward.
    const bool hint = random_in_backward(forward_values) || random_() % 2 == 0;
    return joint_from_text(text, kPrimals, kResults, hint ? fmt::format("v{}", forward_values) : "");
  }

 private:
  const std::string& any() {
    // Late values more often than early ones.
    const size_t back = std::min(random_() % pool_.size(), random_() % pool_.size());
    return pool_[pool_.size() - 1 - back];
  }
  std::string fresh() { return fmt::format("v{}", next_++); }
  bool random_in_backward(size_t first) const { return last_random_ >= first && last_random_ != 0; }

  std::string line(std::string_view type, const std::string& call) {
    const std::string name = fresh();
    body_ += fmt::format("  %{}: {} = aten::{}\n", name, type, call);
    return name;
  }
  void add(const std::string& call) { pool_.push_back(line("f32[4, 4; ?]", call)); }

  void statement() {
    const std::string a = any();
    const std::string b = any();
    switch (random_() % 14) {
      case 0:
        return add(fmt::format("mm(%{}, %{})", a, b));
      case 1:
        return add(fmt::format("t(%{})", a));
      case 2:
        return add(fmt::format("mul.Tensor(%{}, %{})", a, b));
      case 3:
        return add(fmt::format("sigmoid(%{})", a));
      case 4:
        return add(fmt::format("detach(%{})", a));
      case 5:
        return add(fmt::format("where.self(%{}, %{}, %{})",
                               line("bool[4, 4; ?]", fmt::format("gt.Tensor(%{}, %{})", a, b)), a, b));
      case 6:
        return add(fmt::format("expand(%{}, [4, 4])",
                               line("f32[1, 4]", fmt::format("mean.dim(%{}, [0], true)", a))));
      case 7:
        return add(
            fmt::format("expand(%{}, [4, 4])", line("f32[4; ?]", fmt::format("select.int(%{}, 0, 2)", a))));
      case 8:
        return add(fmt::format("cat(%{}, 0)", line("list", fmt::format("split.Tensor(%{}, 3, 0)", a))));
      case 9:
        return unpacked(a);
      case 10:
        return layer_norm(a);
      case 11:
        return dropout(a);
      case 12:
        return number(a, b);
      default:
        return add(fmt::format("sub.Tensor(%{}, %{})", a, b));
    }
  }

  void unpacked(const std::string& a) {
    const std::string list = line("list", fmt::format("split.Tensor(%{}, 2, 1)", a));
    const std::string left = fresh();
    const std::string right = fresh();
    body_ +=
        fmt::format("  %{}: f32[4, 2; ?], %{}: f32[4, 2; ?] = builtin::unpack(%{})\n", left, right, list);
    const std::string changed = line("f32[4, 2; ?]", fmt::format("cos(%{})", left));
    add(fmt::format("cat([%{}, %{}], 1)", random_() % 2 == 0 ? right : left, changed));
  }

  void layer_norm(const std::string& a) {
    const std::string out = fresh();
    const std::string mean = fresh();
    const std::string rstd = fresh();
    body_ += fmt::format(
        "  %{}: f32[4, 4], %{}: f32[4, 1], %{}: f32[4, 1] = aten::native_layer_norm(%{}, [4], None, None, "
        "1e-5)\n",
        out, mean, rstd, a);
    if (random_() % 2 == 0) pool_.push_back(out);
    add(fmt::format("expand(%{}, [4, 4])", rstd));
  }

  void dropout(const std::string& a) {
    const std::string out = fresh();
    const std::string mask = fresh();
    last_random_ = next_ - 1;
    body_ += fmt::format("  %{}: f32[4, 4], %{}: bool[4, 4] = aten::native_dropout(%{}, 0.5, true)\n", out,
                         mask, a);
    pool_.push_back(out);
    add(fmt::format("_to_copy(%{}, dtype=dtype:f32)", mask));
  }

  void number(const std::string& a, const std::string& b) {
    const std::string sum = line("f32[]", fmt::format("mean(%{})", a));
    add(fmt::format("mul.Scalar(%{}, %{})", b, line("float", fmt::format("item(%{})", sum))));
  }

  std::mt19937 random_;
  std::vector<std::string> pool_;
  std::string body_;
  size_t next_ = 0;
  size_t last_random_ = 0;
};

std::vector<c10::IValue> seeded(const std::function<std::vector<c10::IValue>()>& run) {
  at::manual_seed(5);
  return run();
}

size_t count_random(const Graph& graph) {
  size_t count = 0;
  for (const auto& node : graph.nodes()) count += runs_once(*node) ? 1 : 0;
  return count;
}

void check(const JointGraph& joint, const PartitionedGraphs& graphs, const std::vector<c10::IValue>& inputs,
           const std::vector<c10::IValue>& expected) {
  EXPECT_EQ(graphs.forward->inputs().size(), joint.primals);
  EXPECT_EQ(graphs.forward->outputs().size(), joint.results + graphs.saved);
  EXPECT_EQ(graphs.backward->inputs().size(), graphs.saved + joint.tangents);
  EXPECT_EQ(count_random(*graphs.forward) + count_random(*graphs.backward), count_random(*joint.graph));
  for (size_t i = 0; i < graphs.saved; ++i)
    EXPECT_EQ(graphs.backward->inputs()[i].value->type(), ValueType::kTensor);
  EXPECT_TRUE(same_bits(seeded([&] { return run_parts(graphs, joint.primals, inputs); }), expected))
      << print_graph(*joint.graph) << print_graph(*graphs.forward) << print_graph(*graphs.backward);
}

TEST(RandomJointGraphs, PartsGiveTheBitsOfTheWhole) {
  at::manual_seed(1);
  std::vector<c10::IValue> inputs;
  for (size_t i = 0; i < kPrimals + kTangents; ++i) inputs.emplace_back(at::randn({4, 4}));
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const JointGraph joint = Program(seed).make();
    const auto expected = seeded([&] { return run_graph(*joint.graph, inputs); });
    check(joint, default_partition(joint), inputs, expected);
    int64_t last = 0;
    for (const double budget : {0.0, 0.3, 0.7, 1.0}) {
      const PartitionedGraphs graphs = min_cut_rematerialization_partition(joint, {budget});
      check(joint, graphs, inputs, expected);
      EXPECT_GE(saved_bytes(graphs), last) << budget;
      last = saved_bytes(graphs);
    }
    EXPECT_LE(last, saved_bytes(default_partition(joint)));
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace halftone::partition
