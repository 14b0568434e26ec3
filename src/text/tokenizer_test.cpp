// Small tokenizers by hand; oracle_test.py compares larger ones with the `tokenizers` package.
#include "halftone/text/tokenizer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "archive/bytes/text_file.h"
#include "base/expect_error.h"
#include "text/byte_alphabet.h"
#include "text/normal_form.h"
#include "text/split_patterns.h"
#include "text/unicode.h"

namespace halftone {
namespace {

using Ids = std::vector<int64_t>;

/// Byte-level BPE with all bytes and the given merges, of which each makes one token more: ids from 256.
TokenizerSpec byte_level_spec(const std::vector<std::pair<std::string, std::string>>& merges) {
  TokenizerSpec spec;
  const auto add = [&](const std::string& text) {
    spec.model.vocabulary.push_back({text, static_cast<int64_t>(spec.model.vocabulary.size()), 0});
  };
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    append_utf8(char_of_byte(static_cast<uint8_t>(byte)), text);
    add(text);
  }
  for (const auto& [left, right] : merges) add(left + right);
  spec.model.merges = merges;
  spec.pre_tokenizers.resize(1);
  spec.decoders.resize(1);
  spec.decoders[0].kind = DecoderKind::kByteLevel;
  return spec;
}

GgufVocabulary llama_vocabulary() {
  GgufVocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.tokens = {"<unk>", "<s>", "</s>"};
  vocabulary.token_types = {2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    vocabulary.tokens.push_back(name);
    vocabulary.token_types.push_back(6);
  }
  for (const char* token : {"▁", "a", "b", "ab", "▁ab", "abab"}) {
    vocabulary.tokens.push_back(token);
    vocabulary.token_types.push_back(1);
  }
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) vocabulary.scores.push_back(-static_cast<float>(i));
  vocabulary.bos_id = 1;
  vocabulary.eos_id = 2;
  return vocabulary;
}

TEST(Tokenizer, MergesBestPairFirst) {
  const Tokenizer tokenizer(byte_level_spec({{"b", "c"}, {"a", "b"}, {"a", "bc"}, {"bc", "bc"}}));
  EXPECT_EQ(tokenizer.encode("abc"), Ids{258});
  EXPECT_EQ(tokenizer.encode("abcbc"), (Ids{258, 256}));
  EXPECT_EQ(tokenizer.encode("bcbcbc"), (Ids{259, 256}));
  EXPECT_EQ(tokenizer.decode(Ids{258, 256}), "abcbc");
}

TEST(Tokenizer, KeepsEveryByteOfUtf8) {
  const Tokenizer tokenizer(byte_level_spec({}));
  const std::string text = "a\tb\n héllo 中 🙂";
  EXPECT_EQ(tokenizer.encode(text).size(), text.size());
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xFF\xE4\xB8z")), "a\uFFFD\uFFFDz");
  EXPECT_EQ(tokenizer.token_bytes(tokenizer.encode(" ")[0]), " ");
  EXPECT_EQ(tokenizer.token(tokenizer.encode(" ")[0]), "Ġ");
}

TEST(Tokenizer, OneWordOfAMegabyteTakesNoQuadraticTime) {
  const Tokenizer tokenizer(byte_level_spec({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}, {"a", "b"}}));
  const auto seconds = [&](size_t length) {
    const std::string word(length, 'a');
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(tokenizer.encode(word).size(), length / 8);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  seconds(1 << 15);
  EXPECT_LT(seconds(1 << 20), 10);  // quadratic: minutes
}

TEST(Tokenizer, AddedTokensTakeWhiteSpaceAsTheySay) {
  TokenizerSpec spec = byte_level_spec({});
  spec.added_tokens = {{.content = "<l>", .id = 300, .lstrip = true},
                       {.content = "<r>", .id = 301, .rstrip = true},
                       {.content = "word", .id = 302, .single_word = true},
                       {.content = "<l>>", .id = 303}};
  const Tokenizer tokenizer(spec);
  const auto id_of = [&](char c) { return *tokenizer.id_of(std::string(1, c)); };
  EXPECT_EQ(tokenizer.encode("a  <l>b"), (Ids{id_of('a'), 300, id_of('b')}));
  EXPECT_EQ(tokenizer.encode("a<r> \n b"), (Ids{id_of('a'), 301, id_of('b')}));
  EXPECT_EQ(tokenizer.encode("word"), Ids{302});
  EXPECT_EQ(tokenizer.encode("words").size(), 5u);
  EXPECT_EQ(tokenizer.encode("<l>>"), Ids{303});  // the longest
}

TEST(Tokenizer, SpecialTokensAreTextUnlessAskedFor) {
  TokenizerSpec spec = byte_level_spec({});
  spec.added_tokens = {{.content = "<s>", .id = 256, .special = true}};
  spec.prefix = {256};
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode("<s>"), (Ids{256, 256}));
  EXPECT_EQ(tokenizer.encode("<s>", {.add_special = false}), Ids{256});
  EXPECT_EQ(tokenizer.encode("<s>", {.add_special = false, .parse_special = false}).size(), 3u);
  EXPECT_EQ(tokenizer.decode(Ids{256, *tokenizer.id_of("a")}), "a");
  EXPECT_EQ(tokenizer.decode(Ids{256, *tokenizer.id_of("a")}, false), "<s>a");
  EXPECT_TRUE(tokenizer.is_special(256));
  EXPECT_FALSE(tokenizer.is_special(255));
  EXPECT_FALSE(tokenizer.is_token(257));
}

TEST(Tokenizer, IdsThatAreNoTokenGiveNoTextAndNoBytes) {
  const Tokenizer tokenizer(byte_level_spec({}));
  EXPECT_EQ(tokenizer.decode(Ids{-1, 1000, *tokenizer.id_of("a"), INT64_MAX}), "a");
  expect_error(ErrorCode::kInvalidArgument, {"1000 is no token"}, [&] { tokenizer.token_bytes(1000); });
  expect_error(ErrorCode::kInvalidArgument, {"-1 is no token"}, [&] { tokenizer.token(-1); });
}

TEST(Tokenizer, ServesManyThreads) {
  const Tokenizer tokenizer(byte_level_spec({{"a", "b"}, {"ab", "ab"}}));
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  for (Ids& result : results)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) result = tokenizer.encode("abab ab abab");
    });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_EQ(result, tokenizer.encode("abab ab abab"));
}

TEST(StreamDecoder, NeverEndsWithinACharacter) {
  const Tokenizer tokenizer(byte_level_spec({}));
  const Ids ids = tokenizer.encode("é🙂");
  StreamDecoder stream(tokenizer);
  std::vector<std::string> parts;
  for (const int64_t id : ids) parts.push_back(stream.push(id));
  EXPECT_EQ(parts, (std::vector<std::string>{"", "é", "", "", "", "🙂"}));
  EXPECT_EQ(stream.finish(), "");
  stream.push(ids[0]);
  EXPECT_EQ(stream.finish(), "\uFFFD");  // half a character
  EXPECT_EQ(stream.push(*tokenizer.id_of("a")), "a");
}

TEST(StreamDecoder, HoldsRunsOfByteTokens) {
  const Tokenizer tokenizer(gguf_tokenizer_spec(llama_vocabulary()));
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.push(1), "");                          // <s>
  EXPECT_EQ(stream.push(*tokenizer.id_of("▁ab")), "ab");  // without the space that stands before every text
  EXPECT_EQ(stream.push(*tokenizer.id_of("<0xC3>")), "");
  EXPECT_EQ(stream.push(*tokenizer.id_of("<0xA9>")), "");
  EXPECT_EQ(stream.push(*tokenizer.id_of("▁")), "é ");
}

TEST(GgufVocabulary, SentencePieceMergesByScore) {
  const Tokenizer tokenizer(gguf_tokenizer_spec(llama_vocabulary()));
  const auto id = [&](const char* token) { return *tokenizer.id_of(token); };
  EXPECT_EQ(tokenizer.encode("abab"), (Ids{1, id("▁ab"), id("ab")}));  // ab before ▁ab before abab
  EXPECT_EQ(tokenizer.encode(""), Ids{1});
  EXPECT_EQ(tokenizer.encode("é", {.add_special = false}), (Ids{id("▁"), id("<0xC3>"), id("<0xA9>")}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(" a b é")), " a b é");
  EXPECT_EQ(tokenizer.bos_id(), 1);
  EXPECT_EQ(tokenizer.token_bytes(id("<0xC3>")), "\xC3");
  EXPECT_EQ(tokenizer.token_bytes(id("▁ab")), " ab");
}

TEST(GgufVocabulary, BadOnesAreRefused) {
  const auto make = [](auto change) {
    return [change] {
      GgufVocabulary vocabulary = llama_vocabulary();
      change(vocabulary);
      Tokenizer tokenizer(gguf_tokenizer_spec(vocabulary));
    };
  };
  const ErrorCode bad = ErrorCode::kCorruptFile, no = ErrorCode::kUnsupported;
  expect_error(no, {"tokenizer.ggml.model", "rwkv"}, make([](auto& v) { v.model = "rwkv"; }));
  expect_error(no, {"tokenizer.ggml.pre", "\"odd\""}, make([](auto& v) { v.model = "gpt2", v.pre = "odd"; }));
  expect_error(bad, {"scores", "1 elements"}, make([](auto& v) { v.scores.resize(1); }));
  expect_error(bad, {"scores is missing"}, make([](auto& v) { v.scores.clear(); }));
  expect_error(bad, {"token_type[3]", "9"}, make([](auto& v) { v.token_types[3] = 9; }));
  expect_error(bad, {"begin-of-text", "5000"}, make([](auto& v) { v.bos_id = 5000; }));
  expect_error(bad, {"not finite"}, make([](auto& v) { v.scores.back() = NAN; }));
  expect_error(bad, {"\"a\" stands twice"}, make([](auto& v) { v.tokens.back() = "a"; }));
  expect_error(bad, {"not UTF-8"}, make([](auto& v) { v.tokens.back() = "\xFF"; }));
  expect_error(bad, {"merges[0]"},
               make([](auto& v) { v.model = "gpt2", v.pre = "gpt-2", v.merges = {"ab"}; }));
  expect_error(bad, {"vocabulary is empty"}, make([](auto& v) { v = {.model = "bert"}; }));
}

TEST(GgufVocabulary, BertWordsHaveTheirMark) {
  GgufVocabulary vocabulary;
  vocabulary.model = "bert";
  vocabulary.tokens = {"[UNK]", "[CLS]", "[SEP]", "▁the", "▁c", "at"};
  vocabulary.token_types = {2, 3, 3, 1, 1, 1};
  vocabulary.bos_id = 1;
  vocabulary.separator_id = 2;
  const Tokenizer tokenizer(gguf_tokenizer_spec(vocabulary));
  EXPECT_EQ(tokenizer.encode("The CAT zoo"), (Ids{1, 3, 4, 5, 0, 2}));
  EXPECT_EQ(tokenizer.decode(Ids{1, 3, 4, 5, 2}), "the cat");
}

class BertVocabulary : public testing::Test {
 protected:
  Tokenizer read(const std::string& lines) const {
    write_text_file(path_, lines);
    return Tokenizer::from_bert_vocabulary(path_);
  }
  std::string path_ = testing::TempDir() + "halftone_vocab.txt";
};

TEST_F(BertVocabulary, LinesAreTokens) {
  const Tokenizer tokenizer = read("[PAD]\r\n[UNK]\n[CLS]\n[SEP]\nthe\n##re\nc");
  EXPECT_EQ(tokenizer.encode("THÉRE c x"), (Ids{2, 4, 5, 6, 1, 3}));
  EXPECT_EQ(tokenizer.encode("[SEP]", {.add_special = false}), Ids{3});
  EXPECT_EQ(tokenizer.encode("[SEP]", {.add_special = false, .parse_special = false}), (Ids{1, 1, 1}));
  EXPECT_EQ(tokenizer.pad_id(), 0);
}

TEST_F(BertVocabulary, BrokenOnesAreRefused) {
  expect_error(ErrorCode::kCorruptFile, {path_, "[SEP] is missing"},
               [&] { read("[PAD]\n[UNK]\n[CLS]\na\n"); });
  expect_error(ErrorCode::kCorruptFile, {path_, "\"a\" stands twice"},
               [&] { read("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\na\n"); });
  expect_error(ErrorCode::kNotFound, {"no/such"},
               [] { Tokenizer::from_bert_vocabulary("no/such/vocab.txt"); });
}

TEST(NormalForm, FollowsUnicode) {
  EXPECT_EQ(normal_form("e\u0301", NormalForm::kNfc), "é");
  EXPECT_EQ(normal_form("é", NormalForm::kNfd), "e\u0301");
  EXPECT_EQ(normal_form("a\u0323\u0302", NormalForm::kNfc), "\u1EAD");
  EXPECT_EQ(normal_form("a\u0302\u0323", NormalForm::kNfc), "\u1EAD");
  EXPECT_EQ(normal_form("\u1100\u1161\u11A8", NormalForm::kNfc), "\uAC01");
  EXPECT_EQ(normal_form("\uAC01", NormalForm::kNfd), "\u1100\u1161\u11A8");
  EXPECT_EQ(normal_form("\uFB01\u00BD", NormalForm::kNfkc), "fi1\u20442");
  EXPECT_EQ(normal_form("\u0344", NormalForm::kNfc), "\u0308\u0301");  // excluded from composition
}

TEST(Unicode, EveryCharacterSurvivesUtf8) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const std::string text = to_utf8({&c, 1});
    ASSERT_EQ(to_utf32(text), std::u32string(1, c)) << static_cast<uint32_t>(c);
    std::string storage;
    ASSERT_EQ(repaired_utf8(text, storage), text);
  }
}

TEST(Unicode, BrokenSequencesBecomeOneReplacementEach) {
  const auto repaired = [](std::string_view text) {
    std::string storage;
    return std::string(repaired_utf8(text, storage));
  };
  EXPECT_EQ(repaired("\xE2\x82"), "\uFFFD");  // cut off
  EXPECT_EQ(repaired("\xE2\x82z"), "\uFFFDz");
  EXPECT_EQ(repaired("\xC0\x80"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(repaired("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(repaired("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(SplitPattern, SplitsAsItsRegularExpression) {
  const auto words = [](SplitPattern pattern, std::string_view text) {
    std::vector<size_t> ends;
    scan_pattern(pattern, text, ends);
    std::vector<std::string> parts;
    size_t begin = 0;
    for (const size_t end : ends) parts.emplace_back(text.substr(begin, end - begin)), begin = end;
    return parts;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words(SplitPattern::kGpt2, "it's  12345 IT'S\n\n x"),
            (Words{"it", "'s", " ", " 12345", " IT", "'", "S", "\n\n", " x"}));
  EXPECT_EQ(words(SplitPattern::kLlama3, "it's  12345 IT'S\n\n x!\n"),
            (Words{"it", "'s", " ", " ", "123", "45", " IT", "'S", "\n\n", " x", "!\n"}));
  EXPECT_EQ(words(SplitPattern::kQwen2, "a12\t\tb"), (Words{"a", "1", "2", "\t", "\tb"}));
}

}  // namespace
}  // namespace halftone
