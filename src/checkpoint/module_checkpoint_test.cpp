// Modules of the C++ front end in .ht files, plain and quantized.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "checkpoint/test_support.h"
#include "halftone/quant/quantize.h"
#include "halftone/quant/quantized_tensor.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct NetImpl : torch::nn::Module {
  explicit NetImpl(int64_t width = 64, bool tie = true, const std::string& name = "tied_weight")
      : first(register_module("first", torch::nn::Linear(width, 32))),
        norm(register_module("norm", torch::nn::BatchNorm1d(32))),
        second(register_module("second", torch::nn::Linear(32, 32))),
        third(register_module("third", torch::nn::Linear(32, 32))) {
    third->weight =
        third->register_parameter(name, tie ? second->weight : second->weight.detach().clone().add(1));
    first->bias.set_requires_grad(false);
    eval();
  }
  at::Tensor forward(const at::Tensor& x) { return third(torch::relu(second(norm(first(x))))); }
  torch::nn::Linear first;
  torch::nn::BatchNorm1d norm;
  torch::nn::Linear second, third;
};

std::map<std::string, at::Tensor> tensors_of(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) tensors.emplace(item.key(), item.value());
  return tensors;
}

class ModuleCheckpoint : public CheckpointTest {
 protected:
  const at::Tensor x_ = at::linspace(-1, 1, 5 * 64).view({5, 64});
};

TEST_F(ModuleCheckpoint, GoesIntoAFreshModuleBitForBit) {
  NetImpl saved;
  saved.norm->running_mean.fill_(0.25);
  save_module(saved, path());
  for (const bool map : {true, false}) {
    NetImpl fresh;
    fresh.first->bias.set_requires_grad(true);
    load_module(fresh, path(), {.map = map});
    const auto loaded = tensors_of(fresh);
    for (const auto& [name, tensor] : tensors_of(saved)) expect_same(loaded.at(name), tensor, name);
    expect_same(fresh.forward(x_).detach(), saved.forward(x_).detach(), "result");
    EXPECT_EQ(fresh.second->weight.const_data_ptr(), fresh.third->weight.const_data_ptr()) << "tied";
    fresh.forward(x_).sum().backward();  // a training step writes to the file's private pages
    EXPECT_TRUE(fresh.second->weight.grad().defined());
  }
  EXPECT_THAT(verify_checkpoint(path()).findings, IsEmpty());
  EXPECT_EQ(verify_checkpoint(path()).kind, "module");
}

TEST_F(ModuleCheckpoint, ListsAllDifferencesAndChangesNothing) {
  save_module(NetImpl(64, /*tie=*/true), path());
  NetImpl other(16, /*tie=*/true, "other_weight");
  const auto before = tensors_of(other);
  std::map<std::string, at::Tensor> values;
  for (const auto& [name, tensor] : before) values.emplace(name, tensor.detach().clone());
  const std::string message = message_of(ErrorCode::kInvalidArgument, [&] { load_module(other, path()); });
  EXPECT_THAT(message,
              HasSubstr("\"first.weight\" is float32 [32, 64] in the file, float32 [32, 16] in the module"));
  EXPECT_THAT(message, HasSubstr("\"third.tied_weight\" is not in the module"));
  EXPECT_THAT(message, HasSubstr("\"third.other_weight\" is not in the file"));
  for (const auto& [name, tensor] : before) EXPECT_TRUE(tensor.detach().equal(values.at(name))) << name;
}

TEST_F(ModuleCheckpoint, OneTensorCannotBecomeTwo) {
  save_module(NetImpl(64, /*tie=*/false), path());
  NetImpl tied;
  const at::Tensor before = tied.second->weight.detach().clone();
  EXPECT_THAT(
      message_of(ErrorCode::kInvalidArgument, [&] { load_module(tied, path()); }),
      HasSubstr(
          "\"second.weight\" and \"third.tied_weight\" are one tensor in the module and two in the file"));
  EXPECT_TRUE(tied.second->weight.detach().equal(before));
  save_module(NetImpl(), path());
  NetImpl apart(64, /*tie=*/false);
  load_module(apart, path());
  EXPECT_EQ(apart.second->weight.const_data_ptr(), apart.third->weight.const_data_ptr())
      << "they become tied";
}

TEST_F(ModuleCheckpoint, GraphsAreNoModules) {
  save_checkpoint(*small_model(), path());
  NetImpl net;
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { load_module(net, path()); }),
              HasSubstr("not a module"));
  save_module(net, path());
  EXPECT_THAT(message_of(ErrorCode::kUnsupported, [&] { load_checkpoint(path()); }),
              HasSubstr("load_module"));
}

TEST_F(ModuleCheckpoint, QuantizedModulesComeBackQuantized) {
  for (const char* scheme : {"int8wo", "int8dq", "int4wo", "bf16wo"}) {
    SCOPED_TRACE(scheme);
    NetImpl saved;
    quantize_(saved, scheme);
    const at::Tensor expected = saved.forward(x_).detach();
    for (const bool packed : {false, true}) {
      save_module(saved, path(), {.packed = packed});
      NetImpl fresh;
      load_module(fresh, path());
      EXPECT_TRUE(is_quantized_tensor(fresh.first->weight));
      EXPECT_TRUE(fresh.forward(x_).detach().equal(expected));
      const auto& parts = quantized_weight_of(saved.first->weight).parts;
      const auto& loaded = quantized_weight_of(fresh.first->weight).parts;
      ASSERT_EQ(parts.size(), loaded.size());
      for (size_t i = 0; i < parts.size(); ++i) {
        EXPECT_EQ(parts[i].first, loaded[i].first);
        expect_same(loaded[i].second, parts[i].second, parts[i].first);
      }
      const CheckpointInfo info = verify_checkpoint(path());
      EXPECT_THAT(info.findings, IsEmpty());
      EXPECT_EQ(info.configs.at("first"), QuantConfig(scheme).to_json());
    }
    NetImpl plain;
    save_module(plain, path());
    load_module(saved, path());
    EXPECT_FALSE(is_quantized_tensor(saved.first->weight)) << "a quantized module takes a plain file";
    expect_same(saved.forward(x_).detach(), plain.forward(x_).detach(), "plain again");
  }
}

}  // namespace
}  // namespace halftone
