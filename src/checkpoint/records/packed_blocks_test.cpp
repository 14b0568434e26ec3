// Packed blocks of .ht files that are not what the weights give: what an attacker can write, digests
// included.
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "checkpoint/lowered_test_model.h"
#include "checkpoint/test_support.h"
#include "halftone/compile/compile.h"
#include "halftone/quant/quantize.h"

namespace halftone {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kHeaderBytes = 64;

/// Two layers of one shape, so that their blocks can change places.
std::shared_ptr<GraphModule> two_layers(const QuantConfig& config, int64_t width = 64) {
  const std::string text = fmt::format(
      R"(graph(%v: parameter "up.weight" f32[64, {0}], %w: parameter "down.weight" f32[64, {0}], %x: user "x" f32[s0, {0}]) {{
  %h: f32[s0, 64] = aten::linear(%x, %v) @ "up" "torch.nn.modules.linear.Linear"
  %g: f32[s0, 64] = aten::linear(%x, %w) @ "down" "torch.nn.modules.linear.Linear"
  %y: f32[s0, 64] = aten::sub.Tensor(%h, %g)
  return %y
}})",
      width);
  auto module =
      module_from_text(text, {{"up.weight", at::linspace(-1, 1, 64 * width).view({64, width}).sin()},
                              {"down.weight", at::linspace(-2, 3, 64 * width).view({64, width}).cos()}});
  module->sample_inputs = {at::linspace(-2, 2, 5 * width).view({5, width})};
  quantize_(*module, config);
  return module;
}

struct PackedCase {
  const char* name;
  std::shared_ptr<GraphModule> (*model)();
};

template <typename Config>
std::shared_ptr<GraphModule> two_of(Config config) {
  return two_layers(QuantConfig(config));
}

std::vector<PackedCase> packed_cases() {
  return {
      {"Int8Wo", [] { return two_of(Int8WeightOnlyConfig{}); }},
      {"Int8Dq7", [] { return two_of(Int8DynamicActivationInt8WeightConfig{.weight_bits = 7}); }},
      {"Int8Dq", [] { return two_of(Int8DynamicActivationInt8WeightConfig{}); }},
      {"Int4Wo", [] { return two_of(Int4WeightOnlyConfig{}); }},
      {"Int4WoZeros", [] { return two_of(Int4WeightOnlyConfig{.symmetric = false}); }},
      {"Int4Dynamic", [] { return two_of(Int4WeightOnlyConfig{.activations = Int4Activations::kInt8}); }},
      {"Int4DynamicZeros",
       [] {
         return two_of(Int4WeightOnlyConfig{.symmetric = false, .activations = Int4Activations::kInt8});
       }},
      {"Int4WoShortGroup", [] { return two_layers(Int4WeightOnlyConfig{.symmetric = false}, 33); }},
      {"Int4DynamicShortGroup",
       [] { return two_layers(Int4WeightOnlyConfig{.activations = Int4Activations::kInt8}, 100); }},
      {"Fp8Wo", [] { return two_of(Float8WeightOnlyConfig{}); }},
      {"Fp8WoTensor", [] { return two_of(Float8WeightOnlyConfig{Granularity::kPerTensor}); }},
      {"Fp8Dq", [] { return two_of(Float8DynamicActivationFloat8WeightConfig{}); }},
      {"Bf16Wo", [] { return two_of(Bf16WeightOnlyConfig{}); }},
      {"Intx3Groups", [] { return two_of(IntxWeightOnlyConfig{.bits = 3, .group_size = 32}); }},
      {"Intx6Rows", [] { return two_of(IntxWeightOnlyConfig{.bits = 6, .group_size = 0}); }},
      {"Intx6Groups", [] { return two_of(IntxWeightOnlyConfig{.bits = 6, .group_size = 32}); }},
      {"StaticInt8", lowered_model},
  };
}

class PackedBlocks : public CheckpointTest, public testing::WithParamInterface<PackedCase> {
 protected:
  using Bytes = std::vector<std::byte>;

  void SetUp() override {
    CheckpointTest::SetUp();
    module_ = GetParam().model();
    expected_ = run_sample(module_);
    save_checkpoint(*module_, path("good.ht"), {.packed = true});
    good_.emplace(HtFile::open(path("good.ht"), LoadMode::kRead));
    const auto packed = nlohmann::json::parse(good_->metadata().values().at(ht::kPackedKey));
    for (const auto& record : packed) blocks_.push_back(record["block"]["stored"].get<std::string>());
    ASSERT_FALSE(blocks_.empty());
  }

  Bytes block(const std::string& name) const {
    const auto bytes = good_->tensors().try_entry(name)->bytes;
    return {bytes.begin(), bytes.end()};
  }

  /// The file with some bytes of a block changed, digests made right again. Not by write_ht(), whose fsync
  /// takes longer than all the rest.
  void patch(const std::string& name, const std::function<void(char*)>& change) {
    std::string text = file_text(path("good.ht"));
    const auto& entries = good_->tensors().entries();
    const std::byte* data = entries.front().bytes.data();
    for (const SafetensorsEntry& entry : entries) data = std::min<const std::byte*>(data, entry.bytes.data());
    uint64_t header = 0;
    std::memcpy(&header, text.data(), sizeof(header));
    const size_t at =
        sizeof(header) + header + static_cast<size_t>(good_->tensors().try_entry(name)->bytes.data() - data);
    change(text.data() + at);
    write_text(path(), resealed(std::move(text)));
  }

  /// A file whose blocks are replaced, with right digests.
  void write(const std::map<std::string, Bytes>& changed) {
    std::vector<SafetensorsTensor> tensors;
    for (const SafetensorsEntry& entry : good_->tensors().entries()) {
      if (is_filler(entry.name)) continue;
      tensors.push_back({entry.name, entry.dtype, entry.shape, entry.bytes});
      const auto found = changed.find(entry.name);
      if (found == changed.end()) continue;
      tensors.back().bytes = found->second;
      tensors.back().shape = {static_cast<int64_t>(found->second.size())};
    }
    write_ht(path(), tensors, good_->metadata().values());
  }

  /// Whether loading refuses the file; if it does not, results must be those of the right one.
  bool refused(const std::string& what) {
    try {
      const auto loaded = load_checkpoint(path());
      EXPECT_TRUE(run_sample(loaded).equal(expected_)) << what;
      EXPECT_TRUE(compile(loaded)->run(loaded->sample_inputs)[0].toTensor().equal(expected_)) << what;
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorruptFile) << what << ": " << error.what();
      EXPECT_THAT(error.what(), HasSubstr("packed block")) << what;
      return true;
    }
  }

  std::shared_ptr<GraphModule> module_;
  at::Tensor expected_;
  std::optional<HtFile> good_;
  std::vector<std::string> blocks_;  // stored names
};

TEST_P(PackedBlocks, EveryChangedByteOfAHeaderIsRefused) {
  EXPECT_THAT(verify_checkpoint(path("good.ht")).findings, IsEmpty());
  for (const std::string& name : blocks_) {
    for (size_t at = 0; at < kHeaderBytes; ++at) {
      for (const int flip : {0x01, 0x80}) {
        patch(name, [&](char* bytes) { bytes[at] = static_cast<char>(bytes[at] ^ flip); });
        EXPECT_TRUE(refused(fmt::format("{} byte {}", name, at))) << name << " byte " << at;
      }
      if (at % 8 != 0) continue;
      EXPECT_THAT(verify_checkpoint(path()).findings, Contains(HasSubstr("packed block"))) << at;
    }
  }
}

TEST_P(PackedBlocks, FieldsOfZeroAndOfOnesAreRefused) {
  for (const std::string& name : blocks_) {
    for (size_t at = 0; at < kHeaderBytes; at += 4) {
      for (const int fill : {0x00, 0xff}) {
        bool same = false;
        patch(name, [&](char* bytes) {
          const std::string before(bytes + at, 4);
          std::memset(bytes + at, fill, 4);
          same = before == std::string_view(bytes + at, 4);
        });
        if (same) continue;
        EXPECT_TRUE(refused(fmt::format("{} word {}", name, at))) << name << " word " << at;
      }
    }
  }
}

TEST_P(PackedBlocks, ShorterAndLongerOnesAreRefused) {
  for (const std::string& name : blocks_) {
    const Bytes whole = block(name);
    for (const size_t size : {size_t{0}, kHeaderBytes, whole.size() - 1, whole.size() + 64}) {
      if (size == whole.size()) continue;
      Bytes bytes = whole;
      bytes.resize(size);
      write({{name, bytes}});
      EXPECT_TRUE(refused(fmt::format("{} of {} bytes", name, size))) << name << " of " << size;
      EXPECT_THAT(verify_checkpoint(path()).findings, Contains(HasSubstr("packed block"))) << size;
    }
  }
}

TEST_P(PackedBlocks, BlocksOfTwoLayersInEachOthersPlaceAreRefused) {
  for (size_t i = 1; i < blocks_.size(); ++i) {
    if (block(blocks_[0]) == block(blocks_[i])) continue;
    write({{blocks_[0], block(blocks_[i])}, {blocks_[i], block(blocks_[0])}});
    EXPECT_TRUE(refused("changed places")) << blocks_[i];
    EXPECT_THAT(verify_checkpoint(path()).findings, Contains(HasSubstr("packed block")));
  }
}

TEST_P(PackedBlocks, VerifyComparesEveryByte) {
  for (const std::string& name : blocks_) {
    const size_t size = block(name).size();
    for (size_t at = kHeaderBytes; at < size; at += 1 + size / 23) {
      patch(name, [&](char* bytes) { bytes[at] = static_cast<char>(bytes[at] ^ 0x10); });
      EXPECT_THAT(verify_checkpoint(path()).findings, Contains(HasSubstr("packed block"))) << at;
    }
  }
}

TEST_P(PackedBlocks, TheMessageNamesTheLayerAndTheField) {
  if (std::string(GetParam().name) == "StaticInt8") GTEST_SKIP() << "its first block is not a layer's panels";
  patch(blocks_[0], [](char* bytes) { bytes[24] ^= 1; });  // n
  EXPECT_THAT([&] { load_checkpoint(path()); },
              testing::ThrowsMessage<Error>(AllOf(HasSubstr("model.ht"), HasSubstr("\"up"),
                                                  HasSubstr(": n is 65 "), HasSubstr("64 in the weights"))));
}

INSTANTIATE_TEST_SUITE_P(Formats, PackedBlocks, testing::ValuesIn(packed_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace halftone
