// Several safetensors files that an index joins, as large models are published.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "archive/safetensors/safetensors.h"
#include "base/errors.h"
#include "base/json.h"

namespace halftone {
namespace {

using nlohmann::json;

/// The index is untrusted: it may only name files that stand beside it.
void check_shard_name(const std::string& name, const JsonCursor& place) {
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find_first_of("/\\") == std::string::npos && name.find('\0') == std::string::npos;
  if (!plain) place.fail_here(fmt::format("\"{}\" is not the plain name of a file beside the index", name));
}

json parse_index(const std::string& path) {
  const auto bytes = FileBytes::open(path, LoadMode::kRead);
  const std::string_view text(reinterpret_cast<const char*>(bytes->bytes().data()), bytes->bytes().size());
  return parse_json(text, path, {.max_depth = 16, .max_bytes = 100'000'000, .max_values = 5'000'000});
}

}  // namespace

SafetensorsFile SafetensorsFile::open_sharded(const std::string& index_path, LoadMode mode) {
  const json document = parse_index(index_path);
  const JsonCursor index(document, index_path);
  const JsonCursor weight_map = index.at("weight_map");
  const std::filesystem::path folder = std::filesystem::path(index_path).parent_path();

  SafetensorsFile result;
  std::map<std::string, SafetensorsFile> shards;
  for (const std::string& name : weight_map.keys()) {  // sorted, as entries_ must be
    const JsonCursor place = weight_map.at(name);
    const std::string shard_name = place.get_string();
    auto shard = shards.find(shard_name);
    if (shard == shards.end()) {
      check_shard_name(shard_name, place);
      shard = shards.emplace(shard_name, SafetensorsFile::open((folder / shard_name).string(), mode)).first;
    }
    const SafetensorsEntry* entry = shard->second.try_entry(name);
    if (entry == nullptr) place.fail_here(fmt::format("shard \"{}\" has no such tensor", shard_name));
    result.entries_.push_back(*entry);
  }
  if (index.has("metadata")) {
    const JsonCursor metadata = index.at("metadata");
    for (const std::string& key : metadata.keys()) {
      const json& value = metadata.at(key).raw();
      // The index carries numbers too ("total_size"); they are kept in their JSON spelling.
      result.metadata_.emplace(key, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return result;
}

}  // namespace halftone
