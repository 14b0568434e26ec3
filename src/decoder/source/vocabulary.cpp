#include "decoder/source/vocabulary.h"

#include "base/errors.h"

namespace halftone {

namespace {

std::optional<int64_t> try_id(const GgufReader& file, std::string_view key) {
  return file.has(key) ? std::optional(file.get_int(key)) : std::nullopt;
}
std::optional<bool> try_flag(const GgufReader& file, std::string_view key) {
  return file.has(key) ? std::optional(file.get_bool(key)) : std::nullopt;
}

std::vector<std::string> strings_of(const GgufReader& file, std::string_view key) {
  if (!file.has(key)) return {};
  const std::vector<std::string_view> views = file.get_strings(key);
  return {views.begin(), views.end()};
}

}  // namespace

Tokenizer read_gguf_tokenizer(const GgufReader& file, const std::string& path) {
  GgufVocabulary vocabulary;
  vocabulary.name = path;
  vocabulary.model = file.get_string("tokenizer.ggml.model");
  if (file.has("tokenizer.ggml.pre")) vocabulary.pre = file.get_string("tokenizer.ggml.pre");
  vocabulary.tokens = strings_of(file, "tokenizer.ggml.tokens");
  vocabulary.merges = strings_of(file, "tokenizer.ggml.merges");
  if (file.has("tokenizer.ggml.scores")) vocabulary.scores = file.get_floats("tokenizer.ggml.scores");
  if (file.has("tokenizer.ggml.token_type")) {
    for (const int64_t type : file.get_ints("tokenizer.ggml.token_type"))
      vocabulary.token_types.push_back(static_cast<int32_t>(type));
  }
  vocabulary.bos_id = try_id(file, "tokenizer.ggml.bos_token_id");
  vocabulary.eos_id = try_id(file, "tokenizer.ggml.eos_token_id");
  vocabulary.unknown_id = try_id(file, "tokenizer.ggml.unknown_token_id");
  vocabulary.separator_id = try_id(file, "tokenizer.ggml.seperator_token_id");  // GGUF spells it so
  vocabulary.padding_id = try_id(file, "tokenizer.ggml.padding_token_id");
  vocabulary.add_bos = try_flag(file, "tokenizer.ggml.add_bos_token");
  vocabulary.add_eos = try_flag(file, "tokenizer.ggml.add_eos_token");
  vocabulary.add_space_prefix = try_flag(file, "tokenizer.ggml.add_space_prefix");
  return Tokenizer(gguf_tokenizer_spec(vocabulary));
}

Tokenizer read_folder_tokenizer(const ModelFolder& folder, const FolderVocabulary& vocabulary) {
  if (!folder.has("tokenizer.json")) {
    fail(ErrorCode::kNotFound, "{}: there is no tokenizer.json{}", folder.path(),
         folder.has("tokenizer.model") ? "; tokenizer.model is not read: save the tokenizer with transformers"
                                       : "");
  }
  TokenizerSpec spec = parse_tokenizer_json(folder.text("tokenizer.json"), folder.path_of("tokenizer.json"));
  std::erase_if(spec.added_tokens, [&](const AddedToken& token) { return token.id >= vocabulary.rows; });
  if (!vocabulary.begin_ids.empty()) spec.bos_id = vocabulary.begin_ids.front();
  if (!vocabulary.end_ids.empty()) spec.eos_id = vocabulary.end_ids.front();
  return Tokenizer(std::move(spec));
}

}  // namespace halftone
