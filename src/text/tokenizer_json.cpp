#include "text/tokenizer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "archive/bytes/text.h"
#include "base/errors.h"

namespace halftone {
namespace {

using nlohmann::json;

constexpr int kMaxNesting = 32;  // of arrays and objects

int64_t id_at(const JsonCursor& place) {
  const int64_t id = place.get_int();
  if (id < 0 || id > INT32_MAX) place.fail_here(fmt::format("id {} is out of range", id));
  return id;
}

bool has_value(const JsonCursor& place, std::string_view key) {
  return place.has(key) && !place.at(key).is_null();
}

void read_added_token(const JsonCursor& place, TokenizerSpec& spec) {
  check_keys(place, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  token.id = id_at(place.at("id"));
  token.content = place.at("content").get_string();
  token.single_word = place.at("single_word").get_bool();
  token.lstrip = place.at("lstrip").get_bool();
  token.rstrip = place.at("rstrip").get_bool();
  token.normalized = place.at("normalized").get_bool();
  token.special = place.at("special").get_bool();
  if (token.content.empty()) place.fail_here("an added token is empty");
  spec.added_tokens.push_back(std::move(token));
}

/// Cursors make the name of each place; for a hundred thousand entries only that of a wrong one is made.
void read_vocabulary_object(const JsonCursor& place, TokenizerModel& model) {
  if (!place.raw().is_object()) place.fail_here("expected an object of tokens and ids");
  model.vocabulary.reserve(place.size());
  for (const auto& [text, id] : place.raw().items()) {
    const bool good = id.is_number_integer() && id >= 0 && id <= INT32_MAX;
    if (!good)
      place.fail_here(
          fmt::format("token {}: the id is not an integer from 0 to {}", quote_text(text), INT32_MAX));
    model.vocabulary.push_back({text, id.get<int64_t>(), 0});
  }
}

void read_vocabulary_list(const JsonCursor& place, TokenizerModel& model) {
  if (!place.raw().is_array()) place.fail_here("expected an array of tokens and scores");
  for (const json& item : place.raw()) {
    const size_t id = model.vocabulary.size();
    if (!item.is_array() || item.size() != 2 || !item[0].is_string() || !item[1].is_number())
      place.fail_here(fmt::format("element {} is not a token with its score", id));
    model.vocabulary.push_back({item[0].get<std::string>(), static_cast<int64_t>(id), item[1].get<double>()});
  }
}

void read_merges(const JsonCursor& place, TokenizerModel& model) {
  if (!place.raw().is_array()) place.fail_here("expected an array of merges");
  model.merges.reserve(place.size());
  for (const json& item : place.raw()) {
    if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string()) {
      model.merges.emplace_back(item[0].get<std::string>(), item[1].get<std::string>());
      continue;
    }
    const std::string text = item.is_string() ? item.get<std::string>() : "";
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      place.fail_here(
          fmt::format("merge {} is not two tokens with a space between them", model.merges.size()));
    model.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
}

void read_unknown_token(const JsonCursor& place, TokenizerModel& model) {
  if (!has_value(place, "unk_token")) return;
  const std::string text = place.at("unk_token").get_string();
  for (const VocabularyToken& token : model.vocabulary) {
    if (token.text == text) model.unknown_id = token.id;
  }
  if (!model.unknown_id)
    place.at("unk_token").fail_here(fmt::format("{} is not in the vocabulary", quote_text(text)));
}

bool flag(const JsonCursor& place, std::string_view key) {
  return has_value(place, key) && place.at(key).get_bool();
}

void read_bpe(const JsonCursor& place, TokenizerModel& model) {
  check_keys(place, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                     "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  model.kind = TokenizerModelKind::kBpe;
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (has_value(place, key) && !place.at(key).get_string().empty())
      fail_unsupported(place.at(key), key, place.at(key).get_string());
  }
  if (has_value(place, "dropout") && place.at("dropout").get_double() != 0)
    fail_unsupported(place.at("dropout"), "dropout", "merges that are left out at random");
  model.fuse_unknown = flag(place, "fuse_unk");
  model.byte_fallback = flag(place, "byte_fallback");
  model.ignore_merges = flag(place, "ignore_merges");
  read_vocabulary_object(place.at("vocab"), model);
  read_merges(place.at("merges"), model);
  read_unknown_token(place, model);
}

void read_unigram(const JsonCursor& place, TokenizerModel& model) {
  check_keys(place, {"type", "unk_id", "vocab", "byte_fallback"});
  model.kind = TokenizerModelKind::kUnigram;
  model.byte_fallback = flag(place, "byte_fallback");
  read_vocabulary_list(place.at("vocab"), model);
  if (!has_value(place, "unk_id")) return;
  model.unknown_id = id_at(place.at("unk_id"));
  if (*model.unknown_id >= static_cast<int64_t>(model.vocabulary.size()))
    place.at("unk_id").fail_here(fmt::format("{} is not in the vocabulary", *model.unknown_id));
}

void read_word_piece(const JsonCursor& place, TokenizerModel& model) {
  check_keys(place, {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  model.kind = TokenizerModelKind::kWordPiece;
  model.continuing_prefix = place.at("continuing_subword_prefix").get_string();
  model.max_word_length = place.at("max_input_chars_per_word").get_int();
  read_vocabulary_object(place.at("vocab"), model);
  read_unknown_token(place, model);
}

/// Files of the first versions have no type in the model.
std::string model_type(const JsonCursor& place) {
  if (place.has("type")) return place.at("type").get_string();
  if (place.has("merges")) return "BPE";
  return place.has("max_input_chars_per_word") ? "WordPiece" : place.at("type").get_string();
}

}  // namespace

void check_keys(const JsonCursor& place, std::initializer_list<std::string_view> known) {
  for (const std::string& key : place.keys()) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail(ErrorCode::kUnsupported, "{}: the key {} is not known", place.path(), quote_text(key));
  }
}

void fail_unsupported(const JsonCursor& place, std::string_view what, std::string_view name) {
  fail(ErrorCode::kUnsupported, "{}: {} {} is not supported", place.path(), what, quote_text(name));
}

void read_tokenizer_model(const JsonCursor& place, TokenizerModel& model) {
  const std::string type = model_type(place);
  if (type == "BPE") return read_bpe(place, model);
  if (type == "Unigram") return read_unigram(place, model);
  if (type == "WordPiece") return read_word_piece(place, model);
  fail_unsupported(place, "the model", type);
}

TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& name) {
  const json document = parse_json(text, name, {.max_depth = kMaxNesting});
  const JsonCursor root(document, name);
  check_keys(root, {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                    "post_processor", "decoder", "model"});
  TokenizerSpec spec;
  spec.name = name;
  if (root.has("version") && root.at("version").get_string() != "1.0")
    fail_unsupported(root.at("version"), "the version", root.at("version").get_string());
  read_tokenizer_model(root.at("model"), spec.model);
  if (has_value(root, "added_tokens")) {
    const JsonCursor added = root.at("added_tokens");
    if (!added.raw().is_array()) added.fail_here("expected an array of added tokens");
    for (size_t i = 0; i < added.size(); ++i) read_added_token(added.at(i), spec);
  }
  if (has_value(root, "normalizer")) read_normalizer(root.at("normalizer"), spec.normalizers);
  if (has_value(root, "pre_tokenizer")) read_pre_tokenizer(root.at("pre_tokenizer"), spec.pre_tokenizers);
  if (has_value(root, "post_processor")) read_post_processor(root.at("post_processor"), spec);
  if (has_value(root, "decoder")) read_decoder(root.at("decoder"), spec.decoders);
  return spec;
}

}  // namespace halftone
