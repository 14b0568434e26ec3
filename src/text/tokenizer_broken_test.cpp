// Broken tokenizer.json files: each is refused with the place and what is wrong there.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/expect_error.h"
#include "halftone/text/tokenizer.h"

namespace halftone {
namespace {

using nlohmann::json;

json good_bpe() {
  return json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 4, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]}}},
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
      "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
      "vocab": {"a": 0, "b": 1, "ab": 2, "abb": 3}, "merges": ["a b", ["ab", "b"]]}})");
}

struct Broken {
  std::string pointer;  ///< where good_bpe() is changed
  json value;
  ErrorCode code;
  std::vector<std::string> words;  ///< of the message
};

const ErrorCode kBad = ErrorCode::kCorruptFile;
const ErrorCode kNot = ErrorCode::kUnsupported;

json long_text(size_t length) {
  return std::string(length, 'x');
}

std::vector<Broken> broken_models() {
  return {
      {"/model", json::object(), kBad, {"t.json.model", "\"type\" is missing"}},
      {"/model", 3, kBad, {"t.json.model", "object"}},
      {"/model/type", "WordLevel", kNot, {"the model", "WordLevel"}},
      {"/model/vocab", json::array({"a"}), kBad, {"t.json.model.vocab", "object"}},
      {"/model/vocab", json::object(), kBad, {"a"}},
      {"/model/vocab/a", -1, kBad, {"t.json.model.vocab", "\"a\"", "integer"}},
      {"/model/vocab/a", 1, kBad, {"\"a\"", "\"b\"", "same id, 1"}},
      {"/model/vocab/a", 0.5, kBad, {"\"a\"", "integer"}},
      {"/model/vocab/a", "0", kBad, {"\"a\"", "integer"}},
      {"/model/vocab/a", 4000000000U, kBad, {"\"a\"", "integer"}},
      {"/model/vocab/a", 2000000000, kBad, {"\"a\"", "id 2000000000 is not in"}},
      {"/model/merges", json::object(), kBad, {"t.json.model.merges", "array"}},
      {"/model/merges/0", "ab", kBad, {"merge 0", "two tokens"}},
      {"/model/merges/0", "a b b", kBad, {"merge 0", "two tokens"}},
      {"/model/merges/1", json::array({"ab"}), kBad, {"merge 1", "two tokens"}},
      {"/model/merges/1", 7, kBad, {"merge 1", "two tokens"}},
      {"/model/merges/0", "a c", kBad, {"merge 0", "\"c\" is not in the vocabulary"}},
      {"/model/merges/1", "b b", kBad, {"merge 1", "\"bb\" is not in the vocabulary"}},
      {"/model/dropout", 0.1, kNot, {"dropout"}},
      {"/model/dropout", "x", kBad, {"t.json.model.dropout", "number"}},
      {"/model/end_of_word_suffix", "</w>", kNot, {"end_of_word_suffix", "</w>"}},
      {"/model/continuing_subword_prefix", "##", kNot, {"continuing_subword_prefix"}},
      {"/model/unk_token", "<unk>", kBad, {"unk_token", "<unk>", "not in the vocabulary"}},
      {"/model/fuse_unk", 1, kBad, {"fuse_unk", "boolean"}},
      {"/model/speed", 1, kNot, {"t.json.model", "\"speed\" is not known"}},
  };
}

std::vector<Broken> broken_added_tokens() {
  return {
      {"/added_tokens", json::object(), kBad, {"t.json.added_tokens", "array"}},
      {"/added_tokens/0", "<s>", kBad, {"t.json.added_tokens[0]", "object"}},
      {"/added_tokens/0/id", -4, kBad, {"added_tokens[0].id", "-4"}},
      {"/added_tokens/0/id", 1, kBad, {"\"b\"", "\"<s>\"", "same id, 1"}},
      {"/added_tokens/0/id", 90000, kBad, {"\"<s>\"", "90000"}},
      {"/added_tokens/0/content", "", kBad, {"added_tokens[0]", "empty"}},
      {"/added_tokens/0/content", "a", kBad, {"\"a\" stands twice"}},
      {"/added_tokens/0/content", long_text(3000), kBad, {"3000 bytes"}},
      {"/added_tokens/0/special", nullptr, kBad, {"added_tokens[0].special", "boolean"}},
      {"/added_tokens/0/weight", 1, kNot, {"added_tokens[0]", "\"weight\""}},
  };
}

std::vector<Broken> broken_steps() {
  const auto prepend = [](size_t length) {
    return json{{"type", "Prepend"}, {"prepend", std::string(length, 'x')}};
  };
  const auto replace = [](const json& pattern, size_t length) {
    return json{{"type", "Replace"}, {"pattern", pattern}, {"content", std::string(length, 'x')}};
  };
  const json twice = replace({{"String", "x"}}, 2);
  return {
      {"/version", "2.0", kNot, {"t.json.version", "2.0"}},
      {"/extra", 1, kNot, {"t.json", "\"extra\""}},
      {"/normalizer", {{"type", "Nmt"}}, kNot, {"the normalizer", "Nmt"}},
      {"/normalizer", {{"type", "Precompiled"}}, kNot, {"the normalizer", "Precompiled"}},
      {"/normalizer", {{"typ", "NFC"}}, kBad, {"t.json.normalizer", "\"type\" is missing"}},
      {"/normalizer", {{"type", "NFC"}, {"form", 2}}, kNot, {"\"form\""}},
      {"/normalizer",
       {{"type", "Sequence"}, {"normalizers", json::array({{{"type", "X"}}})}},
       kNot,
       {"normalizers[0]", "\"X\""}},
      {"/normalizer", prepend(3000), kBad, {"longer than 2048"}},
      {"/normalizer", replace({{"String", ""}}, 1), kBad, {"Replace", "empty"}},
      {"/normalizer", replace({{"Regex", "a+"}}, 1), kNot, {"regular expression", "a+"}},
      {"/normalizer", replace({{"Glob", "a"}}, 1), kNot, {"normalizer.pattern", "Glob"}},
      {"/normalizer", replace({{"String", "a"}}, 500), kBad, {"64 times"}},
      {"/normalizer",
       {{"type", "Sequence"}, {"normalizers", std::vector<json>(8, twice)}},
       kBad,
       {"64 times"}},
      {"/normalizer",
       {{"type", "Sequence"}, {"normalizers", std::vector<json>(65, {{"type", "NFC"}})}},
       kBad,
       {"more than 64"}},
      {"/pre_tokenizer", {{"type", "UnicodeScripts"}}, kNot, {"the pre-tokenizer", "UnicodeScripts"}},
      {"/pre_tokenizer",
       {{"type", "Split"}, {"pattern", {{"Regex", "\\d+"}}}, {"behavior", "Isolated"}, {"invert", false}},
       kNot,
       {"regular expression", "\\d+"}},
      {"/pre_tokenizer",
       {{"type", "Split"}, {"pattern", {{"String", ""}}}, {"behavior", "Isolated"}, {"invert", false}},
       kBad,
       {"empty pattern"}},
      {"/pre_tokenizer",
       {{"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "Cut"}, {"invert", false}},
       kNot,
       {"the behavior", "Cut"}},
      {"/pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "ab"}},
       kBad,
       {"replacement", "one character"}},
      {"/pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "a"}, {"prepend_scheme", "often"}},
       kNot,
       {"prepend_scheme", "often"}},
      {"/pre_tokenizer",
       {{"type", "Sequence"},
        {"pretokenizers", json::array({good_bpe()["pre_tokenizer"], {{"type", "Whitespace"}}})}},
       kNot,
       {"ByteLevel", "last"}},
      {"/decoder", {{"type", "CTC"}}, kNot, {"the decoder", "CTC"}},
      {"/decoder", {{"type", "Strip"}, {"content", " "}, {"start", -1}, {"stop", 0}}, kBad, {"Strip", "-1"}},
      {"/decoder",
       {{"type", "Strip"}, {"content", ""}, {"start", 1}, {"stop", 0}},
       kBad,
       {"decoder.content", "one character"}},
      {"/post_processor", {{"type", "Magic"}}, kNot, {"the post-processor", "Magic"}},
      {"/post_processor/single", json::array(), kBad, {"post_processor.single", "once"}},
      {"/post_processor/single/1/Sequence/id", "B", kBad, {"single[1]", "once"}},
      {"/post_processor/single/0/SpecialToken/id", "<x>", kBad, {"special_tokens", "<x>", "missing"}},
      {"/post_processor/special_tokens/<s>/ids", json::array({77}), kBad, {"77 is no token"}},
      {"/post_processor/special_tokens/<s>/ids", std::vector<int>(65, 4), kBad, {"at most 64"}},
      {"/post_processor",
       {{"type", "BertProcessing"}, {"sep", json::array({"a"})}, {"cls", json::array({"a", 0})}},
       kBad,
       {"sep", "token and its id"}},
  };
}

void expect_refused(const std::vector<Broken>& cases) {
  for (const Broken& broken : cases) {
    json document = good_bpe();
    document[json::json_pointer(broken.pointer)] = broken.value;
    SCOPED_TRACE(broken.pointer + " = " + broken.value.dump().substr(0, 200));
    const std::string message =
        message_of(broken.code, [&] { Tokenizer::from_json(document.dump(), "t.json"); });
    EXPECT_TRUE(message.starts_with("t.json")) << message;
    for (const std::string& word : broken.words) EXPECT_NE(message.find(word), std::string::npos) << message;
  }
}

TEST(BrokenTokenizerJson, GoodOneIsTaken) {
  const Tokenizer tokenizer = Tokenizer::from_json(good_bpe().dump());
  EXPECT_EQ(tokenizer.encode("abb"), (std::vector<int64_t>{4, 3}));
}

TEST(BrokenTokenizerJson, ModelsAreRefused) {
  expect_refused(broken_models());
}

TEST(BrokenTokenizerJson, AddedTokensAreRefused) {
  expect_refused(broken_added_tokens());
}

TEST(BrokenTokenizerJson, StepsAreRefused) {
  expect_refused(broken_steps());
}

TEST(BrokenTokenizerJson, TextThatIsNoJsonIsRefused) {
  const auto read = [](const std::string& text) { return [text] { Tokenizer::from_json(text, "t.json"); }; };
  expect_error(kBad, {"t.json"}, read(""));
  expect_error(kBad, {"t.json", "object"}, read("[]"));
  expect_error(kBad, {"t.json", "byte"}, read("{\"model\""));
  expect_error(kBad, {"duplicate key \"a\""},
               read(R"({"model": {"type": "BPE", "vocab": {"a": 0, "a": 1}, "merges": []}})"));
  std::string nested;
  for (int i = 0; i < 40; ++i) nested += R"({"type": "Sequence", "normalizers": [)";
  expect_error(kBad, {"nested deeper"}, read(R"({"normalizer": )" + nested));
}

TEST(BrokenTokenizerJson, WrongUnigramAndWordPieceAreRefused) {
  json document = good_bpe();
  document["pre_tokenizer"] = nullptr;
  document["post_processor"] = nullptr;
  const auto read = [&](const json& model) {
    document["model"] = model;
    return [text = document.dump()] { Tokenizer::from_json(text, "t.json"); };
  };
  const json pieces = json::parse(R"([["a", -1.5], ["b", -2]])");
  expect_error(kBad, {"unk_id", "2 is not in"},
               read({{"type", "Unigram"}, {"unk_id", 2}, {"vocab", pieces}}));
  expect_error(kBad, {"element 1"},
               read({{"type", "Unigram"}, {"unk_id", 0}, {"vocab", json::parse(R"([["a", 1], ["b"]])")}}));
  expect_error(kBad, {"\"a\" stands twice"},
               read({{"type", "Unigram"}, {"unk_id", 0}, {"vocab", json::parse(R"([["a", 1], ["a", 2]])")}}));
  json word_piece = {{"type", "WordPiece"},
                     {"unk_token", "a"},
                     {"continuing_subword_prefix", "##"},
                     {"max_input_chars_per_word", 100},
                     {"vocab", {{"a", 0}}}};
  EXPECT_NO_THROW(read(word_piece)());
  word_piece["max_input_chars_per_word"] = 1000000;
  expect_error(kBad, {"1000000"}, read(word_piece));
  word_piece["max_input_chars_per_word"] = 10;
  word_piece.erase("unk_token");
  expect_error(kBad, {"unknown token"}, read(word_piece));
  document["pre_tokenizer"] = good_bpe()["pre_tokenizer"];
  expect_error(kNot, {"ByteLevel", "BPE only"},
               read({{"type", "Unigram"}, {"unk_id", 0}, {"vocab", pieces}}));
}

TEST(BrokenTokenizerJson, MissingFileIsNotFound) {
  expect_error(ErrorCode::kNotFound, {"no/such/tokenizer.json"},
               [] { Tokenizer::from_file("no/such/tokenizer.json"); });
}

}  // namespace
}  // namespace halftone
