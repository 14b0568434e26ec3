#include "decoder/source/decoder_source.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "base/json.h"
#include "decoder/source/model_folder.h"
#include "decoder/source/vocabulary.h"

namespace halftone {

namespace {

DecoderSource open_gguf(const std::string& path) {
  GgufReader file = GgufReader::open(path);
  DecoderConfig config = read_decoder_config(file, path);
  Tokenizer tokenizer = read_gguf_tokenizer(file, path);
  return {std::move(config), gguf_weights(std::move(file)), std::move(tokenizer)};
}

/// One id or a list of them.
std::vector<int64_t> ids_at(const JsonCursor& file, std::string_view key) {
  if (!file.has(key) || file.at(key).is_null()) return {};
  const JsonCursor place = file.at(key);
  if (!place.raw().is_array()) return {place.get_int()};
  std::vector<int64_t> ids;
  for (size_t i = 0; i < place.size(); ++i) ids.push_back(place.at(i).get_int());
  return ids;
}

/// generation_config.json counts more than config.json, as in transformers.
std::vector<int64_t> ids_of(const ModelFolder& folder, const JsonCursor& config, std::string_view key) {
  const char* const file = "generation_config.json";
  if (folder.has(file)) {
    const nlohmann::json document = folder.json(file);
    std::vector<int64_t> ids = ids_at(JsonCursor(document, folder.path_of(file)), key);
    if (!ids.empty()) return ids;
  }
  return ids_at(config, key);
}

DecoderSource open_folder(const std::string& path) {
  const ModelFolder folder(path);
  const nlohmann::json document = folder.json("config.json");
  const JsonCursor file(document, folder.path_of("config.json"));
  DecoderConfig config = read_decoder_config(file);
  config.name = folder.name();
  config.chat_template = chat_template_of(folder);
  config.end_ids = ids_of(folder, file, "eos_token_id");
  FolderVocabulary vocabulary;
  vocabulary.end_ids = config.end_ids;
  vocabulary.begin_ids = ids_of(folder, file, "bos_token_id");
  vocabulary.rows = config.vocabulary;
  Tokenizer tokenizer = read_folder_tokenizer(folder, vocabulary);
  auto weights = folder_weights(folder.tensors(), config, config.naming);
  return {std::move(config), std::move(weights), std::move(tokenizer)};
}

}  // namespace

DecoderSource open_decoder_source(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? open_folder(path) : open_gguf(path);
}

}  // namespace halftone
