// Quantized graphs in .ht files: configs, packed copies, and parts that do not fit their operator.
#include <nlohmann/json.hpp>

#include "checkpoint/test_support.h"
#include "halftone/quant/quantize.h"
#include "quant/weight/packing_cache.h"

namespace halftone {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::shared_ptr<GraphModule> quantized_model(const char* scheme) {
  auto module = module_from_text(
      R"(graph(%w: parameter "fc.weight" f32[48, 64], %b: parameter "fc.bias" f32[48], %x: user "x" f32[s0, 64]) {
  %y: f32[s0, 48] = aten::linear(%x, %w, %b) @ "fc" "torch.nn.modules.linear.Linear"
  return %y
})",
      {{"fc.weight", at::linspace(-1, 1, 48 * 64).view({48, 64}).sin()},
       {"fc.bias", at::arange(48, at::kFloat)}});
  module->sample_inputs = {at::linspace(-2, 2, 5 * 64).view({5, 64})};
  quantize_(*module, scheme);
  return module;
}

class QuantizedCheckpoint : public CheckpointTest, public testing::WithParamInterface<const char*> {};

TEST_P(QuantizedCheckpoint, RoundTripsWithItsConfig) {
  const auto module = quantized_model(GetParam());
  const at::Tensor expected = run_sample(module);
  save_checkpoint(*module, path());
  const auto loaded = load_checkpoint(path());
  EXPECT_EQ(print_graph(loaded->graph()), print_graph(module->graph()));
  EXPECT_TRUE(run_sample(loaded).equal(expected));
  const CheckpointInfo info = verify_checkpoint(path());
  EXPECT_THAT(info.findings, IsEmpty());
  EXPECT_EQ(info.configs, (std::map<std::string, std::string>{{"fc", QuantConfig(GetParam()).to_json()}}));
}

TEST_P(QuantizedCheckpoint, PackedCopiesAreUsedAndSaved) {
  const auto module = quantized_model(GetParam());
  const at::Tensor expected = run_sample(module);
  save_checkpoint(*module, path("plain.ht"));
  save_checkpoint(*module, path(), {.packed = true});
  EXPECT_GT(std::filesystem::file_size(path()), std::filesystem::file_size(path("plain.ht")));
  EXPECT_THAT(verify_checkpoint(path()).findings, IsEmpty());
  const size_t packed_before = packing_cache_stats().packed;
  const auto loaded = load_checkpoint(path());
  EXPECT_TRUE(run_sample(loaded).equal(expected));
  EXPECT_EQ(packing_cache_stats().packed, packed_before) << "nothing had to be packed again";
  EXPECT_THAT(loaded->notes, IsEmpty());
}

TEST_P(QuantizedCheckpoint, AnotherTileIsRepackedAndSaid) {
  const auto module = quantized_model(GetParam());
  const at::Tensor expected = run_sample(module);
  save_checkpoint(*module, path("good.ht"), {.packed = true});
  const HtFile good = HtFile::open(path("good.ht"), LoadMode::kRead);
  auto metadata = good.metadata().values();
  auto packed = nlohmann::json::parse(metadata.at(ht::kPackedKey));
  for (auto& block : packed) block["layout"] = block["layout"].get<std::string>() + "_of_another_machine";
  metadata[ht::kPackedKey] = packed.dump();
  std::vector<SafetensorsTensor> tensors;
  for (const SafetensorsEntry& entry : good.tensors().entries()) {
    if (!is_filler(entry.name)) tensors.push_back({entry.name, entry.dtype, entry.shape, entry.bytes});
  }
  write_ht(path(), tensors, metadata);
  const auto loaded = load_checkpoint(path());
  EXPECT_TRUE(run_sample(loaded).equal(expected));
  EXPECT_THAT(loaded->notes, Contains(HasSubstr("repacked")));
}

TEST_P(QuantizedCheckpoint, PartsThatDoNotFitTheOperatorAreRefusedBeforeAKernelReadsThem) {
  const auto module = quantized_model(GetParam());
  for (const auto& [name, tensor] : *module->tensors()) {
    if (name == "fc.bias") continue;
    // Half of the part, and a graph that says so: only the operator can know that this is too little.
    save_checkpoint(*module, path("good.ht"));
    const HtFile good = HtFile::open(path("good.ht"), LoadMode::kRead);
    auto metadata = good.metadata().values();
    std::vector<SafetensorsTensor> tensors;
    for (const SafetensorsEntry& entry : good.tensors().entries()) {
      if (is_filler(entry.name)) continue;
      tensors.push_back({entry.name, entry.dtype, entry.shape, entry.bytes});
      if (entry.name != name) continue;
      tensors.back().shape[0] /= 2;
      tensors.back().bytes = entry.bytes.first(entry.bytes.size() / 2);
      std::string& text = metadata[ht::kGraphKey];
      const size_t at = text.find("[48", text.find('"' + name + '"'));
      ASSERT_NE(at, std::string::npos);
      text.replace(at, 3, "[24");
    }
    write_ht(path(), tensors, metadata);
    EXPECT_THROW(run_sample(load_checkpoint(path())), std::exception) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, QuantizedCheckpoint,
                         testing::Values("int8wo", "int8dq", "int4wo", "bf16wo"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace halftone
