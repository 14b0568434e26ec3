#include "halftone/graph/tensor_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "graph/test_support.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

class TensorFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ / name; }
  std::filesystem::path folder_;
};

TEST_F(TensorFileTest, RoundTripsEveryDtypeAndLayout) {
  const at::Tensor base = at::randn({3, 4}) * 3;
  TensorMap tensors = {
      {"transposed", base.t()}, {"scalar", at::scalar_tensor(2.5)}, {"empty", at::empty({0, 3})}};
  for (const auto dtype :
       {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf, at::kBFloat16,
        at::kFloat, at::kDouble, at::kComplexFloat, at::kFloat8_e4m3fn, at::kFloat8_e5m2}) {
    tensors[std::string("t_") + c10::toString(dtype)] = base.to(dtype);
  }
  save_tensors(path("a.safetensors"), tensors, {{"made by", "a test"}});
  for (const bool map : {true, false}) {
    const TensorFile file = load_tensors(path("a.safetensors"), map);
    EXPECT_EQ(file.metadata.at("made by"), "a test");
    ASSERT_EQ(file.tensors.size(), tensors.size());
    for (const auto& [name, tensor] : tensors) {
      const at::Tensor& loaded = file.tensors.at(name);
      EXPECT_EQ(loaded.scalar_type(), tensor.scalar_type()) << name;
      const auto as_bytes = [](const at::Tensor& t) { return t.contiguous().view(-1).view(at::kByte); };
      ASSERT_EQ(loaded.sizes(), tensor.sizes()) << name;
      if (tensor.numel() == 0) continue;
      EXPECT_TRUE(as_bytes(loaded).equal(as_bytes(tensor))) << name;
    }
  }
}

TEST_F(TensorFileTest, NumpyFilesRoundTrip) {
  const at::Tensor base = at::randn({3, 4}) * 3;
  TensorMap tensors = {
      {"transposed", base.t()}, {"scalar", at::scalar_tensor(2.5)}, {"empty", at::empty({0, 3})}};
  for (const auto dtype : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf,
                           at::kFloat, at::kDouble, at::kComplexFloat})
    tensors[std::string("t_") + c10::toString(dtype)] = base.to(dtype);
  save_tensors(path("a.npz"), tensors, {{"lost", "in numpy"}});
  for (const bool map : {true, false}) {
    const TensorFile file = load_tensors(path("a.npz"), map);
    ASSERT_EQ(file.tensors.size(), tensors.size());
    for (const auto& [name, tensor] : tensors) {
      EXPECT_EQ(file.tensors.at(name).scalar_type(), tensor.scalar_type()) << name;
      EXPECT_TRUE(file.tensors.at(name).equal(tensor)) << name;
    }
  }
  save_tensors(path("a.npy"), {{"x", base}});
  EXPECT_TRUE(load_tensors(path("a.npy")).tensors.at("").equal(base));
  EXPECT_THAT(message_of(ErrorCode::kUnsupported, [&] { save_tensors(path("b.npy"), tensors); }),
              HasSubstr("write a .npz file"));
  EXPECT_THAT(message_of(ErrorCode::kUnsupported,
                         [&] {
                           save_tensors(path("b.npz"), {{"x", base.to(at::kBFloat16)}});
                         }),
              HasSubstr("numpy has no dtype BF16"));
}

TEST_F(TensorFileTest, MappedTensorsOutliveTheFileAndNeverWriteToIt) {
  save_tensors(path("a.safetensors"), {{"x", at::ones({64})}});
  at::Tensor x = load_tensors(path("a.safetensors")).tensors.at("x");
  x.add_(1);
  EXPECT_TRUE(load_tensors(path("a.safetensors")).tensors.at("x").equal(at::ones({64})));
  std::filesystem::remove(path("a.safetensors"));
  EXPECT_TRUE(x.equal(at::full({64}, 2.)));
}

TEST_F(TensorFileTest, ModulesLoadByNameStrictlyOrNot) {
  const auto module =
      module_from_text("graph(%w: parameter \"w\" f32[2], %b: buffer \"b\" f32[1]) { return %w }",
                       {{"w", at::ones({2})}, {"b", at::ones({1})}});
  save_tensors(path("w.safetensors"), {{"w", at::full({2}, 4.)}, {"extra", at::ones({1})}});
  const std::string message =
      message_of(ErrorCode::kInvalidArgument, [&] { module->load_tensors(path("w.safetensors")); });
  EXPECT_THAT(message, HasSubstr("unexpected \"extra\""));
  EXPECT_THAT(message, HasSubstr("missing \"b\""));
  EXPECT_EQ(module->tensor("w")[0].item<float>(), 1) << "a refused load changes nothing";
  EXPECT_EQ(module->load_tensors(path("w.safetensors"), /*strict=*/false), 1u);
  EXPECT_EQ(module->tensor("w")[0].item<float>(), 4);
}

}  // namespace
}  // namespace halftone
