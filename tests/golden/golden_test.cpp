// Every file in this folder, whatever version wrote it, loads, verifies, runs and gives the stored result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "golden_models.h"
#include "halftone/backend/backend.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/graph/tensor_file.h"

namespace halftone::golden {
namespace {

std::vector<std::string> golden_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(GOLDEN_FOLDER)) {
    if (entry.path().extension() == ".ht") files.push_back(entry.path().stem().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string path_of(const std::string& name, const char* suffix) {
  return (std::filesystem::path(GOLDEN_FOLDER) / (name + suffix)).string();
}

/// Quantized kernels may add in another order on another machine; everything in the models is of size 1 to
/// 100.
void expect_close(const at::Tensor& found, const at::Tensor& expected) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  EXPECT_TRUE(at::allclose(found, expected, /*rtol=*/1e-5, /*atol=*/1e-4))
      << "largest difference " << (found - expected).abs().max().item<float>();
}

at::Tensor run(const std::string& name, const std::string& file) {
  const c10::AutoGradMode no_grad(false);
  if (name.find("backend") != std::string::npos) {
    Backend backend = load(file);
    backend.deploy();
    return backend.infer({input()}).toTensor();
  }
  if (name.find("module") == std::string::npos) {
    const auto module = load_checkpoint(file);
    EXPECT_EQ(module->sample_inputs.size(), 1u);
    return Session(module).run(module->sample_inputs).at(0).toTensor();
  }
  auto network = module();
  load_module(*network, file);
  return network->forward(input());
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, LoadsVerifiesAndRuns) {
  const std::string file = path_of(GetParam(), ".ht");
  EXPECT_THAT(verify_checkpoint(file).findings, testing::IsEmpty());
  expect_close(run(GetParam(), file),
               load_tensors(path_of(GetParam(), ".expected.safetensors")).tensors.at("output"));
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, testing::ValuesIn(golden_files()),
                         [](const auto& info) { return info.param; });

/// Whatever was a graph then is a backend today.
TEST(GoldenFolder, GraphsOfEveryVersionDeploy) {
  for (const std::string& name : golden_files()) {
    if (name.find("graph") == std::string::npos) continue;
    Backend backend = load(path_of(name, ".ht"));
    EXPECT_EQ(backend.name(), "HalftoneBackend") << name;
    backend.deploy();
    expect_close(backend.infer({input()}).toTensor(),
                 load_tensors(path_of(name, ".expected.safetensors")).tensors.at("output"));
  }
}

TEST(GoldenFolder, BackendsKeepWhatWasSaved) {
  const Backend converted = load(path_of("v2_backend_int8dq", ".ht"));
  EXPECT_EQ(converted.state(), BackendState::kCheckpointLoaded);
  EXPECT_EQ(converted.describe(),
            "QuantBackend(quantization_config=Int8DynamicActivationInt8WeightConfig())");
  EXPECT_THAT(converted.tuning(), testing::HasSubstr("a CPU of 1999"));
  const BackendDict original = load(path_of("v2_backend_original", ".ht")).to_dict();
  EXPECT_TRUE(original.module.at("fc.weight").equal(pattern({kOutputs, kInputs}, 1)));
  ASSERT_EQ(original.data.size(), 1u);
  EXPECT_TRUE(original.data[0].args.at(0).toTensor().equal(input()));
}

/// A missing file is a failure, too.
TEST(GoldenFolder, HoldsTheFilesOfEveryVersion) {
  EXPECT_THAT(
      golden_files(),
      testing::IsSupersetOf({"v1_graph_fp32", "v1_graph_int8wo", "v1_graph_int8dq", "v1_graph_int4wo",
                             "v1_module_fp32", "v1_module_int8dq", "v2_graph_fp32", "v2_graph_int8dq_packed",
                             "v2_backend_int8dq", "v2_backend_original", "v2_module_int8dq"}));
}

}  // namespace
}  // namespace halftone::golden
