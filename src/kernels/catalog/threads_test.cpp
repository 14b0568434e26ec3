// Every operation on several threads, and from several callers at once: the same floats as on one thread.
// This is the program that runs under ThreadSanitizer (tests/sanitize): what races, races here.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "kernels/attention/attention.h"
#include "kernels/bf16_linear/bf16_linear.h"
#include "kernels/common/kernel_table.h"
#include "kernels/common/test_support.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/embedding_rows/embedding_rows.h"
#include "kernels/fp32_conv/fp32_conv.h"
#include "kernels/fp8_linear/fp8_linear.h"
#include "kernels/int4_dynamic_linear/int4_dynamic_linear.h"
#include "kernels/int4_weight_only_linear/int4_weight_only_linear.h"
#include "kernels/int8_linear/int8_linear.h"
#include "kernels/int8_weight_only_linear/int8_weight_only_linear.h"
#include "kernels/norm/norm.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "kernels/softmax/softmax.h"

namespace halftone::kernels {
namespace {

using testing::Aligned;

constexpr int64_t kColumns = 352, kDepth = 320;  // whole groups, several tasks for each of four threads

/// Inputs that all operations and all callers share, never written.
struct Inputs {
  std::vector<float> floats = std::vector<float>(kColumns * kDepth),
                     scales = std::vector<float>(kColumns * 10);
  std::vector<int8_t> bytes = std::vector<int8_t>(kColumns * kDepth);

  Inputs() {
    testing::Random random(11);
    random.fill_normal(floats);
    for (float& s : scales) s = 0.001f * static_cast<float>(random.integer(1, 9));
    for (int8_t& b : bytes) b = static_cast<int8_t>(random.integer(-8, 7));
  }
};

const Inputs& inputs() {
  static const Inputs shared;
  return shared;
}

/// Runs on the shared inputs and gives its floats.
struct Operation {
  std::string name;
  std::function<std::vector<float>(ParallelFor&)> run;
};

std::vector<float> output(int64_t rows, int64_t columns = kColumns) {
  return std::vector<float>(static_cast<size_t>(rows * columns));
}

/// A linear of `m` rows to floats; `workspace_bytes(threads)`, `pack(block)`, `call(args, ParallelFor)`.
template <typename Args>
Operation linear(const char* kernel, int64_t m, size_t packed_bytes, const std::function<void(void*)>& pack,
                 std::function<size_t(int)> workspace_bytes,
                 std::function<void(const Args&, ParallelFor&)> call) {
  auto block = std::make_shared<Aligned>(packed_bytes);
  pack(block->data());
  return {std::string(kernel) + " m " + std::to_string(m), [=](ParallelFor& parallel_for) {
            std::vector<float> y = output(m);
            std::vector<char> workspace(workspace_bytes(parallel_for.threads()));
            Args args;
            args.x = inputs().floats.data();
            args.x_stride = kDepth;
            args.weights = block->data();
            args.epilogue.out = y.data();
            args.epilogue.out_stride = kColumns;
            args.epilogue.bias = inputs().scales.data();
            args.epilogue.activation = Activation::kSilu;
            args.workspace = workspace.data();
            args.workspace_bytes = workspace.size();
            call(args, parallel_for);
            return y;
          }};
}

void add_float_linears(std::vector<Operation>& all, int64_t m, Isa isa) {
  const Inputs& in = inputs();
  const Fp32LinearProblem p{m, kColumns, kDepth};
  const auto& fp32 = choose_fp32_linear(p, isa);
  all.push_back(linear<Fp32LinearArgs>(
      fp32.name, m, fp32_packed_bytes(p.n, p.k, fp32.tile_n),
      [&](void* out) {
        pack_fp32_weights({in.floats.data(), p.k, p.n, p.k}, fp32.tile_n, out);
      },
      [&fp32, p](int threads) { return fp32_linear_workspace_bytes(fp32, p, threads, OutputType::kFloat32); },
      [&fp32, p](const Fp32LinearArgs& args, ParallelFor& s) { fp32_linear(fp32, p, args, s); }));
  const auto& bf16 = choose_bf16_linear(p, isa);
  std::vector<uint16_t> halves;
  for (float f : in.floats) halves.push_back(to_bfloat16(f));
  all.push_back(linear<Fp32LinearArgs>(
      bf16.name, m, bf16_packed_bytes(p.n, p.k, bf16.tile_n),
      [&](void* out) {
        pack_bf16_weights({halves.data(), p.k, p.n, p.k}, bf16.tile_n, out);
      },
      [p](int threads) { return bf16_linear_workspace_bytes(p, threads, OutputType::kFloat32); },
      [&bf16, p](const Fp32LinearArgs& args, ParallelFor& s) { bf16_linear(bf16, p, args, s); }));
  const Fp8LinearProblem p8{m, kColumns, kDepth, Fp8Activations::kDynamicE4m3};
  const auto& fp8 = choose_fp8_linear(p8, isa);
  std::vector<uint8_t> codes;
  for (int8_t b : in.bytes) codes.push_back(float8_from_float(b, Float8Format::kE4m3fn));
  all.push_back(linear<Fp32LinearArgs>(
      fp8.name, m, fp8_packed_bytes(p.n, p.k, fp8.tile_n),
      [&](void* out) {
        pack_fp8_weights({codes.data(), p.k, in.scales.data(), 1, p.n, p.k}, fp8.tile_n, out);
      },
      [p8](int threads) { return fp8_linear_workspace_bytes(p8, threads, OutputType::kFloat32); },
      [&fp8, p8](const Fp32LinearArgs& args, ParallelFor& s) { fp8_linear(fp8, p8, args, s); }));
}

void add_int8_linears(std::vector<Operation>& all, int64_t m, Isa isa) {
  const Inputs& in = inputs();
  const Int8LinearProblem p{m, kColumns, kDepth, 7};
  const auto& int8 = choose_int8_linear(p, isa);
  all.push_back(linear<Int8LinearArgs>(
      int8.name, m, int8_packed_bytes(p.n, p.k, int8.tile),
      [&](void* out) {
        pack_int8_weights({in.bytes.data(), p.k, in.scales.data(), p.n, p.k, 7}, int8.tile, out);
      },
      [&int8, p](int threads) { return int8_linear_workspace_bytes(int8, p, threads, OutputType::kFloat32); },
      [&int8, p](const Int8LinearArgs& args, ParallelFor& s) { int8_linear(int8, p, args, s); }));
  const Int8WeightOnlyProblem po{m, kColumns, kDepth};
  const auto& only = choose_int8_weight_only(po, isa);
  all.push_back(linear<Fp32LinearArgs>(
      only.name, m, int8_weight_only_packed_bytes(p.n, p.k, only.tile_n),
      [&](void* out) {
        pack_int8_weight_only({in.bytes.data(), p.k, in.scales.data(), p.n, p.k}, only.tile_n, out);
      },
      [po](int threads) { return int8_weight_only_workspace_bytes(po, threads, OutputType::kFloat32); },
      [&only, po](const Fp32LinearArgs& args, ParallelFor& s) {
        int8_weight_only_linear(only, po, args, s);
      }));
}

void add_int4_linears(std::vector<Operation>& all, int64_t m, Isa isa) {
  const Inputs& in = inputs();
  const Int4Weights weights{in.bytes.data(), kDepth, in.scales.data(), nullptr, kColumns, kDepth, 32};
  const Int4WeightOnlyProblem po{m, kColumns, kDepth, 32};
  const auto& only = choose_int4_weight_only(po, isa);
  all.push_back(linear<Fp32LinearArgs>(
      only.name, m, int4_weight_only_packed_bytes(kColumns, kDepth, 32, Int4ZeroPoints::kNone, only.tile_n),
      [&](void* out) { pack_int4_weight_only(weights, only.tile_n, out); },
      [po](int threads) { return int4_weight_only_workspace_bytes(po, threads, OutputType::kFloat32); },
      [&only, po](const Fp32LinearArgs& args, ParallelFor& s) {
        int4_weight_only_linear(only, po, args, s);
      }));
  const Int4DynamicProblem pd{m, kColumns, kDepth, 32};
  const auto& dynamic = choose_int4_dynamic(pd, isa);
  all.push_back(linear<Fp32LinearArgs>(
      dynamic.name, m, int4_dynamic_packed_bytes(kColumns, kDepth, 32, Int4ZeroPoints::kNone, dynamic.tile_n),
      [&](void* out) { pack_int4_dynamic(weights, dynamic.tile_n, out); },
      [&dynamic, pd](int threads) {
        return int4_dynamic_workspace_bytes(dynamic, pd, threads, OutputType::kFloat32);
      },
      [&dynamic, pd](const Fp32LinearArgs& args, ParallelFor& s) {
        int4_dynamic_linear(dynamic, pd, args, s);
      }));
}

void add_row_operations(std::vector<Operation>& all, Isa isa) {
  const float* x = inputs().floats.data();
  const int64_t rows = 64;
  const auto& quantize = choose_kernel(quantize_rows_kernels(), QuantizeRowsProblem{rows, kDepth}, isa);
  all.push_back({quantize.name, [=, &quantize](ParallelFor& s) {
                   std::vector<float> y = output(rows, 1);
                   std::vector<uint8_t> q(static_cast<size_t>(rows * kDepth));
                   std::vector<int32_t> zero(rows);
                   quantize_rows(quantize, {rows, kDepth},
                                 {x, kDepth, q.data(), kDepth, y.data(), zero.data(), RowFormat::kU8}, s);
                   y.insert(y.end(), q.begin(), q.end());
                   return y;
                 }});
  const auto& soft = choose_kernel(softmax_kernels(), SoftmaxProblem{rows, kDepth}, isa);
  all.push_back({soft.name, [=, &soft](ParallelFor& s) {
                   std::vector<float> y = output(rows, kDepth);
                   softmax(soft, {rows, kDepth}, {x, kDepth, nullptr, 0, 0.5f, y.data(), kDepth}, s);
                   return y;
                 }});
  const auto& normal = choose_kernel(norm_kernels(), NormProblem{rows, kDepth}, isa);
  all.push_back(
      {normal.name, [=, &normal](ParallelFor& s) {
         std::vector<uint16_t> y(static_cast<size_t>(rows * kDepth));
         std::vector<char> space(norm_workspace_bytes({rows, kDepth}, s.threads(), OutputType::kBFloat16));
         NormArgs args;
         args.x = x;
         args.x_stride = args.out_stride = kDepth;
         args.type = OutputType::kBFloat16;  // by way of a row for each thread
         args.out = y.data();
         args.workspace = space.data();
         args.workspace_bytes = space.size();
         norm(normal, {rows, kDepth}, args, s);
         return std::vector<float>(y.begin(), y.end());
       }});
  const auto& each = choose_kernel(elementwise_kernels(), ElementwiseProblem{kColumns * kDepth}, isa);
  all.push_back({each.name, [=, &each](ParallelFor& s) {
                   std::vector<float> y = output(kDepth);
                   activate_all(each, x, y.data(), kColumns * kDepth, Activation::kGeluErf, s);
                   return y;
                 }});
}

void add_gathering_operations(std::vector<Operation>& all, Isa isa) {
  const EmbeddingRowsProblem table{200, kColumns, kDepth, EmbeddingFormat::kInt8, 0};
  const auto& rows = choose_embedding_rows(table, isa);
  all.push_back({rows.name, [=, &rows](ParallelFor& s) {
                   std::vector<float> y = output(table.count, table.width);
                   std::vector<int64_t> index;
                   for (int64_t i = 0; i < table.count; ++i) index.push_back(i * 7 % table.rows);
                   EmbeddingRowsArgs args;
                   args.index64 = index.data();
                   args.table = inputs().bytes.data();
                   args.row_stride = args.out_stride = table.width;
                   args.scale = inputs().scales.data();
                   args.out = y.data();
                   embedding_rows(rows, table, args, s);
                   return y;
                 }});
  for (int64_t length : {7, 60}) {
    const AttentionProblem p{2, 4, 2, length, length, 32, 32, true};
    const auto& kernel = choose_attention(p, isa);
    all.push_back(
        {std::string(kernel.name) + " " + std::to_string(length), [=, &kernel](ParallelFor& s) {
           const AttentionStrides q{4 * length * 32, length * 32, 32}, kv{2 * length * 32, length * 32, 32};
           std::vector<float> y = output(8 * length, 32);
           std::vector<char> space(attention_workspace_bytes(p, s.threads()));
           AttentionArgs args;
           args.q = args.k = args.v = inputs().floats.data();
           args.q_strides = args.y_strides = q;
           args.k_strides = args.v_strides = kv;
           args.y = y.data();
           args.workspace = space.data();
           args.workspace_bytes = space.size();
           attention(kernel, p, args, s);
           return y;
         }});
  }
}

// Tiles of pixels, small groups, and Winograd where the level has it.
void add_convolutions(std::vector<Operation>& all, Isa isa) {
  for (const auto& [kernel_size, groups] : {std::pair<int64_t, int64_t>{1, 1}, {3, 32}, {3, 1}}) {
    ConvShape s;
    s.in_channels = s.out_channels = 32;
    s.groups = groups;
    s.in = {1, 24, 20};
    s.kernel = {1, kernel_size, kernel_size};
    s.pad = {0, kernel_size / 2, kernel_size / 2};
    s.out = conv_output(s);
    const auto& kernel = choose_fp32_conv({s}, isa);
    auto block = std::make_shared<Aligned>(fp32_conv_packed_bytes(kernel, s));
    pack_fp32_conv(kernel, s, inputs().floats.data(), block->data());
    all.push_back({kernel.name, [=, &kernel](ParallelFor& parallel_for) {
                     std::vector<float> y = output(s.out_pixels(), s.out_channels);
                     std::vector<char> space(fp32_conv_workspace_bytes(kernel, s, parallel_for.threads()));
                     Fp32ConvArgs args;
                     args.x = inputs().floats.data();
                     args.x_strides = channels_last_strides(s, s.in_channels);
                     args.weights = block->data();
                     args.out = y.data();
                     args.out_stride = s.out_channels;
                     args.workspace = space.data();
                     args.workspace_bytes = space.size();
                     fp32_conv(kernel, s, args, parallel_for);
                     return y;
                   }});
  }
}

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> made;
    std::set<Isa> levels = {Isa::kScalar, active_isa()};
    for (Isa isa : levels) {
      for (int64_t m : {1, 5, 61}) {  // few rows, one block, blocks that are prepared in parallel
        add_float_linears(made, m, isa);
        add_int8_linears(made, m, isa);
        add_int4_linears(made, m, isa);
      }
      add_row_operations(made, isa);
      add_gathering_operations(made, isa);
      add_convolutions(made, isa);
    }
    return made;
  }();
  return all;
}

std::vector<std::vector<float>> serial_results() {
  SerialFor serial;
  std::vector<std::vector<float>> results;
  for (const Operation& operation : operations()) results.push_back(operation.run(serial));
  return results;
}

void expect_same(const std::vector<std::vector<float>>& want, ParallelFor& parallel_for) {
  for (size_t i = 0; i < want.size(); ++i) {
    const std::vector<float> got = operations()[i].run(parallel_for);
    ASSERT_EQ(got.size(), want[i].size());
    EXPECT_EQ(std::memcmp(got.data(), want[i].data(), got.size() * sizeof(float)), 0) << operations()[i].name;
  }
}

TEST(KernelThreads, EveryOperationGivesTheSameFloatsOnTwoAndFourThreads) {
  const auto want = serial_results();
  for (int threads : {2, 4}) {
    ThreadPool pool(threads);
    expect_same(want, pool);
  }
}

TEST(KernelThreads, CallersWithPoolsOfTheirOwnShareWeights) {
  const auto want = serial_results();
  const auto caller = [&want] {
    ThreadPool pool(2);
    expect_same(want, pool);
  };
  std::thread other(caller);
  caller();
  other.join();
}

TEST(KernelThreads, CallersTakeTurnsOnOnePool) {
  const auto want = serial_results();
  ThreadPool pool(2);
  std::thread other([&] { expect_same(want, pool); });
  expect_same(want, pool);
  other.join();
}

}  // namespace
}  // namespace halftone::kernels
