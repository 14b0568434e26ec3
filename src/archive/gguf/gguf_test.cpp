// GGUF files that are right: values, tensors, rows, descriptions; broken ones and the comparison with Python have
// their own files.
#include "archive/gguf/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "archive/gguf/gguf_blocks.h"
#include "archive/test_files.h"
#include "base/half.h"
#include "halftone/base/error.h"
#include "halftone/cli/gguf.h"

namespace halftone::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

GgufReader gguf_of(const std::string& bytes) {
  return GgufReader::from_bytes(FileBytes::from_memory(std::as_bytes(std::span(bytes)), "x.gguf"));
}

std::string le_float(float value) {
  return le(std::bit_cast<uint32_t>(value));
}

std::string le_double(double value) {
  return le(std::bit_cast<uint64_t>(value));
}

/// The error's message; its code must be `code`.
template <typename Call>
std::string message_of(ErrorCode code, Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Gguf, ReadsEveryTypeOfValue) {
  const GgufReader file = gguf_of(make_gguf({
      .entries = {gguf_entry("u8", 0, "\xff"), gguf_entry("i8", 1, "\xff"), gguf_entry("u16", 2, "\xff\xff"),
                  gguf_entry("i16", 3, "\xfe\xff"), gguf_entry("u32", 4, le<uint32_t>(4'000'000'000)),
                  gguf_entry("i32", 5, le<int32_t>(-7)), gguf_entry("f32", 6, le_float(1.5F)),
                  gguf_entry("yes", 7, "\x01"), gguf_entry("text", 8, gguf_string("a\xff z")),
                  gguf_entry("u64", 10, le(UINT64_MAX)), gguf_entry("i64", 11, le(INT64_MIN)),
                  gguf_entry("f64", 12, le_double(0.1))},
  }));
  EXPECT_EQ(file.version(), 3U);
  EXPECT_EQ(file.get_int("u8"), 255);
  EXPECT_EQ(file.get_int("i8"), -1);
  EXPECT_EQ(file.get_int("u16"), 65535);
  EXPECT_EQ(file.get_int("i16"), -2);
  EXPECT_EQ(file.get_int("u32"), 4'000'000'000);
  EXPECT_EQ(file.get_number("u32"), 4e9);
  EXPECT_EQ(file.get_int("i32"), -7);
  EXPECT_EQ(file.get_number("f32"), 1.5);
  EXPECT_TRUE(file.get_bool("yes"));
  EXPECT_EQ(file.get_string("text"), "a\xff z");
  EXPECT_EQ(file.try_value("u64")->try_uint(), UINT64_MAX);
  EXPECT_EQ(file.try_value("u64")->try_int(), std::nullopt);
  EXPECT_EQ(file.get_number("u64"), 0x1p64);
  EXPECT_EQ(file.get_int("i64"), INT64_MIN);
  EXPECT_EQ(file.try_value("i64")->try_uint(), std::nullopt);
  EXPECT_EQ(file.get_number("f64"), 0.1);
  EXPECT_EQ(file.metadata()[0].key, "u8");
  EXPECT_EQ(file.metadata()[4].value.describe_type(), "uint32");
}

TEST(Gguf, ReadsArraysAndArraysOfArrays) {
  const std::string inner = gguf_array(5, 2, le<int32_t>(1) + le<int32_t>(-2));
  const GgufReader file = gguf_of(make_gguf({
      .entries = {gguf_entry("strings", 9,
                             gguf_array(8, 3, gguf_string("a") + gguf_string("") + gguf_string("\xe4"))),
                  gguf_entry("floats", 9, gguf_array(6, 2, le_float(0.5F) + le_float(-0.0F))),
                  gguf_entry("bools", 9, gguf_array(7, 2, std::string("\x00\x01", 2))),
                  gguf_entry("nested", 9, gguf_array(9, 2, inner + gguf_array(8, 1, gguf_string("deep")))),
                  gguf_entry("none", 9, gguf_array(4, 0, ""))},
  }));
  EXPECT_THAT(file.get_strings("strings"), ElementsAre("a", "", "\xe4"));
  EXPECT_THAT(file.get_floats("floats"), ElementsAre(0.5F, 0.0F));
  EXPECT_THAT(file.get_ints("none"), IsEmpty());
  EXPECT_EQ(file.try_value("bools")->elements(1).size(), 1U);
  EXPECT_EQ(file.try_value("bools")->elements()[1].try_bool(), true);
  const auto nested = file.try_value("nested")->elements();
  ASSERT_EQ(nested.size(), 2U);
  EXPECT_EQ(nested[0].elements()[1].try_int(), -2);
  EXPECT_EQ(nested[1].elements()[0].try_string(), "deep");
  EXPECT_EQ(file.try_value("nested")->describe_type(), "array of 2 array");
}

TEST(Gguf, GettersNameFileAndKey) {
  const GgufReader file = gguf_of(make_gguf({.entries = {gguf_entry("n", 8, gguf_string("three"))}}));
  const auto message = [&](auto call) { return message_of(ErrorCode::kCorruptFile, call); };
  EXPECT_EQ(message([&] { file.get_int("n"); }),
            "x.gguf: metadata \"n\" is string, expected an integer of at most 63 bits");
  EXPECT_EQ(message([&] { file.get_string("m"); }), "x.gguf: metadata \"m\" is missing");
  for (const std::string& text :
       {message([&] { file.get_number("n"); }), message([&] { file.get_bool("n"); }),
        message([&] { file.get_strings("n"); }), message([&] { file.get_ints("n"); }),
        message([&] { file.get_floats("n"); })})
    EXPECT_THAT(text, HasSubstr("x.gguf: metadata \"n\" is string, expected"));
}

TEST(Gguf, TensorsAreInTheirOrderAndFoundByName) {
  const GgufReader file = gguf_of(make_gguf({
      .entries = {gguf_entry("general.alignment", 4, le<uint32_t>(64))},
      .tensors = {gguf_tensor("w", {4, 3, 2}, 1, 128), gguf_tensor("b", {2}, 0, 0),
                  gguf_tensor("s", {}, 24, 64), gguf_tensor("e", {32, 0}, 2, 64)},
      .data = std::string(128 + 48, '\0'),
      .version = 2,
      .alignment = 64,
  }));
  EXPECT_EQ(file.version(), 2U);
  EXPECT_EQ(file.alignment(), 64U);
  EXPECT_EQ(file.data_offset() % 64, 0U);
  const GgufTensor& w = *file.try_tensor("w");
  EXPECT_EQ(&w, &file.tensors()[0]);
  EXPECT_THAT(w.shape(), ElementsAre(2, 3, 4));
  EXPECT_EQ(w.row_values(), 4);
  EXPECT_EQ(w.rows(), 6);
  EXPECT_EQ(w.values, 24);
  EXPECT_EQ(w.bytes.size(), 48U);
  EXPECT_EQ(w.offset, file.data_offset() + 128);
  EXPECT_EQ(w.bytes.data(), file.file()->bytes().data() + w.offset);
  EXPECT_THAT(file.try_tensor("s")->shape(), IsEmpty());
  EXPECT_EQ(file.try_tensor("s")->bytes.size(), 1U);
  EXPECT_EQ(file.try_tensor("e")->values, 0);
  EXPECT_EQ(file.try_tensor("nothing"), nullptr);
}

TEST(Gguf, RowsOfATensorAreRead) {
  std::string data;
  for (int i = 0; i < 6; ++i) data += le_float(static_cast<float>(i));
  const GgufReader file = gguf_of(make_gguf({
      .tensors = {gguf_tensor("m", {2, 3}, 0, 0), gguf_tensor("q", {256}, 16, 32),
                  gguf_tensor("new", {7}, 777, 128)},
      .data = data + std::string(200, '\0'),
  }));
  std::vector<float> values(4);
  file.read_rows(file.tensors()[0], 1, values);
  EXPECT_THAT(values, ElementsAre(2, 3, 4, 5));
  for (const int64_t first : {int64_t{-1}, int64_t{2}, INT64_MAX}) {
    EXPECT_THAT(
        message_of(ErrorCode::kInvalidArgument, [&] { file.read_rows(file.tensors()[0], first, values); }),
        HasSubstr("x.gguf: tensor \"m\" has 3 rows of 2 values"));
  }
  std::vector<float> three(3);
  message_of(ErrorCode::kInvalidArgument, [&] { file.read_rows(file.tensors()[0], 0, three); });
  // What is not read is refused where it is asked for, by name; the file opens.
  EXPECT_THAT(
      message_of(ErrorCode::kUnsupported, [&] { file.read_rows(file.tensors()[1], 0, values); }),
      HasSubstr("x.gguf: tensor \"q\" is of IQ2_XXS, whose numbers are not read; those of F32, F16, Q4_0"));
  EXPECT_THAT(message_of(ErrorCode::kUnsupported, [&] { file.read_rows(file.tensors()[2], 0, values); }),
              HasSubstr("tensor \"new\" is of type 777"));
  EXPECT_FALSE(file.tensors()[2].has_known_size);
  EXPECT_THAT(file.tensors()[2].bytes, IsEmpty());
}

TEST(Gguf, AVocabularyOf262144TokensOpensInMilliseconds) {
  std::string tokens;
  for (int i = 0; i < 262'144; ++i) tokens += gguf_string("token" + std::to_string(i));
  const std::string path = ::testing::TempDir() + "/halftone_vocabulary.gguf";
  {
    std::ofstream out(path, std::ios::binary);
    out << make_gguf({.entries = {gguf_entry("tokens", 9, gguf_array(8, 262'144, tokens))},
                      .tensors = {gguf_tensor("w", {1 << 26}, 0, 0)},
                      .data = std::string(32, '\0')});
  }
  // A sparse file of 270 MB: bytes that nobody touches cost nothing.
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + (size_t{1} << 28));
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const GgufReader file = GgufReader::open(path);
    best = std::min(
        best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    EXPECT_EQ(file.try_value("tokens")->size(), 262'144U);
    const auto strings = file.get_strings("tokens");
    EXPECT_EQ(strings.back(), "token262143");
    // Views into the mapping, not copies.
    EXPECT_GE(strings.back().data(), reinterpret_cast<const char*>(file.file()->bytes().data()));
    EXPECT_LT(strings.back().data(), reinterpret_cast<const char*>(file.file()->bytes().data()) + (1 << 23));
  }
  std::filesystem::remove(path);
  RecordProperty("milliseconds", std::to_string(best));
  EXPECT_LT(best, 200) << "measured: 2 to 5 ms; under sanitizers 40";
}

TEST(GgmlBlocks, FormatsAreSortedAndSizesAreThoseOfGgml) {
  uint32_t before = 0;
  for (const GgmlFormat& format : ggml_formats()) {
    const auto number = static_cast<uint32_t>(format.type);
    EXPECT_TRUE(number == 0 || number > before) << format.name;
    before = number;
    EXPECT_EQ(try_ggml_format(number), &format);
  }
  for (const uint32_t removed : {4U, 5U, 31U, 32U, 33U, 36U, 37U, 38U, 1000U, UINT32_MAX})
    EXPECT_EQ(try_ggml_format(removed), nullptr);
  EXPECT_EQ(ggml_type_text(12), "Q4_K");
  EXPECT_EQ(ggml_type_text(4), "type 4");
  EXPECT_EQ(readable_ggml_types(),
            "F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, BF16");
}

TEST(GgmlBlocks, ReadableIsWhatCanBeDequantized) {
  for (const GgmlFormat& format : ggml_formats()) {
    const std::vector<std::byte> blocks(2 * format.bytes);
    std::vector<float> values(2 * format.values, 7.0F);
    if (format.readable) {
      dequantize_blocks(format.type, blocks, values);
      EXPECT_THAT(values, ::testing::Each(0.0F)) << format.name;
      message_of(ErrorCode::kInvalidArgument,
                 [&] { dequantize_blocks(format.type, blocks, std::span(values).first(format.values)); });
      if (format.bytes > 1)
        message_of(ErrorCode::kInvalidArgument,
                   [&] { dequantize_blocks(format.type, std::span(blocks).subspan(1), values); });
    } else {
      EXPECT_THAT(
          message_of(ErrorCode::kUnsupported, [&] { dequantize_blocks(format.type, blocks, values); }),
          HasSubstr(std::string(format.name)));
    }
  }
}

/// Bytes without a pattern; the scales of the first blocks are numbers that are easily got wrong.
std::vector<std::byte> some_blocks(const GgmlFormat& format, size_t count) {
  std::vector<std::byte> blocks(count * format.bytes);
  uint32_t state = 12345;
  for (std::byte& byte : blocks)
    byte = static_cast<std::byte>((state = state * 1664525U + 1013904223U) >> 24);
  const std::array<uint16_t, 6> scales = {0x0001, 0x83FF, 0x7BFF, 0x7C00, 0x8000, 0x3C00};
  for (size_t i = 0; i < scales.size(); ++i) {
    blocks[i * format.bytes] = static_cast<std::byte>(scales[i] & 0xFF);
    blocks[i * format.bytes + 1] = static_cast<std::byte>(scales[i] >> 8);
  }
  return blocks;
}

TEST(GgmlBlocks, IntegersScaleAndMinimumGiveTheSameNumbers) {
  size_t formats = 0;
  for (const GgmlFormat& format : ggml_formats()) {
    if (!has_integer_blocks(format.type)) {
      message_of(ErrorCode::kUnsupported, [&] { read_integer_block(format.type, {}, 0); });
      continue;
    }
    ++formats;
    constexpr size_t kBlocks = 50;
    const auto blocks = some_blocks(format, kBlocks);
    std::vector<float> values(kBlocks * format.values);
    dequantize_blocks(format.type, blocks, values);
    for (size_t b = 0; b < kBlocks; ++b) {
      const GgmlIntegerBlock block = read_integer_block(format.type, blocks, b);
      for (size_t i = 0; i < GgmlIntegerBlock::kValues; ++i) {
        const float product = half_to_float(block.scale) * static_cast<float>(block.integers[i]);
        const float expected =
            format.type == GgmlType::kQ4_1 ? product + half_to_float(block.minimum) : product;
        const float found = values[b * format.values + i];
        EXPECT_TRUE(std::bit_cast<uint32_t>(found) == std::bit_cast<uint32_t>(expected) ||
                    (std::isnan(found) && std::isnan(expected)))
            << format.name << " block " << b << " value " << i << ": " << found << " and " << expected;
        const int lowest = format.type == GgmlType::kQ4_0 ? -8 : format.type == GgmlType::kQ4_1 ? 0 : -128;
        const int highest = format.type == GgmlType::kQ8_0 ? 127 : lowest + 15;
        EXPECT_GE(block.integers[i], lowest);
        EXPECT_LE(block.integers[i], highest);
      }
    }
    message_of(ErrorCode::kInvalidArgument, [&] { read_integer_block(format.type, blocks, kBlocks); });
  }
  EXPECT_EQ(formats, 3U);
}

TEST(Half, EveryBitPatternIsTheNumberThatItMeans) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto exponent = static_cast<int>(bits >> 10 & 31);
    const auto fraction = static_cast<double>(bits & 1023);
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    const float found = half_to_float(static_cast<uint16_t>(bits));
    EXPECT_EQ(std::signbit(found), sign < 0);
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(found), fraction != 0);
      EXPECT_EQ(std::isinf(found), fraction == 0);
    } else {
      const double size =
          exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
      EXPECT_EQ(found, sign * size) << bits;
    }
  }
  EXPECT_EQ(bfloat16_to_float(0x3FC0), 1.5F);
}

class GgufCheckTest : public ::testing::Test {
 protected:
  ~GgufCheckTest() override { std::filesystem::remove(path_); }
  GgufCheck check(const GgufSpec& spec, bool numbers = true) const {
    std::ofstream(path_, std::ios::binary) << make_gguf(spec);
    return check_gguf(path_, numbers);
  }
  const std::string path_ = ::testing::TempDir() + "/halftone_check.gguf";
};

GgufSpec sound_model() {
  return {
      .entries =
          {gguf_entry("general.architecture", 8, gguf_string("llama")),
           gguf_entry("general.name", 8, gguf_string("Tiny \xff")),
           gguf_entry("llama.context_length", 4, le<uint32_t>(2048)),
           gguf_entry("llama.block_count", 10, le<uint64_t>(2)),
           gguf_entry("llama.attention.head_count", 9, gguf_array(5, 2, le<int32_t>(4) + le<int32_t>(4))),
           gguf_entry("llama.attention.head_count_kv", 9, gguf_array(5, 2, le<int32_t>(1) + le<int32_t>(2))),
           gguf_entry("tokenizer.ggml.model", 8, gguf_string("gpt2")),
           gguf_entry("tokenizer.ggml.tokens", 9, gguf_array(8, 2, gguf_string("a") + gguf_string("b"))),
           gguf_entry("tokenizer.ggml.token_type", 9, gguf_array(5, 2, le<int32_t>(1) + le<int32_t>(1))),
           gguf_entry("split.count", 2, le<uint16_t>(3)), gguf_entry("split.no", 2, le<uint16_t>(1)),
           gguf_entry("nan", 6, le_float(NAN))},
      .tensors = {gguf_tensor("a", {2}, 0, 0), gguf_tensor("b", {32, 2}, 8, 32),
                  gguf_tensor("c", {256}, 16, 128)},
      .data =
          le_float(1) + le_float(2) + std::string(24, '\0') + std::string(96, '\0') + std::string(66, 'x')};
}

TEST_F(GgufCheckTest, DescribesAModel) {
  const GgufCheck found = check(sound_model());
  EXPECT_THAT(found.findings, IsEmpty());
  EXPECT_EQ(found.sha256.size(), 64U);
  const GgufDescription& model = found.description;
  EXPECT_EQ(model.architecture, "llama");
  EXPECT_EQ(model.name, "Tiny \\xff");
  EXPECT_EQ(model.context_length, 2048);
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(model.heads, 4);
  EXPECT_EQ(model.kv_heads, std::nullopt);  // differs from layer to layer
  EXPECT_EQ(model.vocabulary, 2);
  EXPECT_EQ(model.tokenizer, "gpt2");
  EXPECT_EQ(model.split_count, 3);
  EXPECT_EQ(model.split_number, 2);
  EXPECT_EQ(model.parameters, 2 + 64 + 256);
  EXPECT_EQ(model.tensor_bytes, 8 + 68 + 66);
  ASSERT_EQ(model.types.size(), 3U);
  EXPECT_EQ(model.types[0].type, "Q8_0");
  EXPECT_TRUE(model.types[0].readable);
  EXPECT_EQ(model.types[1].type, "IQ2_XXS");
  EXPECT_FALSE(model.types[1].readable);
  EXPECT_THAT(model.tensors[1].shape, ElementsAre(2, 32));
  EXPECT_EQ(model.metadata[5].json, "[1,2]");
  EXPECT_EQ(model.metadata[7].json, R"(["a","b"])");
  EXPECT_EQ(model.metadata.back().json, "\"NaN\"");
}

TEST_F(GgufCheckTest, FindsWhatReadersNeedNotRefuse) {
  EXPECT_THAT(check({}).findings, ElementsAre("metadata \"general.architecture\" is missing"));
  GgufSpec spec = sound_model();
  spec.entries[0] = gguf_entry("general.architecture", 7, "\x01");
  spec.entries[8] = gguf_entry("tokenizer.ggml.token_type", 9, gguf_array(5, 1, le<int32_t>(1)));
  spec.data[9] = 'x';
  spec.data.append(64, '\0');
  EXPECT_THAT(
      check(spec).findings,
      ElementsAre("metadata \"general.architecture\" is bool, expected string",
                  "metadata \"tokenizer.ggml.token_type\": 1 elements for 2 tokens",
                  "the padding before tensor \"b\" is not zero", "64 bytes at the end belong to no tensor"));
}

TEST_F(GgufCheckTest, FindsNumbersThatAreNotFinite) {
  GgufSpec spec = sound_model();
  spec.data.replace(4, 4, le_float(INFINITY));
  spec.data.replace(32 + 34, 3, std::string("\x00\x7e\x01", 3));  // the scale of b's second block is NaN
  EXPECT_THAT(check(spec).findings,
              ElementsAre("tensor \"a\": 1 of its 2 numbers are not finite, the first at place 1",
                          "tensor \"b\": 32 of its 64 numbers are not finite, the first at place 32"));
  const GgufCheck fast = check(spec, /*numbers=*/false);
  EXPECT_THAT(fast.findings, IsEmpty());
  EXPECT_EQ(fast.sha256, "");
  EXPECT_FALSE(fast.numbers_checked);
}

}  // namespace
}  // namespace halftone::testing
