// Random programs of views and writes: the pure graph gives what the writing program gives.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <torch/nn/module.h>

#include <random>

#include "capture/module/test_support.h"

namespace halftone {
namespace {

using Random = std::mt19937;

int64_t below(Random& random, int64_t limit) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
}

at::Tensor random_view(const at::Tensor& x, Random& random) {
  const int64_t rank = x.dim();
  if (rank == 0) return x.unsqueeze(0);
  const int64_t dim = below(random, rank), size = x.size(dim);
  switch (below(random, 11)) {
    case 0:
      return rank > 1 ? x.select(dim, below(random, size)) : x.view({-1});
    case 1:
      return x.slice(dim, below(random, size), size);
    case 2:
      return x.slice(dim, 0, size, 2);
    case 3:
      return x.transpose(dim, below(random, rank));
    case 4:
      return x.unsqueeze(dim);
    case 5:
      return x.flatten();  // a view, or a copy where the strides ask for one
    case 6:
      return x.chunk(2, dim).back();
    case 7:
      return rank > 1 ? x.unbind(dim).front() : x.detach();
    case 8:
      return rank > 1 && x.size(0) > 0 && x.size(1) > 0 ? x.diagonal() : x.squeeze();
    case 9:
      return x.narrow(dim, size / 2, size - size / 2);
    default:
      return x.movedim(dim, 0);
  }
}

void random_write(at::Tensor x, const at::Tensor& other, Random& random) {
  switch (below(random, 9)) {
    case 0:
      x.add_(1.5);
      break;
    case 1:
      x.mul_(other);
      break;
    case 2:
      x.copy_(other);
      break;
    case 3:
      x.fill_(0.25);
      break;
    case 4:
      x.relu_();
      break;
    case 5:
      x.masked_fill_(x > 0.5, -1);
      break;
    case 6:
      if (x.dim() > 0 && x.size(0) > 1) x.index_put_({at::ones({1}, at::kLong)}, other);
      break;
    case 7:
      at::add_out(x, x, x.clone());
      break;
    default:
      x.zero_();
  }
}

/// The same program for the same seed, whatever the data: choices look at sizes only.
struct RandomProgram : torch::nn::Module {
  explicit RandomProgram(unsigned seed) : seed_(seed) {}
  at::Tensor state{register_buffer("state", seeded({3, 4}, 9))};
  std::vector<at::Tensor> forward(const at::Tensor& x) {
    Random random(seed_);
    std::vector<at::Tensor> pool = {x, x * 2, state, x.transpose(0, 1).contiguous()};
    for (int step = 0; step < 14; ++step) {
      const at::Tensor& picked = pool[static_cast<size_t>(below(random, static_cast<int64_t>(pool.size())))];
      if (below(random, 2) == 0) {
        pool.push_back(random_view(picked, random));
      } else {
        const at::Tensor& from = pool[static_cast<size_t>(below(random, static_cast<int64_t>(pool.size())))];
        random_write(picked, from.sum() + 1, random);
      }
      if (step % 5 == 4) pool.push_back(pool.back() + 1);
    }
    return pool;
  }

 private:
  unsigned seed_;
};

TEST(CaptureRandomWrites, GiveTheSameAsEager) {
  size_t states = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    RandomProgram program(seed);
    const ModuleBytes before = ModuleBytes::of(program);
    const auto graph = capture(program, std::tuple(seeded({3, 4}, seed)));
    ASSERT_TRUE(ModuleBytes::of(program) == before);
    for (const auto& node : graph->graph().nodes())
      ASSERT_FALSE(node->op() && node->op()->schema().is_mutable()) << node->target();
    Session session(graph);
    states += session.state_names().size();
    for (uint64_t call = 0; call < 2; ++call) {
      at::Tensor mine = seeded({3, 4}, 1000 + seed + call), eager = mine.clone();
      const c10::IValue found = session({mine});
      // Copies: later calls write to what the results show.
      std::vector<at::Tensor> expected;
      for (const at::Tensor& result : program.forward(eager)) expected.push_back(result.clone());
      expect_same(found, expected, 1e-5);
      ASSERT_TRUE(at::allclose(mine, eager, 1e-5, 1e-5));
      for (const std::string& name : session.state_names())
        ASSERT_TRUE(at::allclose(session.state(name), program.state, 1e-5, 1e-5));
      if (HasFailure()) FAIL() << print_graph(graph->graph());
    }
  }
  EXPECT_GT(states, 50U);
}

}  // namespace
}  // namespace halftone
