// Shared by the tests of this folder: a folder for files, models from text, bytes in and out.
#pragma once

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "archive/bytes/file_bytes.h"
#include "checkpoint/container/ht_digests.h"
#include "checkpoint/container/ht_file.h"
#include "checkpoint/container/ht_writer.h"
#include "graph/test_support.h"
#include "halftone/checkpoint/checkpoint.h"

namespace halftone {

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '_');
    // Programs with tests of the same names run at once.
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("halftone_ht_" + name + "_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name = "model.ht") const { return folder_ / name; }
  std::filesystem::path folder_;
};

inline std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

/// The bytes of a small file with its checksums made right again.
inline std::string resealed(std::string bytes) {
  constexpr size_t kRows = 2;  // one chunk, and the digest of its digest
  bytes.resize(bytes.size() - (kRows + 1) * ht::kDigestSize);
  const auto append = [&](const Sha256Digest& digest) {
    bytes.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  };
  for (const Sha256Digest& row : ht::digest_table(std::as_bytes(std::span(bytes)))) append(row);
  append(sha256(std::as_bytes(std::span(bytes))));
  return bytes;
}

/// Bit for bit, layout too.
inline void expect_same(const at::Tensor& a, const at::Tensor& b, const std::string& what) {
  ASSERT_EQ(a.scalar_type(), b.scalar_type()) << what;
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  EXPECT_EQ(a.requires_grad(), b.requires_grad()) << what;
  if (a.numel() == 0) return;
  EXPECT_EQ(a.strides(), b.strides()) << what;
  const auto bytes = [](const at::Tensor& t) { return t.detach().contiguous().view({-1}).view(at::kByte); };
  EXPECT_TRUE(bytes(a).equal(bytes(b))) << what;
}

/// y = relu(x · wᵀ + b), with a dynamic batch, a guard, a sample input and a note.
inline std::shared_ptr<GraphModule> small_model() {
  auto module = module_from_text(
      R"(graph(%w: parameter "fc.weight" f32[3, 4] grad, %b: parameter "fc.bias" f32[3], %x: user "x" f32[s0, 4]) {
  %y: f32[s0, 3] = aten::linear(%x, %w, %b) @ "fc" "torch.nn.modules.linear.Linear"
  %z: f32[s0, 3] = aten::relu(%y)
  return %z
})",
      {{"fc.weight", at::arange(12, at::kFloat).view({3, 4}).sub(5).set_requires_grad(true)},
       {"fc.bias", at::arange(3, at::kFloat)}});
  module->ranges["s0"] = {1, 64};
  module->guards.push_back({SymExpr::parse("s0 < 64"), "L['x'].size()[0] < 64"});
  module->sample_inputs = {at::arange(8, at::kFloat).view({2, 4})};
  module->notes = {"made by a test"};
  return module;
}

/// The only output of a call with the sample inputs.
inline at::Tensor run_sample(const std::shared_ptr<const GraphModule>& module) {
  return Session(module).run(module->sample_inputs).at(0).toTensor();
}

}  // namespace halftone
