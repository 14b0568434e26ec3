#include "decoder/source/model_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/errors.h"
#include "base/json.h"
#include "halftone/cli/text_file.h"

namespace halftone {

namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr size_t kLongestFolderText = size_t{64} << 20;

/// Hugging Face's cache has the files of all versions of a model in one folder, and links to them.
bool is_blob_of(const fs::path& target, const fs::path& folder) {
  return folder.parent_path().filename() == "snapshots" &&
         target.parent_path() == folder.parent_path().parent_path() / "blobs";
}

/// A shard must not have tensors that the index does not know, or knows elsewhere: which one would count?
void check_shards(const SafetensorsFile& file, const std::string& index) {
  std::set<const FileBytes*> seen;
  for (const SafetensorsEntry& entry : file.entries()) {
    if (!seen.insert(entry.owner.get()).second) continue;
    const SafetensorsFile shard = SafetensorsFile::from_bytes(entry.owner);
    for (const SafetensorsEntry& inside : shard.entries()) {
      const SafetensorsEntry* listed = file.try_entry(inside.name);
      if (listed != nullptr && listed->owner == entry.owner) continue;
      fail(ErrorCode::kCorruptFile, "{}: tensor \"{}\" is in {}, but the index has it {}", index, inside.name,
           entry.owner->name(), listed == nullptr ? "nowhere" : "in " + listed->owner->name());
    }
  }
}

}  // namespace

ModelFolder::ModelFolder(std::string path) : path_(std::move(path)) {
  if (!has("config.json")) {
    fail(ErrorCode::kNotFound,
         "{}: there is no config.json; a folder must be a model in Hugging Face's form: config.json, "
         "tokenizer.json, "
         "safetensors files",
         path_);
  }
}

std::string ModelFolder::name() const {
  fs::path path = fs::path(path_).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

bool ModelFolder::has(const std::string& file) const {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(fs::path(path_) / file, ignored));
}

std::string ModelFolder::path_of(const std::string& file) const {
  const fs::path path = fs::path(path_) / file;
  std::error_code failed;
  if (!fs::is_symlink(fs::symlink_status(path, failed))) return path.string();
  const fs::path target = fs::canonical(path, failed), folder = fs::canonical(path_, failed);
  if (failed) fail(ErrorCode::kNotFound, "{}: is a link to nothing", path.string());
  if (target.parent_path() != folder && !is_blob_of(target, folder))
    fail(ErrorCode::kUnsupported, "{}: is a link that leads out of the folder", path.string());
  return path.string();
}

std::string ModelFolder::text(const std::string& file) const {
  return read_text_file(path_of(file), kLongestFolderText);
}

nlohmann::json ModelFolder::json(const std::string& file) const {
  return parse_json(text(file), path_of(file),
                    {.max_depth = 32, .max_bytes = kLongestFolderText, .max_values = 2'000'000});
}

SafetensorsFile ModelFolder::tensors() const {
  if (has(kWeights)) return SafetensorsFile::open(path_of(kWeights));
  if (!has(kIndex)) {
    fail(ErrorCode::kNotFound, "{}: there is neither {} nor {}{}", path_, kWeights, kIndex,
         has("pytorch_model.bin") ? "; pytorch_model.bin is not read: save the model as safetensors" : "");
  }
  const std::string index = path_of(kIndex);
  SafetensorsFile file = SafetensorsFile::open_sharded(index);
  for (const SafetensorsEntry& entry : file.entries())
    path_of(fs::path(entry.owner->name()).filename().string());
  check_shards(file, index);
  return file;
}

std::string chat_template_of(const ModelFolder& folder) {
  if (folder.has("chat_template.jinja")) return folder.text("chat_template.jinja");
  const char* const file = "tokenizer_config.json";
  if (!folder.has(file)) return "";
  const nlohmann::json document = folder.json(file);
  const JsonCursor config(document, folder.path_of(file));
  if (!config.has("chat_template") || config.at("chat_template").is_null()) return "";
  const JsonCursor place = config.at("chat_template");
  if (!place.raw().is_array()) return place.get_string();
  for (size_t i = 0; i < place.size(); ++i) {
    const JsonCursor each = place.at(i);
    if (each.at("name").get_string() == "default") return each.at("template").get_string();
  }
  return "";
}

}  // namespace halftone
