// The container of .ht files without torch: digests by chunks on several threads, versions, and the records
// of lifecycle backends.
#include "checkpoint/container/ht_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "checkpoint/container/ht_digests.h"
#include "checkpoint/container/ht_lifecycle.h"
#include "checkpoint/container/ht_writer.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;
using Metadata = std::map<std::string, std::string>;

std::vector<std::byte> pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 4096);
  return bytes;
}

TEST(HtDigests, AreTheSameOnEveryNumberOfThreadsAndInPieces) {
  for (const size_t size :
       {size_t{0}, size_t{1}, ht::kChunk - 1, ht::kChunk, ht::kChunk + 1, 5 * ht::kChunk + 7}) {
    const std::vector<std::byte> bytes = pattern(size);
    const ht::DigestTable table = ht::digest_table(bytes, 1);
    EXPECT_EQ(table.size(), ht::digest_rows(size));
    for (const unsigned threads : {0u, 2u, 3u, 16u})
      EXPECT_EQ(ht::digest_table(bytes, threads), table) << size;
    ht::ChunkHasher pieces;
    for (size_t begin = 0; begin < size; begin += 999'999)
      pieces.update(std::span(bytes).subspan(begin, std::min<size_t>(999'999, size - begin)));
    EXPECT_EQ(pieces.finish(), table) << size;
  }
}

TEST(HtDigests, AreSha256OfTheChunksAndOfTheRows) {
  const std::vector<std::byte> bytes = pattern(ht::kChunk + 100);
  const ht::DigestTable table = ht::digest_table(bytes);
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[0], sha256(std::span(bytes).first(ht::kChunk)));
  EXPECT_EQ(table[1], sha256(std::span(bytes).subspan(ht::kChunk)));
  EXPECT_EQ(table[2], sha256(std::as_bytes(std::span(table).first(2))));
}

class HtFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::path(::testing::TempDir()) / fmt::format("halftone_{}_{}", name, ::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ / "model.ht"; }

  /// A file with one tensor and these metadata besides those that every file has.
  HtFile write(Metadata metadata, size_t bytes = 100) {
    data_ = pattern(bytes);
    metadata.emplace(ht::kKindKey, ht::kGraphKind);
    write_ht(path(), {{"w", DType::kUint8, {static_cast<int64_t>(bytes)}, data_}}, metadata);
    return HtFile::open(path(), LoadMode::kRead);
  }
  HtFile with_bit_flipped(size_t byte) {
    std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(byte));
    const char value = static_cast<char>(file.get() ^ 8);
    file.seekp(static_cast<std::streamoff>(byte));
    file.put(value);
    file.close();
    return HtFile::open(path(), LoadMode::kRead);
  }
  std::string refusal(const HtFile& file, ErrorCode code, bool verify = true) {
    try {
      file.require_readable(verify);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(path()));
      return error.what();
    }
    ADD_FAILURE() << "was taken";
    return {};
  }

  std::filesystem::path folder_;
  std::vector<std::byte> data_;
};

TEST_F(HtFileTest, DamageIsFoundInTheChunkWhereItIs) {
  const HtFile file = write({}, 3 * ht::kChunk);
  file.require_readable(true);
  EXPECT_TRUE(file.digest_matches());
  EXPECT_EQ(file.chunk_finding(1), "");
  EXPECT_EQ(file.chunk_finding(2), "");
  EXPECT_THAT(refusal(with_bit_flipped(ht::kChunk + 5), ErrorCode::kCorruptFile),
              HasSubstr("bytes 4194304 to 8388607"));
  with_bit_flipped(ht::kChunk + 5).require_readable(true);
  const size_t size = file.size();
  EXPECT_THAT(refusal(with_bit_flipped(size - 33), ErrorCode::kCorruptFile),
              HasSubstr("checksum of the checksums"));
  with_bit_flipped(size - 33).require_readable(true);
  // The last digest is not content: loading leaves it alone, digest_matches() does not.
  const HtFile last = with_bit_flipped(size - 1);
  last.require_readable(true);
  EXPECT_FALSE(last.digest_matches());
}

TEST_F(HtFileTest, TheTableMayGrowTheHeaderPastAChunk) {
  // The header with a table of 2 rows just fits into the first chunk: sizes around it give every case.
  const size_t head = write({}, 64).size() - 64 - 3 * ht::kDigestSize;
  for (size_t size = ht::kChunk - head - 130; size < ht::kChunk - head + 130; size += 13)
    write({}, size).require_readable(true);
}

TEST_F(HtFileTest, ANewerHalftoneIsAskedForByName) {
  const auto changed = [&](const std::string& from, const std::string& to) {
    write({{ht::kWriterKey, "halftone 0.2.0"}});
    std::ifstream in(path(), std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    in.close();
    text.replace(text.find(from), from.size(), to);
    std::ofstream(path(), std::ios::binary) << text;
    return HtFile::open(path(), LoadMode::kRead);
  };
  // Not verified: the digests are those of the file before the change.
  EXPECT_THAT(refusal(changed("\"halftone.format\":\"2\"", "\"halftone.format\":\"3\""),
                      ErrorCode::kUnsupported, false),
              HasSubstr("needs Halftone ≥ 0.2.0: .ht version 3, written by \"halftone 0.2.0\""));
  EXPECT_THAT(refusal(changed("\"halftone.needs\":\"0.2.0\"", "\"halftone.needs\":\"0.9.0\""),
                      ErrorCode::kUnsupported, false),
              HasSubstr("needs Halftone ≥ 0.9.0: .ht version 2"));
  EXPECT_THAT(refusal(changed("\"halftone.needs\":\"0.2.0\"", "\"halftone.needs\":\"0.2.x\""),
                      ErrorCode::kCorruptFile, false),
              HasSubstr("not a version of Halftone"));
  EXPECT_THAT(
      refusal(changed("__halftone__.digests", "__halftone__.digestz"), ErrorCode::kCorruptFile, false),
      HasSubstr("last tensor but one"));
}

std::string message_of_reading(const Metadata& values) {
  Metadata all = {{ht::kKindKey, ht::kGraphKind}};
  for (const auto& [key, value] : values) all[key] = value;
  try {
    read_lifecycle(HtMetadata(all, "model.ht"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptFile) << error.what();
    return error.what();
  }
  return "no error";
}

const std::string kGood =
    R"({"config":{"a":1},"device":"cpu","state":"ACTIVE","type":"QuantBackend","weights":"converted"})";

TEST(HtLifecycleTest, RoundTrips) {
  HtLifecycle lifecycle;
  lifecycle.backend = HtBackend{"QuantBackend", R"({"a":1})", "cpu", "ACTIVE", true};
  lifecycle.tuning = R"({"cpu":"a CPU","candidates":[1,2]})";
  HtRecord record;
  record.name = record.stored = "t";
  const HtNested inner{HtNested::Kind::kDict, {"k", "\xff"}, {{HtShape{DType::kFloat32, {2, 3}}}, {record}}};
  lifecycle.samples = {
      {{{}, {true}, {int64_t{7}}, {0.5}, {std::complex<double>(1, -2)}, {std::string("text")}, {inner}},
       {{"mask", {HtNested{HtNested::Kind::kTuple, {}, {{HtNested{HtNested::Kind::kList, {}, {}}}}}}}}}};
  Metadata values = lifecycle_metadata(lifecycle);
  EXPECT_EQ(values.at(ht::kBackendKey), kGood);
  values[ht::kKindKey] = ht::kGraphKind;
  const HtLifecycle read = read_lifecycle(HtMetadata(values, "model.ht"));
  ASSERT_TRUE(read.backend);
  EXPECT_EQ(read.backend->config, lifecycle.backend->config);
  EXPECT_TRUE(read.backend->converted);
  EXPECT_EQ(read.tuning, lifecycle.tuning);
  EXPECT_EQ(samples_json(read.samples).dump(), samples_json(lifecycle.samples).dump());
  EXPECT_EQ(records_in(read.samples).size(), 1u);
  EXPECT_EQ(describe(read.samples.at(0)),
            R"(None, true, 7, 0.5, 1-2i, "text", {"k": F32[2, 3], "\xff": tensor "t"}, "mask"=([]))");
}

TEST(HtLifecycleTest, RefusesWithFileAndKey) {
  const auto backend = [&](const std::string& from, const std::string& to) {
    std::string text = kGood;
    text.replace(text.find(from), from.size(), to);
    return message_of_reading({{ht::kBackendKey, text}});
  };
  EXPECT_EQ(message_of_reading({{ht::kBackendKey, kGood}}), "no error");
  EXPECT_THAT(backend("{\"a\":1}", "7"), HasSubstr("model.ht: halftone.backend.config: expected an object"));
  EXPECT_THAT(backend("\"QuantBackend\"", "[]"), HasSubstr("model.ht: halftone.backend.type"));
  EXPECT_THAT(backend("\"cpu\"", "0"), HasSubstr("model.ht: halftone.backend.device"));
  EXPECT_THAT(backend("ACTIVE", "INIT"), HasSubstr("state: \"INIT\" is not known"));
  EXPECT_THAT(backend("converted", "both"), HasSubstr("weights: \"both\" is not known"));
  EXPECT_THAT(backend("\"config\"", "\"code\""), HasSubstr("no member \"code\""));
  const auto beside = [&](const std::string& key, const std::string& value) {
    return message_of_reading({{ht::kBackendKey, kGood}, {key, value}});
  };
  EXPECT_THAT(beside(ht::kTuningKey, "[]"), HasSubstr("model.ht: halftone.tuning: expected an object"));
  EXPECT_THAT(beside(ht::kTuningKey, "{"), HasSubstr("model.ht: halftone.tuning"));
  EXPECT_THAT(beside(ht::kTuningKey, "{\"a\":" + std::string(40, '[')), HasSubstr("nested deeper"));
  EXPECT_THAT(beside(ht::kSamplesKey, "{}"), HasSubstr("model.ht: halftone.samples: expected an array"));
  EXPECT_THAT(beside(ht::kSamplesKey, R"([{"args":[]}])"), HasSubstr("kwargs"));
  EXPECT_THAT(beside(ht::kSamplesKey, R"([{"args":[{"shape":[-1],"dtype":"F32"}],"kwargs":[]}])"),
              HasSubstr("is negative"));
  EXPECT_THAT(
      beside(ht::kSamplesKey, R"([{"args":[{"shape":[4611686018427387904,4],"dtype":"F32"}],"kwargs":[]}])"),
      HasSubstr("overflows"));
  EXPECT_THAT(
      beside(ht::kSamplesKey, R"([{"args":[],"kwargs":[{"key":"a","value":1},{"key":"a","value":1}]}])"),
      HasSubstr("a key stands twice"));
  EXPECT_THAT(beside(ht::kSamplesKey, R"([{"args":[{"pickle":"x"}],"kwargs":[]}])"),
              HasSubstr("\"pickle\" is no value"));
  EXPECT_THAT(message_of_reading({{ht::kTuningKey, "{}"}}), HasSubstr("without halftone.backend"));
  EXPECT_THAT(message_of_reading({{ht::kBackendKey, kGood}, {ht::kKindKey, ht::kModuleKind}}),
              HasSubstr("only graphs have a backend"));
}

TEST(HtLifecycleTest, AWrongTuningRecordIsNotWritten) {
  HtLifecycle lifecycle;
  lifecycle.tuning = "[1]";
  try {
    lifecycle_metadata(lifecycle);
    FAIL() << "was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace halftone
